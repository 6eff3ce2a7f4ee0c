// Findings about memory that only some runs have: adapters, quantised bases, logits, number formats.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/alternative_words.h"
#include "doctor/memory_rules.h"
#include "doctor/packing_rules.h"

namespace underkeel::doctor {
namespace {

// The first GPUs that compute in bf16.
constexpr double least_capability_for_bf16 = 8.0;

std::string limit_text(const std::optional<double>& bytes) {
  return bytes ? capacity(static_cast<std::int64_t>(*bytes)) : "@unknown";
}

class Particulars {
 public:
  Particulars(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs)
      : memory_(memory),
        s_(memory.settings),
        diagnosis_(diagnosis),
        inputs_(inputs),
        // Adapters are merged into their matrices, and take no room of their own then.
        whole_(2 * (memory.run.is_lora ? memory.sizes.frozen : memory.sizes.total())),
        base_(frozen_bytes(memory)) {}

  void tell_all() {
    tell_whole_model();
    tell_parameter_offload();
    tell_gather_flag();
    tell_adapters();
    tell_quantised_base();
    tell_logits();
    tell_number_formats();
    tell_own_layout();
  }

 private:
  void tell(std::string_view id, Severity severity, Certainty certainty, Engine engine,
            std::vector<Slot> slots, std::string key = {}) {
    const bool of_config = inputs_.deepspeed && !key.empty();
    diagnosis_.findings.push_back(
        {.id = std::string(id),
         .severity = severity,
         .certainty = certainty,
         .engine = engine,
         .file = inputs_.deepspeed ? inputs_.deepspeed->file : inputs_.run->file,
         .key = key,
         .line = of_config ? line_of(inputs_.deepspeed->root, key) : 0,
         .slots = std::move(slots)});
  }

  void tell_whole_model() {
    if (!memory_.limits.device || whole_ <= *memory_.limits.device) return;
    tell("whole-model-above-one-card", Severity::info, Certainty::exact, Engine::both,
         {{"whole", amount(whole_)},
          {"limit", limit_text(memory_.limits.device)},
          {"tensor", amount(2 * memory_.sizes.largest_tensor)}});
  }

  void tell_parameter_offload() {
    if (!inputs_.deepspeed || s_.stage >= 3) return;
    const auto device =
        text_at(inputs_.deepspeed->root, "zero_optimization.offload_param.device").value_or("none");
    if (device == "none") return;
    const std::string key = "zero_optimization.offload_param";
    tell("weights-stay-whole", Severity::warning, Certainty::exact, Engine::both,
         {{"stage", fmt::format("{}", s_.stage)},
          {"whole", amount(whole_)},
          {"limit", limit_text(memory_.limits.device)}},
         key);
    // Our own engine has no offload: what stage 3 does with the block is DeepSpeed's alone.
    MemoryCase other = memory_;
    other.settings.stage = 3;
    other.settings.parameters = Offload::cpu;
    const Forecast forecast = forecast_of(other);
    const Holding& step = *forecast.at(Phase::step, Space::device);
    tell("parameter-offload-at-stage-3", Severity::info, Certainty::estimate, Engine::deepspeed,
         {{"range", span_of({step.low(), step.high()})},
          {"verdict", fmt::format("@verdict.{}", name_of(forecast.verdict))},
          {"do", forecast.verdict == Verdict::runs ? "\"stage\": 3" : ""}},
         key);
  }

  void tell_gather_flag() {
    if (s_.stage != 3 || !memory_.run.saves || memory_.run.is_lora) return;
    const std::string key = "zero_optimization.stage3_gather_16bit_weights_on_model_save";
    if (s_.gathers_on_save)
      tell("save-gathers-modules", Severity::info, Certainty::bound, Engine::deepspeed,
           {{"module", amount(2 * memory_.sizes.largest_tensor)}, {"whole", amount(whole_)}}, key);
    else
      tell("save-without-weights", Severity::warning, Certainty::exact, Engine::deepspeed,
           {{"every", memory_.run.save_every}, {"whole", amount(whole_)}}, key);
  }

