#include "doctor/memory_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/document.h"
#include "doctor/folder_rules.h"
#include "doctor/packing_rules.h"
#include "doctor/sample_rules.h"
#include "doctor/trainer_loop.h"

namespace underkeel::doctor {
namespace {

Range times(Range range, double factor) {
  return {range.low * factor, range.high * factor};
}

}  // namespace

double quantised_bytes(const RunFacts& run) {
  if (run.quantization_bits != 4) return static_cast<double>(run.quantization_bits) / 8;
  return 0.5 + (run.double_quantization ? 0.127 / 8 : 4.0 / 64);
}

double frozen_bytes(const MemoryCase& memory) {
  const double element = memory.settings.is_16_bit ? 2 : 4;
  return element * (memory.sizes.frozen - memory.sizes.quantised) +
         quantised_bytes(memory.run) * memory.sizes.quantised;
}

Limits limits_of(const Question& question, const Inputs& inputs) {
  Limits limits;
  const auto bytes = [](std::int64_t size) { return static_cast<double>(size); };
  if (inputs.machine) {
    const spec::HardwareSpec& machine = *inputs.machine;
    if (machine.gpu_mem_bytes > 0) limits.device = bytes(machine.gpu_mem_bytes);
    if (machine.host_ram_bytes > 0) limits.host = bytes(machine.host_ram_bytes);
    if (machine.memlock_bytes) limits.page_locked = bytes(*machine.memlock_bytes);
    if (machine.swap_free_bytes) limits.nvme = bytes(*machine.swap_free_bytes);
  }
  const auto tighten = [&](std::optional<double>& limit, std::optional<std::int64_t> budget) {
    if (budget) limit = std::min(limit.value_or(bytes(*budget)), bytes(*budget));
  };
  tighten(limits.device, question.device_budget_bytes);
  tighten(limits.host, question.host_budget_bytes);
  return limits;
}

namespace {

/// accelerate may bring DeepSpeed without a config of it.
bool is_trainers_loop(const Inputs& inputs) {
  return inputs.run && !inputs.deepspeed &&
         !(inputs.accelerate &&
           text_at(inputs.accelerate->root, "distributed_type") == "DEEPSPEED");
}

Forecast memory_of(const DeepspeedRun& run) {
  return run.settings.is_trainers_loop ? trainer_loop_memory(run) : deepspeed_memory(run);
}

}  // namespace

void take_settings(const Inputs& inputs, MemoryCase& memory) {
  memory.under_trainer = inputs.run || inputs.accelerate;
  const spec::Value no_config;
  const spec::Value& config = inputs.deepspeed ? inputs.deepspeed->root : no_config;
  memory.is_for_trainer = memory.under_trainer || has_auto(config);
  std::optional<RunFacts> run;
  if (inputs.run) {
    run = run_facts(inputs.run->root);
    memory.run = *run;
  } else {
    memory.run.is_lora = false;
    const ConfigBatch batch = batch_of_config(config, inputs.ranks.count);
    memory.run.micro_batch = batch.micro_batch;
    memory.run.accumulation_steps = batch.accumulation_steps;
    memory.run.saves = true;
    memory.run.save_every = "@unknown";
  }
  memory.sizes = sizes_of(*memory.model, memory.run);
  memory.settings = settings_of(config, run, memory.model->width);
  memory.settings.is_trainers_loop = is_trainers_loop(inputs);
  memory.settings.is_pure_bf16 = memory.run.pure_bf16;
  memory.uncounted.reset();
  for (const Uncounted& each : uncounted_settings(inputs))
    memory.uncounted = memory.uncounted.value_or(Bound{}) & each.bound;
}

namespace {

/// What is evaluated: by the data that were read, else by a description of them, else by a `val_size` that is a count.
void take_evaluation(const Question& question, const Inputs& inputs, MemoryCase& memory) {
  memory.evaluation_tokens = memory.tokens;
  const auto padded = [&](std::int64_t tokens) {
    return static_cast<double>(inputs.run ? padded_positions(inputs.run->root, tokens) : tokens);
  };
  if (question.data) {
    const spec::LargestBatches& held_out = question.data->sizes.evaluation;
    memory.evaluation_samples = static_cast<double>(held_out.sample_count);
    if (held_out.sample_count > 0) memory.evaluation_tokens = padded(held_out.longest);
  } else if (const auto described = described_evaluation(inputs)) {
    memory.evaluation_samples = static_cast<double>(described->count);
    memory.evaluation_tokens = padded(described->longest);
  } else if (inputs.run) {
    const double held_out = number_at(inputs.run->root, "val_size").value_or(0);
    if (held_out > 1) memory.evaluation_samples = std::floor(held_out);
  }
}

}  // namespace

std::optional<MemoryCase> memory_case(const Question& question, const Inputs& inputs) {
  // What an unread file says is not what stands for it; what DeepSpeed makes of a refused key nobody can tell.
  if (inputs.has_unread || inputs.zero_is_refused) return std::nullopt;
  if (!inputs.model || (!inputs.deepspeed && !inputs.run)) return std::nullopt;
  MemoryCase memory;
  memory.model = &*inputs.model;
  take_settings(inputs, memory);
  memory.limits = limits_of(question, inputs);
  memory.ranks = static_cast<double>(inputs.ranks.count);
  memory.ranks_on_node = static_cast<double>(inputs.ranks.on_node);
  std::optional<std::int64_t> longest;
  if (question.data) {
    memory.data = &*question.data;
    longest = question.data->sizes.training.longest;
  }
  memory.tokens = static_cast<double>(inputs.run ? padded_positions(inputs.run->root, longest)
                                                 : memory.run.cutoff_tokens);
  take_evaluation(question, inputs, memory);
  memory.is_alone = !inputs.run;
  // Beside a description of a model there are no data: what is asked about is that length, where a run file has it.
  memory.is_cutoff = memory.is_alone || (!question.data && !inputs.model_folder.empty() &&
                                         !is_packed(inputs.run->root));
  memory.resumes = question.resumes || memory.run.resumes || !resumed_by_itself(inputs).empty();
  return memory;
}

ActivationQuestion activations_of(const MemoryCase& memory) {
  const RunFacts& run = memory.run;
  const bool adapts_all =
      run.lora_targets.empty() ||
      std::find(run.lora_targets.begin(), run.lora_targets.end(), "all") != run.lora_targets.end();
  return {.model = *memory.model,
          .sequences = static_cast<double>(run.micro_batch),
          .tokens = memory.tokens,
          .recomputes = run.recomputes,
          .element_bytes = memory.settings.is_16_bit ? 2.0 : 4.0,
          .has_eager_attention = run.has_eager_attention,
          .has_fused_kernels = run.has_fused_kernels,
          .is_lora = run.is_lora,
          .adapts_all = adapts_all,
          .has_adapter_dropout = run.lora_dropout > 0};
}

namespace {

DeepspeedRun run_of(const MemoryCase& memory) {
  const ActivationQuestion training = activations_of(memory);
  ActivationQuestion evaluating = training;
  evaluating.tokens = memory.evaluation_tokens;
  evaluating.sequences = static_cast<double>(memory.run.evaluation_batch);
  return {.sizes = memory.sizes,
          .settings = memory.settings,
          .ranks = memory.ranks,
          .ranks_on_node = memory.ranks_on_node,
          .accumulation_steps = static_cast<double>(memory.run.accumulation_steps),
          .quantised_bytes = quantised_bytes(memory.run),
          .activations = backward_activations(training),
          .evaluation = times(evaluation_peak(evaluating), 1),
          .evaluates = memory.run.evaluates,
          .saves = memory.run.saves,
          .saves_adapters_only = memory.run.is_lora,
          .built_sharded = memory.settings.stage == 3 && memory.is_for_trainer,
          .device_limit = memory.limits.device};
}

}  // namespace

Forecast state_forecast_of(const MemoryCase& memory) {
  DeepspeedRun run = run_of(memory);
  run.activations = {};
  run.evaluation = {};
  run.has_process = false;
  return memory_of(run);
}

namespace {

Forecast forecast_with_limits(const MemoryCase& memory) {
  Forecast forecast = memory_of(run_of(memory));
  for (auto& spaces : forecast.memory) {
    const std::optional<double> limits[] = {memory.limits.device, memory.limits.page_locked,
                                            memory.limits.host, memory.limits.nvme};
    for (std::size_t s = 0; s < space_count; ++s)
      if (spaces[s]) spaces[s]->limit_bytes = limits[s];
  }
  return forecast;
}

bool is_weights(const Term& term) {
  return term.name == "weights" || term.name == "quantised" || term.name == "whole_model" ||
         term.name == "context" || term.name == "processes";
}

}  // namespace

Forecast forecast_of(const MemoryCase& memory) {
  Forecast forecast = forecast_with_limits(memory);
  forecast.verdict = verdict_of(forecast, memory.limits, memory.resumes);
  if (!memory.uncounted && !(memory.is_cutoff && forecast.verdict == Verdict::fails))
    return forecast;
  const Verdict least = verdict_of(least_of(forecast, memory), memory.limits, memory.resumes);
  forecast.verdict = least == Verdict::fails ? Verdict::fails : Verdict::unknown;
  return forecast;
}

Forecast least_of(const Forecast& forecast, const MemoryCase& memory) {
  Forecast least = forecast;
  if (memory.is_cutoff || (memory.uncounted && !memory.uncounted->of_activations)) {
    MemoryCase shortest = memory;
    shortest.tokens = shortest.evaluation_tokens = 1;
    shortest.run.saves = memory.run.saves && !memory.is_alone;
    least = forecast_with_limits(shortest);
  }
  if (!memory.uncounted) return least;
  for (auto& spaces : least.memory)
    for (std::size_t s = 0; s < space_count; ++s) {
      std::optional<Holding>& holding = spaces[s];
      if (!holding) continue;
      const bool is_device = static_cast<Space>(s) == Space::device;
      if (!(is_device ? memory.uncounted->of_device : memory.uncounted->of_host))
        holding->limit_bytes.reset();
      if (!memory.uncounted->of_training)
        std::erase_if(holding->terms, [](const Term& term) { return !is_weights(term); });
      // Without what the update copies too: that is Adam's.
      if (!memory.uncounted->of_moments)
        std::erase_if(holding->terms, [](const Term& term) {
          return term.name == "moments" || term.name == "update_copies" ||
                 term.name == "optimizer" || term.name == "optimizer_file" ||
                 term.name == "nvme_buffers";
        });
    }
  return least;
}

Verdict verdict_of(const Forecast& forecast, const Limits& limits, bool resumes) {
  bool is_sure = limits.device.has_value();
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (static_cast<Phase>(p) == Phase::resume && !resumes) continue;
    for (const auto& holding : forecast.memory[p]) {
      if (!holding || !holding->limit_bytes) continue;
      if (holding->low() > *holding->limit_bytes) return Verdict::fails;
      is_sure = is_sure && holding->high_without(rounding_term) <= *holding->limit_bytes;
    }
  }
  return is_sure ? Verdict::runs : Verdict::unknown;
}

