// Figures of claims that a run fits, or takes so much: each the forecast of the run with that change alone.

#include <fmt/format.h>

#include "doctor/advice_claims.h"
#include "doctor/advice_sheet.h"
#include "doctor/config_rules.h"

namespace underkeel::doctor {
namespace {

/// Whether what was said of an amount is so, of a need that is only known as a range.
std::string_view verdict_on(const SaidAmount& said, const Range& need) {
  constexpr double near = 0.1;  // what people round to
  switch (said.bound) {
    case SaidAmount::Bound::at_most:
      return need.high <= said.bytes ? verdict_yes
             : need.low > said.bytes ? verdict_no
                                     : verdict_half;
    case SaidAmount::Bound::at_least:
      return need.low >= said.bytes   ? verdict_yes
             : need.high < said.bytes ? verdict_no
                                      : verdict_half;
    case SaidAmount::Bound::about:
      break;
  }
  const bool is_within =
      said.bytes >= (1 - near) * need.low && said.bytes <= (1 + near) * need.high;
  return is_within ? verdict_yes : verdict_no;
}

}  // namespace

HostNeed host_need(const Forecast& forecast, bool resumes) {
  HostNeed need;
  for (std::size_t p = 0; p < phase_count; ++p) {
    const auto phase = static_cast<Phase>(p);
    const auto& holding = forecast.at(phase, Space::host);
    if (!holding || (phase == Phase::resume && !resumes)) continue;
    need.bytes.high = std::max(need.bytes.high, holding->high());
    if (holding->low() <= need.bytes.low) continue;
    need.bytes.low = holding->low();
    need.phase = phase;
  }
  return need;
}

MemoryCase run_at_stage(const MemoryCase& memory, const Inputs& inputs, int stage) {
  MemoryCase changed = memory;
  changed.settings.stage = stage;
  changed.settings.uses_bf16_optimizer = false;
  const auto overlap = inputs.deepspeed
                           ? truth_at(inputs.deepspeed->root, "zero_optimization.overlap_comm")
                           : std::nullopt;
  changed.settings.overlap_comm = overlap.value_or(stage == 3);
  if (stage < 3) changed.settings.parameters = Offload::none;
  if (stage < 1) changed.settings.optimizer = Offload::none;
  return changed;
}

void add_fit_figures(const MemoryCase& memory, const Inputs& inputs, const AskedNumber& asked,
                     AdviceSheet& sheet) {
  const auto add = [&](std::string_view name, const MemoryCase& changed) {
    const Forecast forecast = forecast_of(changed);
    const Range device = on_device(forecast);
    const HostNeed host = host_need(forecast, changed.resumes);
    sheet.size(fmt::format("{}_low", name), device.low);
    sheet.size(fmt::format("{}_high", name), device.high);
    sheet.size(fmt::format("{}_host", name), host.bytes.low);
    sheet.say(fmt::format("{}_host_phase", name), fmt::format("@phase.{}", name_of(host.phase)));
    sheet.judge_run(name, forecast, memory.limits.device.has_value());
    if (asked.amount)
      sheet.judge(fmt::format("{}_amount", name),
                  verdict_on(*asked.amount, asked.amount->is_of_host ? host.bytes : device));
  };
  const auto with = [&](int stage, Offload optimizer, Offload parameters) {
    MemoryCase changed = run_at_stage(memory, inputs, stage);
    changed.settings.optimizer = optimizer;
    changed.settings.parameters = parameters;
    return changed;
  };
  const auto with_adapters = [&](std::int64_t bits) {
    MemoryCase changed = memory;
    if (!memory.run.is_lora) changed.run.lora_rank = RunFacts{}.lora_rank;
    changed.run.is_lora = true;
    changed.run.quantization_bits = bits;
    changed.sizes = sizes_of(*changed.model, changed.run);
    return changed;
  };
  add("stage2_plain", with(2, Offload::none, Offload::none));
  add("stage3_plain", with(3, Offload::none, Offload::none));
  add("stage2_offloaded", with(2, Offload::cpu, Offload::none));
  add("offload_run", with(std::max(2, memory.settings.stage), Offload::cpu, Offload::none));
  add("lora_run", with_adapters(0));
  add("qlora_run", with_adapters(4));
}

}  // namespace underkeel::doctor