  void tell_adapters() {
    if (!memory_.run.is_lora) return;
    tell("adapter-sizes", Severity::info, Certainty::exact, Engine::both,
         {{"count", fmt::format("{:.0f}", memory_.sizes.trainable)},
          {"size_16", amount(2 * memory_.sizes.trainable)},
          {"size_32", amount(4 * memory_.sizes.trainable)},
          {"checkpoint", amount((2 + optimizer_file_bytes(s_)) * memory_.sizes.trainable)},
          {"base", amount(base_)}});
    if (s_.stage == 3 && memory_.run.saves) {
      const double steady = [&] {
        const auto& holding = diagnosis_.deepspeed.at(Phase::step, Space::host);
        double bytes = 0;
        for (const Term& term : holding->terms)
          if (term.name != "processes") bytes += term.low_bytes;
        return bytes;
      }();
      const bool may_fail = memory_.limits.host &&
                            steady + base_ + 3e9 * memory_.ranks_on_node > *memory_.limits.host;
      tell(may_fail ? "adapter-save-may-end-the-run" : "adapter-save-collects-base",
           may_fail ? Severity::warning : Severity::info, Certainty::bound, Engine::deepspeed,
           {{"adapters", span_of(adapters_on_rank_0(memory_.sizes))},
            {"base", amount(base_)},
            {"limit", limit_text(memory_.limits.host)}});
    }
  }

  void tell_quantised_base() {
    // What is not split anyway needs no warning.
    if (memory_.sizes.quantised <= 0 || s_.stage != 3 || memory_.ranks == 1) return;
    const double bits = static_cast<double>(memory_.run.quantization_bits);
    const double values = memory_.sizes.quantised * bits / 8;
    const double double_scales = memory_.sizes.quantised * 0.127 / 8;
    const double scales_f32 = memory_.sizes.quantised * 4 / 64;
    const double scales = bits != 4                         ? 0
                          : memory_.run.double_quantization ? double_scales
                                                            : scales_f32;
    const double rest = 2 * (memory_.sizes.frozen - memory_.sizes.quantised);
    const double whole = values + scales + rest;
    const bool fails = memory_.limits.device && whole > *memory_.limits.device;
    tell("quantised-base-is-whole", fails ? Severity::error : Severity::warning, Certainty::bound,
         Engine::deepspeed,
         {{"bits", fmt::format("{:.0f}", bits)},
          {"values", amount(values)},
          {"scales", amount(scales)},
          {"rest", amount(rest)},
          {"whole", amount(whole)},
          {"if_f32", bits == 4 && memory_.run.double_quantization
                         ? fmt::format(" (@[scales.f32] {}, {})", amount(scales_f32),
                                       amount(values + scales_f32 + rest))
                         : ""},
          {"limit", limit_text(memory_.limits.device)},
          {"do", fails ? cures_of_whole_base() : ""}},
         "zero_optimization.stage");
  }

  /// The base in 16 bit, split and on the host, and the smallest cards that hold it as it is; each was judged as the run
  /// that it makes.
  std::string cures_of_whole_base() const {
    constexpr double gib = 1 << 30;
    std::string cures;
    if (inputs_.run) {
      const WordedFiles files(inputs_);
      auto words = files.words_for({.stage = 3,
                                    .optimizer = Offload::cpu,
                                    .parameters = Offload::cpu,
                                    .recomputes = memory_.run.recomputes,
                                    .micro_batch = memory_.run.micro_batch,
                                    .accumulation_steps = memory_.run.accumulation_steps},
                                   memory_);
      if (words) words->insert(words->begin(), "quantization_bit=null");
      const auto changed = words ? files.with(*words, memory_) : std::nullopt;
      if (changed) cures = base_in_16_bit(*changed, fmt::format("{}", fmt::join(*words, " ")));
    }
    // Where they may do, and where they do.
    constexpr int step_gib = 8, most_gib = 1024;
    int may_do_gib = 0;
    for (int card_gib = step_gib; card_gib <= most_gib; card_gib += step_gib) {
      MemoryCase other = memory_;
      other.limits.device = card_gib * gib;
      const Verdict verdict = forecast_of(other).verdict;
      if (verdict == Verdict::fails) continue;
      if (may_do_gib == 0) may_do_gib = card_gib;
      if (verdict != Verdict::runs) continue;
      cures += fmt::format("{}@[base.larger-cards] {} GiB", cures.empty() ? "" : "; ", may_do_gib);
      if (card_gib > may_do_gib) cures += fmt::format("@[base.to-be-sure] {} GiB", card_gib);
      break;
    }
    return cures;
  }