std::optional<Verdict> resume_verdict(const MemoryCase& memory, const Forecast& forecast) {
  const auto& holding = forecast.at(Phase::resume, Space::host);
  if (!holding || !memory.limits.host) return std::nullopt;
  const bool has_no_state = !memory.run.saves && !memory.resumes;
  if (has_no_state || memory.settings.optimizer == Offload::nvme) return Verdict::runs;
  if (holding->low() > *memory.limits.host) return Verdict::fails;
  return holding->high_without(rounding_term) > *memory.limits.host ? Verdict::unknown
                                                                    : Verdict::runs;
}

std::optional<Tightest> tightest_of(const Forecast& forecast, bool resumes, bool at_least) {
  std::optional<Tightest> tightest;
  double most = -1;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (static_cast<Phase>(p) == Phase::resume && !resumes) continue;
    for (std::size_t s = 0; s < space_count; ++s) {
      const auto& holding = forecast.memory[p][s];
      if (!holding || !holding->limit_bytes || *holding->limit_bytes <= 0) continue;
      const double held = at_least ? holding->low() : holding->high_without(rounding_term);
      const double share = held / *holding->limit_bytes;
      if (share <= most) continue;
      most = share;
      tightest = Tightest{static_cast<Phase>(p), static_cast<Space>(s), &*holding};
    }
  }
  return tightest;
}

