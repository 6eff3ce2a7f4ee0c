// What the forecast of DeepSpeed's memory means: the verdict and its largest terms, phases, host, page locks.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/alternative_words.h"
#include "doctor/memory_rules.h"

namespace underkeel::doctor {
namespace {

std::string file_of(const Inputs& inputs) {
  return inputs.deepspeed ? inputs.deepspeed->file : inputs.run->file;
}

Finding deepspeed_finding(const Inputs& inputs, std::string_view id, Severity severity,
                          Certainty certainty, std::vector<Slot> slots) {
  return {.id = std::string(id),
          .severity = severity,
          .certainty = certainty,
          .engine = Engine::deepspeed,
          .file = file_of(inputs),
          .slots = std::move(slots)};
}

std::string limit_text(double bytes) {
  return capacity(static_cast<std::int64_t>(bytes));
}

/// "stage 2, offload_optimizer cpu, micro-batch 1 x 8": what differs from the run, and each offload that is on.
std::string words_of(const Alternative& row, const MemoryCase& memory) {
  std::string text = fmt::format("stage {}", row.stage);
  if (row.offload_optimizer != "none" || memory.settings.optimizer != Offload::none)
    text += ", offload_optimizer " + row.offload_optimizer;
  if (row.offload_optimizer == "nvme" && memory.settings.optimizer != Offload::nvme)
    text += " (nvme_path)";
  if (row.offload_param != "none" || memory.settings.parameters != Offload::none)
    text += ", offload_param " + row.offload_param;
  if (row.recomputes && !memory.run.recomputes) text += ", disable_gradient_checkpointing false";
  if (row.micro_batch != memory.run.micro_batch)
    text += fmt::format(", per_device_train_batch_size {} x gradient_accumulation_steps {}",
                        row.micro_batch, row.accumulation_steps);
  if (row.evaluation_batch > 0 && row.evaluation_batch != memory.run.evaluation_batch)
    text += fmt::format(", per_device_eval_batch_size {}{}", row.evaluation_batch,
                        memory.run.keeps_logits ? ", eval_accumulation_steps 1" : "");
  if (row.gathers_weights) text += ", stage3_gather_16bit_weights_on_model_save true";
  if (row.saving == Saving::weights_only) text += ", save_only_model true";
  if (row.saving == Saving::nothing) text += ", save_strategy \"no\"";
  if (row.save_total_limit > 0) text += fmt::format(", save_total_limit {}", row.save_total_limit);
  if (row.saving != Saving::as_it_is) text += " (@[disk.nothing-to-resume])";
  // Of a run that was to be judged on a resume the verdict says it.
  if (!memory.resumes && row.resume.value_or(Verdict::runs) != Verdict::runs)
    text +=
        fmt::format(" (@[row.resume-{}] {})", name_of(*row.resume), amount(row.resume_host_bytes));
  return text;
}

const Alternative* first_that_runs(const Diagnosis& diagnosis) {
  for (const Alternative& row : diagnosis.alternatives)
    if (row.engine == Engine::deepspeed && row.verdict == Verdict::runs) return &row;
  return nullptr;
}

bool is_of_process(const Term& term) {
  return term.name == "context" || term.name == "allocator" || term.name == "processes";
}

/// What the run itself holds, without the process around it and without rounding of page-locked blocks.
Range held(const Forecast& forecast, Phase phase, Space space) {
  Range range;
  const auto& holding = forecast.at(phase, space);
  if (!holding) return range;
  for (const Term& term : holding->terms) {
    if (is_of_process(term) || term.name == rounding_term) continue;
    range.low += term.low_bytes;
    range.high += term.high_bytes;
  }
  return range;
}

/// What is held throughout: without a gradient that is looked through, which is work.
Holding without_process(Holding holding) {
  std::erase_if(holding.terms, [](const Term& term) {
    return is_of_process(term) || term.name == "activations" || term.name == "gradient_checks" ||
           term.name == rounding_term;
  });
  return holding;
}

/// What the range beside it counts.
Holding without_rounding(Holding holding) {
  std::erase_if(holding.terms, [](const Term& term) { return term.name == rounding_term; });
  return holding;
}

/// The phase that holds the most of those that fit, were it not for page-locked blocks that are rounded up.
std::optional<Phase> where_rounding_decides(const Forecast& forecast, Space space, bool resumes) {
  std::optional<Phase> worst;
  for (std::size_t p = 0; p < phase_count; ++p) {
    const Phase phase = static_cast<Phase>(p);
    if (phase == Phase::resume && !resumes) continue;
    const auto& holding = forecast.at(phase, space);
    if (!holding || !holding->limit_bytes || holding->high() <= *holding->limit_bytes ||
        holding->high_without(rounding_term) > *holding->limit_bytes)
      continue;
    if (!worst || holding->high() > forecast.at(*worst, space)->high()) worst = phase;
  }
  return worst;
}

/// What the driver shows of a rank beside what its tensors take.
template <class Tell>
void tell_reserved(const MemoryCase& memory, const Forecast& forecast, const Tell& tell) {
  if (memory.uncounted) return;
  const Reserved reserved = reserved_bytes(forecast);
  if (memory.limits.device && reserved.peak.low > *memory.limits.device) return;
  // Of a card that is smaller the cache gives back what it can.
  const double most =
      memory.limits.device
          ? std::max(reserved.peak.high, std::min(reserved.most, *memory.limits.device))
          : reserved.most;
  tell("device-reserved", Severity::info, Certainty::estimate,
       {{"peak", span_of(reserved.peak)},
        {"reserved", amount(most)},
        {"context", span_of(context_bytes)}});
}

/// Communication buffers of a rank; `tell` takes a finding's parts.
template <class Tell>
void tell_buckets(const MemoryCase& memory, const Forecast& state, const Tell& tell) {
  const DeepspeedSettings& s = memory.settings;
  const auto step = [&](std::string_view name) {
    return term_bytes(state, Phase::step, Space::device, name);
  };
  const double bucket = step("bucket"), copy = step("bucket_copy") + step("bucket_cast");
  // The buckets of the Trainer's own loop are DDP's, which no key here sizes.
  if (bucket + copy <= 0 || s.is_trainers_loop) return;
  if (s.uses_bf16_optimizer)
    return tell("bf16-optimizer-copy", Severity::info, Certainty::exact, {{"copy", amount(copy)}});
  if (s.stage == 0)
    return tell("all-reduce-copy", Severity::info, Certainty::exact, {{"copy", amount(copy)}});
  const double width = static_cast<double>(memory.model->width);
  const double auto_elements = width * width;
  const bool is_full = s.contiguous_gradients;
  // Nobody fills in "auto" without the Trainer or accelerate: DeepSpeed then takes its default.
  const std::string smaller =
      memory.under_trainer ? "\"auto\"" : fmt::format("{:.0f}", auto_elements);
  tell("bucket-bytes", Severity::info, Certainty::exact,
       {{"bucket", amount(bucket)},
        {"count", s.overlap_comm && s.stage < 3 ? "2" : "1"},
        {"size", is_full ? "@bucket.full" : "@bucket.filled"},
        {"copy", amount(copy)},
        {"both", amount(bucket + copy)},
        {"elements", fmt::format("{:.0f}", s.reduce_bucket)},
        {"auto_elements", fmt::format("{:.0f}", auto_elements)},
        {"auto", amount((s.stage == 3  ? sent_bytes(s)
                         : s.is_16_bit ? 2
                                       : 4) *
                        auto_elements)},
        {"do", s.reduce_bucket > auto_elements ? "\"reduce_bucket_size\": " + smaller : ""}});
}

/// What the resume of a run needs that does not fit a node: a node that is large enough, or enough of this kind.
std::string cure_of_resume(const MemoryCase& memory, double needed) {
  constexpr double gib = 1 << 30;
  constexpr double step_gib = 16;
  const double node_gib = step_gib * std::ceil(needed / gib / step_gib);
  std::string cure = fmt::format("@[resume.larger-node] {:.0f} GiB", node_gib);
  constexpr int most_nodes = 64;
  for (int nodes = 2; nodes <= most_nodes; ++nodes) {
    MemoryCase other = memory;
    other.ranks = memory.ranks * nodes;
    const auto& holding = forecast_of(other).at(Phase::resume, Space::host);
    if (holding->high_without(rounding_term) > *memory.limits.host) continue;
    return cure + fmt::format("@[resume.or-ranks] {:.0f} (@[resume.nodes] {})", other.ranks, nodes);
  }
  return cure;
}

/// What a resume holds of a node's host memory, for who only starts too: by then it is late to learn it.
template <class Tell>
void tell_resume(const MemoryCase& memory, const Forecast& forecast, const Tell& tell) {
  const Holding& holding = *forecast.at(Phase::resume, Space::host);
  const Range steady = held(forecast, Phase::step, Space::host);
  const Range resume = held(forecast, Phase::resume, Space::host);
  const auto [least, most] = term_range(forecast, Phase::resume, Space::host, "processes");
  const std::optional<double>& limit = memory.limits.host;
  const std::string besides = steady.low > 0
                                  ? fmt::format("@[resume.besides] {} @[resume.living-there] {}",
                                                amount(steady.low), amount(resume.low))
                                  : "";
  std::vector<Slot> slots = {{"besides", besides},
                             {"file", amount(resume.low - steady.low)},
                             {"resume", amount(resume.low)},
                             {"processes", span_of({least, most})},
                             {"limit", limit ? limit_text(*limit) : "@unknown"}};
  if (memory.settings.optimizer == Offload::nvme) {
    // Gradients are swapped too, and not saved; nor are weights.
    slots.push_back(
        {"swap", amount(term_range(forecast, Phase::resume, Space::nvme, "optimizer").first)});
    return tell("resume-copies-swap-files", Severity::info, Certainty::estimate, std::move(slots));
  }
  const Verdict verdict = resume_verdict(memory, forecast).value_or(Verdict::runs);
  const bool is_short = verdict == Verdict::fails;
  const bool may_be_short = verdict != Verdict::runs;
  if (may_be_short) {
    slots.push_back({"most", amount(holding.high_without(rounding_term))});
    slots.push_back({"cure", cure_of_resume(memory, holding.high_without(rounding_term))});
  }
  tell(is_short       ? "resume-host-short"
       : may_be_short ? "resume-host-may-be-short"
                      : "resume-host",
       may_be_short ? Severity::warning : Severity::info, Certainty::bound, std::move(slots));
}

/// "; it fails first there, and would need the most during a save, 180.8 GB: ..."
std::string worst_of(Phase phase, const Holding& most) {
  return fmt::format("@[fails.first] @[phase.{}], {}: {}", name_of(phase), amount(most.low()),
                     largest_terms(without_rounding(most), 3));
}

/// An error for each space that is short, with the phase that fails first; one cure has to mend them all.
void tell_shortages(const Forecast& least, bool resumes, const std::string& cure,
                    const Inputs& inputs, Diagnosis& diagnosis) {
  for (const Shortage& shortage : shortages_of(least, resumes)) {
    const Holding& first = *least.at(shortage.first, shortage.space);
    const Holding& most = *least.at(shortage.most, shortage.space);
    const bool grows = amount(most.low()) != amount(first.low());
    diagnosis.findings.push_back(
        deepspeed_finding(inputs, "deepspeed-does-not-fit", Severity::error, Certainty::bound,
                          {{"space", fmt::format("@space.{}", name_of(shortage.space))},
                           {"phase", fmt::format("@phase.{}", name_of(shortage.first))},
                           {"low", amount(first.low())},
                           {"limit", limit_text(*first.limit_bytes)},
                           {"terms", largest_terms(without_rounding(first), 4)},
                           {"most", grows ? worst_of(shortage.most, most) : std::string()},
                           {"cure", cure}}));
  }
}

/// "; with another method: finetuning_type=lora lora_target=all, device memory 8.3 GB - 14.5 GB": where no setting of the
/// run cures it, adapters on the base as it is, and on one of four bits. "" where those fail too.
std::string other_method(const MemoryCase& memory, const Inputs& inputs) {
  if (!inputs.run || memory.run.quantization_bits > 0) return "";
  const WordedFiles files(inputs);
  std::vector<std::string> words;
  if (!memory.run.is_lora) words = {"finetuning_type=lora", "lora_target=all"};
  for (const bool in_four_bits : {false, true}) {
    if (in_four_bits) words.push_back("quantization_bit=4");
    if (words.empty()) continue;
    const auto changed = files.with(words, memory);
    if (!changed) continue;
    const Forecast forecast = forecast_of(*changed);
    if (forecast.verdict != Verdict::runs) continue;
    return fmt::format("@[cure.other-method] {} (@[space.device] {})", fmt::join(words, " "),
                       span_of(on_device(forecast)));
  }
  return "";
}

}  // namespace

void tell_verdict(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  const Forecast& forecast = diagnosis.deepspeed;
  const Alternative* cure = first_that_runs(diagnosis);
  const bool fails = forecast.verdict == Verdict::fails;
  const std::string fix =
      cure == nullptr ? "@[no-cure]" + (fails ? other_method(memory, inputs) : std::string())
                      : (fails ? "@[cure.smallest]" : "@[cure.sure]") + words_of(*cure, memory);
  const Forecast least = least_of(forecast, memory);
  if (fails) return tell_shortages(least, memory.resumes, fix, inputs, diagnosis);
  const bool long_ones_fail =
      !memory.uncounted && verdict_of(forecast, memory.limits, memory.resumes) == Verdict::fails;
  const auto tightest = tightest_of(forecast, memory.resumes, long_ones_fail);
  if (!memory.limits.device) {
    const Holding& step = *forecast.at(Phase::step, Space::device);
    const Holding& update = *forecast.at(Phase::update, Space::device);
    const Phase phase = update.high() > step.high() ? Phase::update : Phase::step;
    const Holding& most = *forecast.at(phase, Space::device);
    diagnosis.findings.push_back(deepspeed_finding(
        inputs, "deepspeed-no-machine", Severity::warning, Certainty::estimate,
        {{"low", amount((memory.uncounted ? least : forecast).at(phase, Space::device)->low())},
         {"high", amount(most.high())},
         {"terms", largest_terms(most, 4)}}));
  }
  if (!tightest) return;
  // Where settings are not counted, the least is what of the figures is needed in any case.
  const double low = memory.uncounted ? least.at(tightest->phase, tightest->space)->low()
                                      : tightest->holding->low();
  const std::vector<Slot> slots = {
      {"space", fmt::format("@space.{}", name_of(tightest->space))},
      {"phase", fmt::format("@phase.{}", name_of(tightest->phase))},
      {"low", amount(low)},
      {"tokens", fmt::format("{:.0f}", memory.tokens)},
      {"high", amount(tightest->holding->high_without(rounding_term))},
      {"limit", limit_text(*tightest->holding->limit_bytes)},
      {"margin",
       amount(*tightest->holding->limit_bytes - tightest->holding->high_without(rounding_term))},
      {"terms", largest_terms(without_rounding(*tightest->holding), 4)},
      {"cure", fix}};
  if (forecast.verdict == Verdict::runs)
    return diagnosis.findings.push_back(
        deepspeed_finding(inputs, "deepspeed-fits", Severity::info, Certainty::estimate, slots));
  const bool fits_where_known =
      tightest->holding->high_without(rounding_term) <= *tightest->holding->limit_bytes;
  diagnosis.findings.push_back(
      deepspeed_finding(inputs,
                        long_ones_fail && memory.is_alone ? "deepspeed-lengths-not-known"
                        : long_ones_fail                  ? "deepspeed-long-samples-do-not-fit"
                        : fits_where_known                ? "deepspeed-fits-where-known"
                                                          : "deepspeed-may-not-fit",
                        Severity::warning, Certainty::estimate, slots));
}

void tell_phases(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  const Forecast& forecast = diagnosis.deepspeed;
  const DeepspeedSettings& s = memory.settings;
  const auto tell = [&](std::string_view id, Severity severity, Certainty certainty,
                        std::vector<Slot> slots) {
    diagnosis.findings.push_back(
        deepspeed_finding(inputs, id, severity, certainty, std::move(slots)));
  };
  const Forecast state = state_forecast_of(memory);
  const auto device = [&](Phase phase, std::string_view name) {
    return term_bytes(state, phase, Space::device, name);
  };

  const Holding step = without_process(*state.at(Phase::step, Space::device));
  const double checks = device(Phase::step, "gradient_checks");
  tell("device-state", Severity::info, Certainty::estimate,
       {{"step", amount(step.high())},
        {"update", amount(held(state, Phase::update, Space::device).high)},
        {"terms", largest_terms(step, 6)},
        {"checks", checks > 0 ? "@[state.checks] " + amount(checks) : ""}});
  tell_reserved(memory, forecast, tell);

  // The moments appear at the first update; on a resume they are there in the first forward pass.
  if (s.stage >= 1 && s.optimizer == Offload::none) {
    const double set_up = device(Phase::update, "weights") + device(Phase::update, "quantised") +
                          device(Phase::update, "master");
    const double moments = device(Phase::update, "moments");
    const double copies = device(Phase::update, "update_copies");
    const double peak = held(forecast, Phase::update, Space::device).low;
    tell("first-update", Severity::info, Certainty::bound,
         {{"set_up", amount(set_up)},
          {"backward", amount(peak - moments - copies)},
          {"moments", amount(moments)},
          {"copies", amount(copies)},
          {"peak", amount(peak)}});
  }
  if (s.stage >= 1 && memory.ranks == 1 && s.optimizer == Offload::none) {
    const double element = s.is_16_bit ? 2 : 4;
    const double gradient = s.uses_bf16_optimizer ? element + 4
                            : s.stage == 3        ? s.gradient_bytes
                                                  : element;
    const double optimizer = s.master_bytes + s.moments_bytes;
    const double bytes = element + gradient + optimizer;
    tell("one-rank-saves-nothing", Severity::warning, Certainty::exact,
         {{"stage", fmt::format("{}", s.stage)},
          {"state", amount(bytes * memory.sizes.trainable + frozen_bytes(memory))},
          {"parts", fmt::format("{:.0f}@[state.{}]", bytes,
                                memory.sizes.frozen > 0 ? "of-adapters" : "of-all")},
          {"freed", amount(optimizer * memory.sizes.trainable)}});
  }
  tell_buckets(memory, state, tell);
  if (s.stage == 3 && s.parameters == Offload::nvme &&
      memory.sizes.largest_tensor / memory.ranks > s.parameter_buffer)
    tell("nvme-buffer-too-small", Severity::error, Certainty::exact,
         {{"elements", fmt::format("{:.0f}", memory.sizes.largest_tensor)},
          {"share", fmt::format("{:.0f}", std::ceil(memory.sizes.largest_tensor / memory.ranks))},
          {"ranks", fmt::format("{:.0f}", memory.ranks)},
          {"buffer", fmt::format("{:.0f}", s.parameter_buffer)}});
  if (s.stage == 3) {
    const double live = device(Phase::step, "live");
    const double shards = device(Phase::step, "weights");
    if (live > 0)
      tell("live-window", Severity::info, Certainty::estimate,
           {{"live", amount(live)},
            {"max_live", fmt::format("{:.0f}", s.max_live)},
            {"besides", shards > 0 ? fmt::format("@[live.besides] {}@[live.shards]", amount(shards))
                                   : std::string()}});
  }

  // The host: three figures, and a fourth that only a resume has.
  const Range steady = held(forecast, Phase::step, Space::host);
  const auto [least, most] = term_range(forecast, Phase::step, Space::host, "processes");
  std::vector<Slot> phases = {
      {"processes", span_of({least, most})},
      {"steady", span_of(steady)},
      {"terms", steady.high > 0
                    ? largest_terms(without_process(*forecast.at(Phase::step, Space::host)), 4)
                    : "@nothing"}};
  const bool saves = forecast.at(Phase::save, Space::host).has_value();
  if (saves) {
    phases.push_back({"saving", span_of(held(forecast, Phase::save, Space::host))});
    phases.push_back({"after", span_of(held(forecast, Phase::after_save, Space::host))});
  }
  tell(saves ? "host-phases" : "host-steady", Severity::info, Certainty::estimate,
       std::move(phases));
  // The Trainer's own loop on several ranks reads the moments on their way to the device.
  if (!s.is_trainers_loop || memory.ranks == 1) tell_resume(memory, forecast, tell);
  for (const Space space : {Space::pinned_host, Space::host})
    if (const auto phase = where_rounding_decides(forecast, space, memory.resumes)) {
      const Holding& holding = *forecast.at(*phase, space);
      tell("rounding-may-not-fit", Severity::warning, Certainty::estimate,
           {{"space", fmt::format("@space.{}", name_of(space))},
            {"phase", fmt::format("@phase.{}", name_of(*phase))},
            {"before", amount(holding.high_without(rounding_term))},
            {"rounded", amount(holding.high())},
            {"limit", limit_text(*holding.limit_bytes)}});
    }
  if (const auto& pinned = forecast.at(Phase::step, Space::pinned_host)) {
    tell("page-locked", Severity::info, Certainty::estimate,
         {{"low", span_of(held(forecast, Phase::step, Space::pinned_host))},
          {"high", amount(pinned->high())},
          {"worst", amount(2 * pinned->high_without(rounding_term))},
          {"limit",
           memory.limits.page_locked ? limit_text(*memory.limits.page_locked) : "@unknown"}});
    tell("swap-does-not-help", Severity::info, Certainty::exact,
         {{"pinned", amount(pinned->low())}});
  }
  if (const auto& nvme = forecast.at(Phase::step, Space::nvme))
    tell("nvme-bytes", Severity::info, Certainty::estimate,
         {{"low", amount(nvme->low())},
          {"high", amount(nvme->high())},
          {"limit", memory.limits.nvme ? limit_text(*memory.limits.nvme) : "@unknown"}});

  // Loading.
  // A quantised base is not built under zero.Init; adapters are made once the base is there.
  const double elements = memory.run.is_lora ? memory.sizes.frozen : memory.sizes.total();
  const double whole = (s.is_16_bit ? 2 : 4) * elements;
  if (s.stage == 3 && memory.sizes.quantised == 0)
    tell("load-needs-zero-init", memory.is_for_trainer ? Severity::info : Severity::warning,
         Certainty::bound,
         {{"whole", amount(whole)},
          {"ranks", fmt::format("{:.0f}", memory.ranks_on_node)},
          {"copies", amount(memory.ranks_on_node * whole)},
          {"copies_f32", amount(memory.ranks_on_node * 4 * elements)},
          {"limit", memory.limits.host ? limit_text(*memory.limits.host) : "@unknown"}});
}

}  // namespace underkeel::doctor