  /// "" where it fails.
  static std::string base_in_16_bit(const MemoryCase& changed, const std::string& words) {
    const Forecast forecast = forecast_of(changed);
    const auto tightest = tightest_of(forecast, changed.resumes, false);
    if (forecast.verdict == Verdict::fails || !tightest) return "";
    return fmt::format(
        "@[base.in-16-bit] {}: {} (@[verdict.{}]: @[space.{}] @[phase.{}] {})",
        amount(2 * changed.sizes.frozen), words, name_of(forecast.verdict),
        name_of(tightest->space), name_of(tightest->phase),
        span_of({tightest->holding->low(), tightest->holding->high_without(rounding_term)}));
  }

  /// What transformers' code holds of a micro-batch, and that fused attention is not for f32 where heads share keys.
  void tell_activations() {
    const ActivationQuestion question = activations_of(memory_);
    const Range kept = kept_activations(question);
    tell("activations-kept", Severity::info, Certainty::estimate, Engine::deepspeed,
         {{"kept", span_of(kept)},
          {"layer", span_of(layer_work(question))},
          {"loss", span_of(logits_and_loss(question))},
          {"recompute", question.recomputes ? "@activations.recomputed" : "@activations.kept"}});
    if (question.has_eager_attention || !may_fall_back_to_scores(question)) return;
    ActivationQuestion in_16_bit = question;
    in_16_bit.element_bytes = 2;
    tell("scores-in-f32", Severity::warning, Certainty::estimate, Engine::deepspeed,
         {{"query_heads", fmt::format("{}", question.model.query_heads)},
          {"key_heads", fmt::format("{}", question.model.key_heads)},
          {"peak", span_of(activation_peak(question))},
          {"peak_16", span_of(activation_peak(in_16_bit))}});
  }

  void tell_logits() {
    // Once the data are known our micro-batches are shorter: they have no padding.
    const Engine of_padded = memory_.data != nullptr ? Engine::deepspeed : Engine::both;
    if (!memory_.run.recomputes) {
      const double tokens = static_cast<double>(memory_.run.micro_batch) * memory_.tokens;
      const double values = least_values_per_token(*memory_.model);
      const double layers = static_cast<double>(memory_.model->layers);
      const double element = s_.is_16_bit ? 2 : 4;
      tell("activations-at-least", Severity::info, Certainty::bound, of_padded,
           {{"bytes", amount(layers * tokens * values * element)},
            {"layers", fmt::format("{:.0f}", layers)},
            {"tokens", fmt::format("{:.0f}", tokens)},
            {"values", fmt::format("{:.0f}", values)},
            {"element", fmt::format("{:.0f}", element)}});
    }
    tell_activations();
    const double vocabulary = static_cast<double>(memory_.model->vocabulary);
    const double batch = static_cast<double>(memory_.run.micro_batch) * memory_.tokens;
    tell("logits-whole", Severity::info, Certainty::exact, of_padded,
         {{"sequences", fmt::format("{}", memory_.run.micro_batch)},
          {"tokens", fmt::format("{:.0f}", memory_.tokens)},
          {"vocabulary", fmt::format("{:.0f}", vocabulary)},
          {"f32", amount(4 * batch * vocabulary)},
          {"f16", amount(2 * batch * vocabulary)}});
    if (!memory_.run.evaluates && !memory_.run.keeps_logits && !inputs_.data_shape) return;
    double samples = memory_.evaluation_samples;
    const double tokens = memory_.evaluation_tokens;
    const double evaluation_batch = static_cast<double>(memory_.run.evaluation_batch);
    const double one = 4 * evaluation_batch * tokens * vocabulary;
    const bool is_counted = samples > 0 || memory_.data != nullptr;
    if (!is_counted && memory_.run.keeps_logits && memory_.run.evaluates) samples = 1000;
    if (samples <= 0)
      return tell("evaluation-of-one-batch", Severity::info, Certainty::exact, Engine::both,
                  {{"batch", fmt::format("{:.0f}", evaluation_batch)},
                   {"tokens", fmt::format("{:.0f}", tokens)},
                   {"one", amount(one)}});
    const double all = 4 * samples * tokens * vocabulary;
    const bool keeps = memory_.run.keeps_logits;
    const bool would_fail = keeps && memory_.limits.host && all > *memory_.limits.host;
    // Whoever asks for accuracy has each batch reduced to token ids; else the logits are kept as they are.
    const bool is_raw = keeps && !memory_.run.reduces_logits;
    const bool fails = would_fail && is_raw && memory_.run.evaluates;
    tell(!is_counted ? "evaluation-keeps-logits-of-many"
         : is_raw    ? "evaluation-keeps-raw-logits"
         : keeps     ? "evaluation-keeps-logits"
                     : "evaluation-of-all-samples",
         fails && is_counted ? Severity::error
         : would_fail        ? Severity::warning
                             : Severity::info,
         Certainty::exact, is_raw ? Engine::deepspeed : Engine::both,
         {{"samples", fmt::format("{:.0f}", samples)},
          {"tokens", fmt::format("{:.0f}", tokens)},
          {"batch", fmt::format("{:.0f}", evaluation_batch)},
          {"one", amount(one)},
          {"all", amount(all)},
          {"all_16", amount(all / 2)},
          {"ids", amount(4 * samples * tokens)},
          {"ids_64", amount(8 * samples * tokens)},
          {"limit", limit_text(memory_.limits.host)}});
  }