std::vector<Shortage> shortages_of(const Forecast& least, bool resumes) {
  // In the order of time. The first update of a fresh run comes before any step that has moments; a resume follows the
  // load and brings them.
  using PhaseOrder = std::array<Phase, phase_count - 1>;
  constexpr PhaseOrder fresh = {Phase::load,     Phase::first_step, Phase::update,    Phase::step,
                                Phase::evaluate, Phase::save,       Phase::after_save};
  constexpr PhaseOrder resumed = {Phase::load,     Phase::resume, Phase::step,      Phase::update,
                                  Phase::evaluate, Phase::save,   Phase::after_save};
  std::vector<Shortage> shortages;
  for (std::size_t s = 0; s < space_count; ++s) {
    const Space space = static_cast<Space>(s);
    std::optional<Shortage> shortage;
    for (const Phase phase : resumes ? resumed : fresh) {
      const auto& holding = least.at(phase, space);
      if (!holding || !holding->limit_bytes || holding->low() <= *holding->limit_bytes) continue;
      if (!shortage) shortage = Shortage{.space = space, .first = phase, .most = phase};
      if (holding->low() > least.at(shortage->most, space)->low()) shortage->most = phase;
    }
    if (shortage) shortages.push_back(*shortage);
  }
  return shortages;
}