  void tell_number_formats() {
    const bool fp16 = s_.is_16_bit && !s_.is_bf16;
    std::optional<double> capability;
    if (inputs_.machine && inputs_.machine->compute_capability)
      capability = std::atof(inputs_.machine->compute_capability->c_str());
    const bool has_no_bf16 = capability && *capability < least_capability_for_bf16;
    if (fp16 && memory_.model->stored_type == DType::bf16)
      tell("bf16-weights-in-fp16", Severity::warning, Certainty::bound, Engine::both,
           {{"state_16", amount(state_of_rank({2, 2, 12}).total())},
            {"state_32", amount(state_of_rank({4, 4, 8}).total())},
            // From stage 1 on DeepSpeed keeps a master copy of f32 weights too.
            {"theirs_32", amount(state_of_rank({4, 4, s_.stage == 0 ? 8.0 : 12.0}).total())},
            {"advice", has_no_bf16  ? "@no-bf16-there"
                       : capability ? "@use-bf16"
                                    : "@use-bf16-if-there"}},
           "fp16.enabled");
    if (s_.is_bf16 && s_.is_16_bit && has_no_bf16)
      tell("no-bf16-on-this-gpu", Severity::error, Certainty::exact, Engine::both,
           {{"capability", *inputs_.machine->compute_capability}}, "bf16.enabled");
  }

  /// Bytes of a parameter.
  struct ElementBytes {
    double weight = 0, gradient = 0, optimizer = 0;
  };
  struct RankState {
    double weights = 0, gradients = 0, optimizer = 0;
    double total() const { return weights + gradients + optimizer; }
  };
  /// Split as the stage says, wherever it lies: the optimizer from 1 on, gradients from 2 on, weights and what is frozen
  /// at 3.
  RankState state_of_rank(const ElementBytes& bytes) const {
    const double psi = memory_.sizes.trainable;
    const double frozen = bytes.weight * (memory_.sizes.frozen - memory_.sizes.quantised) +
                          quantised_bytes(memory_.run) * memory_.sizes.quantised;
    const auto part = [&](int stage) { return s_.stage >= stage ? memory_.ranks : 1.0; };
    return {.weights = (bytes.weight * psi + frozen) / part(3),
            .gradients = bytes.gradient * psi / part(2),
            .optimizer = bytes.optimizer * psi / part(1)};
  }

  /// What a node would page-lock of our layout on the host, against its limit; "" where that is not known.
  std::string locked_text(const Holding& host) const {
    if (!memory_.limits.page_locked || host.terms.empty()) return "";
    const double nodes = memory_.ranks / memory_.ranks_on_node;
    const Range locked{host.low() / nodes, host.high() / nodes};
    const double limit = *memory_.limits.page_locked;
    return fmt::format("@[layout.locked] {} @[layout.of-limit] {}@[layout.{}]", span_of(locked),
                       capacity(static_cast<std::int64_t>(limit)),
                       locked.high <= limit  ? "locks-fit"
                       : locked.low <= limit ? "locks-may-not-fit"
                                             : "locks-do-not-fit");
  }

  /// Our own layout, all there before the first step. Bytes a parameter: 2 for weights, 2 for gradients, 12 for state in
  /// 16 bit, gradients in 4 where they are summed in fp32, as without a DeepSpeed config; 2, 2 and 4 in pure_bf16; 4, 4 and
  /// 8 in fp32.
  void tell_own_layout() {
    const bool is_pure = memory_.run.pure_bf16;
    const double weight_bytes = s_.is_16_bit ? 2 : 4;
    const double gradient_bytes = is_pure             ? weight_bytes
                                  : inputs_.deepspeed ? std::max(weight_bytes, s_.gradient_bytes)
                                                      : 4;
    const double state_bytes = is_pure ? 4 : s_.is_16_bit ? 12 : 8;
    const double psi = memory_.sizes.trainable;
    const double whole = weight_bytes * psi + base_;
    const auto [weights, gradients, state] =
        state_of_rank({weight_bytes, gradient_bytes, state_bytes});
    const bool has_optimizer = s_.optimizer == Offload::none;
    const bool has_weights = s_.parameters == Offload::none;
    const auto layout = [&](bool moves_optimizer, bool moves_weights) {
      Holding device;
      if (!moves_weights) device.add("weights", weights);
      device.add("gradients", moves_optimizer ? 0 : gradients, gradients);
      if (!moves_optimizer) device.add("optimizer", state);
      return device;
    };
    const Holding all = layout(false, false);
    const auto said = [](const Holding& holding) {
      return span_of({holding.low(), holding.high()});
    };
    if (has_optimizer && has_weights)
      return tell("own-layout", Severity::info, Certainty::bound, Engine::underkeel,
                  {{"stage", fmt::format("{}", s_.stage)},
                   {"device", said(all)},
                   {"terms", largest_terms(all, 3)}});
    const Holding device = layout(!has_optimizer, !has_weights);
    Holding host, nvme;
    if (!has_optimizer) {
      (s_.optimizer == Offload::nvme ? nvme : host).add("optimizer", state_bytes * psi);
      host.add("gradients", 0, gradient_bytes * psi);
    }
    if (s_.parameters == Offload::nvme) {
      nvme.add("weights", whole);
      host.add("weights", 0, whole);
    } else if (!has_weights) {
      host.add("weights", whole, 2 * whole);
    }
    tell("own-layout-with-offload", Severity::info, Certainty::bound, Engine::underkeel,
         {{"stage", fmt::format("{}", s_.stage)},
          {"device", said(device)},
          {"terms", largest_terms(device, 3)},
          {"host", said(host)},
          {"host_terms", largest_terms(host, 3)},
          {"nvme", nvme.terms.empty() ? std::string()
                                      : fmt::format("@[layout.and-nvme] {} ({})", said(nvme),
                                                    largest_terms(nvme, 3))},
          {"locked", locked_text(host)},
          {"all", said(all)}});
    // The swap folder is one of each node.
    const double nodes = memory_.ranks / memory_.ranks_on_node;
    const double of_node = nvme.low() / nodes;
    if (memory_.limits.nvme && of_node > *memory_.limits.nvme)
      tell("own-layout-nvme-short", Severity::warning, Certainty::bound, Engine::underkeel,
           {{"low", amount(of_node)},
            {"terms", largest_terms(nvme, 3)},
            {"limit", limit_text(memory_.limits.nvme)}});
  }

  const MemoryCase& memory_;
  const DeepspeedSettings& s_;
  Diagnosis& diagnosis_;
  const Inputs& inputs_;
  double whole_;  // in 16 bit
  double base_;   // the frozen part, as the run holds it
};

}  // namespace

void tell_particulars(const MemoryCase& memory, Diagnosis& diagnosis, const Inputs& inputs) {
  Particulars(memory, diagnosis, inputs).tell_all();
}

}  // namespace underkeel::doctor