std::string largest_terms(const Holding& holding, std::size_t count) {
  std::vector<const Term*> terms;
  for (const Term& term : holding.terms)
    if (term.high_bytes > 0) terms.push_back(&term);
  std::stable_sort(terms.begin(), terms.end(), [](const Term* a, const Term* b) {
    return a->low_bytes + a->high_bytes > b->low_bytes + b->high_bytes;
  });
  // What is not named by itself is told together, so that the parts are the whole. One alone takes no more words.
  Term others{.name = "others"};
  if (terms.size() > count + 1) {
    for (std::size_t i = count; i < terms.size(); ++i) {
      others.low_bytes += terms[i]->low_bytes;
      others.high_bytes += terms[i]->high_bytes;
    }
    terms.resize(count);
    terms.push_back(&others);
  }
  std::string text;
  for (const Term* term : terms)
    text += fmt::format("{}@[term.{}] {}", text.empty() ? "" : ", ", term->name,
                        span_of({term->low_bytes, term->high_bytes}));
  return text;
}

std::string span_of(Range range) {
  return amount(range.low) == amount(range.high)
             ? amount(range.low)
             : fmt::format("{} - {}", amount(range.low), amount(range.high));
}

namespace {

/// Why memory is not judged, where no other finding says so.
void tell_unjudged(const Inputs& inputs, Diagnosis& diagnosis) {
  if (inputs.model || inputs.has_unread || (!inputs.deepspeed && !inputs.run)) return;
  const auto refused =
      std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& each) { return each.id == "model-unsupported"; });
  if (refused != diagnosis.findings.end())
    diagnosis.findings.push_back({.id = "memory-of-unknown-model",
                                  .engine = Engine::deepspeed,
                                  .file = refused->file,
                                  .slots = {{"model", inputs.model_file}}});
  else if (!inputs.model_is_refused && !inputs.model_is_elsewhere)
    diagnosis.findings.push_back({.id = "memory-without-model",
                                  .file = inputs.run ? inputs.run->file : inputs.deepspeed->file});
}

/// What the figures are of, where no config says it.
void tell_no_config(const MemoryCase& memory, const Inputs& inputs, Diagnosis& diagnosis) {
  const bool is_loop = memory.settings.is_trainers_loop;
  const LoopBytes bytes = loop_bytes(memory.settings);
  const auto count = [](double each) { return fmt::format("{:.0f}", each); };
  diagnosis.findings.push_back({.id = is_loop ? "no-deepspeed-config" : "no-deepspeed-config-named",
                                .certainty = Certainty::estimate,
                                .engine = Engine::deepspeed,
                                .file = inputs.run->file,
                                .slots = {{"total", count(bytes.total())},
                                          {"weight", count(bytes.weight)},
                                          {"gradient", count(bytes.gradient)},
                                          {"moments", count(bytes.moments)}}});
}

}  // namespace

void look_at_memory(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  tell_exports(question, inputs, diagnosis);
  const auto memory = memory_case(question, inputs);
  if (!memory) return tell_unjudged(inputs, diagnosis);
  diagnosis.deepspeed = forecast_of(*memory);
  for (Alternative& row : deepspeed_alternatives(*memory, inputs))
    diagnosis.alternatives.push_back(std::move(row));
  if (!inputs.deepspeed) tell_no_config(*memory, inputs, diagnosis);
  for (const Uncounted& each : uncounted_settings(inputs))
    diagnosis.findings.push_back(
        {.id = "deepspeed-not-counted",
         .severity = Severity::warning,
         .certainty = Certainty::estimate,
         .engine = Engine::deepspeed,
         .file = each.file,
         .key = each.key,
         .slots = {{"key", each.key}, {"value", each.value}, {"why", each.why}}});
  tell_verdict(*memory, diagnosis, inputs);
  tell_phases(*memory, diagnosis, inputs);
  tell_particulars(*memory, diagnosis, inputs);
  tell_disk(*memory, diagnosis, inputs);
}

Range on_device(const Forecast& forecast) {
  Range worst;
  for (const auto& spaces : forecast.memory)
    if (const auto& holding = spaces[static_cast<std::size_t>(Space::device)]) {
      worst.low = std::max(worst.low, holding->low());
      worst.high = std::max(worst.high, holding->high());
    }
  return worst;
}

Phase worst_phase(const Forecast& forecast, Space space, Phase otherwise) {
  Phase worst = otherwise;
  for (std::size_t p = 0; p < phase_count; ++p) {
    const auto& each = forecast.at(static_cast<Phase>(p), space);
    const auto& most = forecast.at(worst, space);
    if (each && (!most || each->low() > most->low())) worst = static_cast<Phase>(p);
  }
  return worst;
}

}  // namespace underkeel::doctor
