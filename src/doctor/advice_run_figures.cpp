// What answers to advice on the run around a config name: each figure once as the run is, and once as the advice makes it.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "doctor/advice_rules.h"
#include "doctor/advice_sheet.h"
#include "doctor/config_rules.h"
#include "doctor/log_reader.h"

namespace underkeel::doctor {
namespace {

constexpr double gib_of_card = 1024.0 * 1024 * 1024;
// Master, two moments and gradients: what the update of a sub-group reads from the disk, in f32.
constexpr double buffers_of_sub_group = 4;

}  // namespace

double state_on_device(const MemoryCase& memory) {
  const Forecast state = state_forecast_of(memory);
  double most = 0;
  for (const Phase phase : {Phase::step, Phase::update})
    most = std::max(most, state.at(phase, Space::device)->low());
  return most;
}

namespace {

double least_activations(const MemoryCase& memory) {
  return activation_peak(activations_of(memory)).low;
}

double least_on_device(const Forecast& forecast) {
  return on_device(forecast).low;
}

class RunFigures : private AdviceSheet {
 public:
  RunFigures(MemoryCase memory, const Inputs& inputs, const AskedNumber& asked,
             std::map<std::string, std::string>& figures)
      : AdviceSheet(memory.limits.device.value_or(80 * gib_of_card), figures),
        memory_(std::move(memory)),
        inputs_(inputs),
        asked_(asked),
        forecast_(forecast_of(memory_)),
        card_(card_bytes()) {}

  void add() {
    if (asked_.quantity == Quantity::batch || asked_.quantity == Quantity::tokens)
      return add_activations();
    if (asked_.quantity == Quantity::rank) add_method();
    if (asked_.said) return add_method_figures(memory_, inputs_, asked_, *this);
    add_allocator();
    add_gathered();
    add_activations();
    add_attention();
    add_moments();
    add_method();
    add_offload();
    add_disk();
    add_method_figures(memory_, inputs_, asked_, *this);
    add_fit_figures(memory_, inputs_, asked_, *this);
  }

 private:
  /// Of the last log that tells what its GPU held.
  std::optional<OutOfMemory> logged() const {
    std::optional<OutOfMemory> last;
    for (const Document& document : inputs_.others) {
      if (document.kind != FileKind::log) continue;
      const LogSummary log = read_log(document.text);
      if (log.out_of_memory && log.out_of_memory->reserved_unused) last = log.out_of_memory;
    }
    return last;
  }

  void add_allocator() {
    const Holding& step = *forecast_.at(Phase::step, Space::device);
    const double waste = term_bytes(forecast_, Phase::step, Space::device, "allocator");
    double fragments = waste, allocated = step.high() - waste, card = card_;
    say("fragments_source", "@fragments.forecast");
    // Without what is held back it would fit, or there is a shortfall that nothing of the kind cures.
    std::string_view truth = step.high() > card && allocated <= card ? verdict_yes
                             : least_on_device(forecast_) > card     ? verdict_no
                                                                     : verdict_half;
    if (const auto error = logged()) {
      fragments = *error->reserved_unused;
      allocated = error->allocated.value_or(allocated);
      card = error->total.value_or(card);
      say("fragments_source", "@fragments.log");
      if (error->tried)
        truth = fragments + error->free.value_or(0) >= *error->tried ? verdict_yes : verdict_no;
    }
    size("fragments", fragments);
    size("allocated", allocated);
    say("fragments_card", capacity(static_cast<std::int64_t>(card)));
    judge("fragments", truth);
  }

  void add_gathered() {
    const auto gathered = [](const MemoryCase& memory) {
      return term_bytes(state_forecast_of(memory), Phase::step, Space::device, "live");
    };
    MemoryCase least = memory_;
    least.settings.max_live = 0;
    least.settings.max_reuse_distance = 0;
    least.settings.prefetch_bucket = 0;
    const double now = gathered(memory_), then = gathered(least);
    count("stage_now", memory_.settings.stage);
    size("live_now", now);
    size("live_least", then);
    judge_change("live", now - then, least);
  }

  void add_activations() {
    const double now = least_activations(memory_);
    count("micro", static_cast<double>(memory_.run.micro_batch));
    count("tokens", memory_.tokens);
    size("activations", now);

    MemoryCase kept = memory_, recomputed = memory_;
    kept.run.recomputes = false;
    recomputed.run.recomputes = true;
    size("activations_kept", least_activations(kept));
    size("activations_recomputed", least_activations(recomputed));
    say("recompute_now", memory_.run.recomputes ? "@recompute.on" : "@recompute.off");
    if (memory_.run.recomputes)
      judge("recompute", verdict_half);
    else
      judge_change("recompute", now - least_activations(recomputed), recomputed);

    const auto batch = asked_.of(Quantity::batch).value_or(Said{.value = 1});
    const auto global = memory_.run.micro_batch * memory_.run.accumulation_steps;
    MemoryCase other = memory_;
    other.run.micro_batch = std::max<std::int64_t>(
        1, std::llround(batch.of(static_cast<double>(memory_.run.micro_batch))));
    // As many rounds as keep the batch, or the next number above.
    other.run.accumulation_steps = (global + other.run.micro_batch - 1) / other.run.micro_batch;
    count("batch_said", static_cast<double>(other.run.micro_batch));
    size("activations_of_batch", least_activations(other));
    count("rounds", static_cast<double>(other.run.accumulation_steps));
    count("samples_then",
          static_cast<double>(other.run.accumulation_steps * other.run.micro_batch));
    count("samples_now", static_cast<double>(global));
    judge_change("batch", now - least_activations(other), other);

    MemoryCase shorter = memory_;
    const auto length = asked_.of(Quantity::tokens).value_or(Said{.value = 0.5, .is_share = true});
    shorter.tokens = std::max(1.0, std::floor(length.of(memory_.tokens)));
    shorter.evaluation_tokens = std::min(shorter.evaluation_tokens, shorter.tokens);
    count("tokens_said", shorter.tokens);
    size("activations_of_length", least_activations(shorter));
    judge_change("cutoff", now - least_activations(shorter), shorter);
  }

  void add_attention() {
    // What waits for the backward pass, or what one layer works with when it is computed again.
    const double layers = memory_.run.recomputes ? 1 : static_cast<double>(memory_.model->layers);
    size("scores", layers * score_bytes_of_layer(activations_of(memory_)));
    count("score_layers", layers);
    judge("scores", memory_.run.has_eager_attention ? verdict_yes : verdict_half);
  }

  void add_moments() {
    const double moments = term_bytes(forecast_, Phase::update, Space::device, "moments");
    size("moments_device", moments);
    size("moments_8bit", moments / 4);
    judge_saving("adam_8bit", moments, least_on_device(forecast_) - moments * 3 / 4);
  }

  void add_method() {
    const auto with_adapters = [&](std::int64_t bits) {
      MemoryCase changed = memory_;
      if (!memory_.run.is_lora) changed.run.lora_rank = RunFacts{}.lora_rank;
      if (const auto rank = asked_.of(Quantity::rank))
        changed.run.lora_rank = std::max<std::int64_t>(
            1, std::llround(rank->of(static_cast<double>(changed.run.lora_rank))));
      changed.run.is_lora = true;
      changed.run.quantization_bits = bits;
      changed.sizes = sizes_of(*changed.model, changed.run);
      return changed;
    };
    const MemoryCase lora = with_adapters(0), qlora = with_adapters(4);
    const double now = state_on_device(memory_);
    size("state_now", now);
    size("state_lora", state_on_device(lora));
    size("state_qlora", state_on_device(qlora));
    count("lora_rank", static_cast<double>(lora.run.lora_rank));
    say("method_now", memory_.run.quantization_bits > 0 ? "@method.qlora"
                      : memory_.run.is_lora             ? "@method.lora"
                                                        : "@method.full");
    if (memory_.run.is_lora)
      judge("lora", verdict_half);
    else
      judge_change("lora", now - state_on_device(lora), lora);
  }

  void add_offload() {
    MemoryCase offloaded = memory_;
    offloaded.settings.stage = 3;
    offloaded.settings.overlap_comm = true;
    offloaded.settings.uses_bf16_optimizer = false;
    offloaded.settings.optimizer = offloaded.settings.parameters = Offload::cpu;
    const Forecast forecast = forecast_of(offloaded);
    const auto [low, high] = on_device(forecast);
    size("offloaded_low", low);
    size("offloaded_high", high);
    size("offloaded_host", forecast.at(Phase::step, Space::host)->low());
    judge_run("stage3_offloaded", forecast, memory_.limits.device.has_value());
  }

  void add_disk() {
    const DeepspeedRun run{.sizes = memory_.sizes,
                           .settings = memory_.settings,
                           .ranks = memory_.ranks,
                           .ranks_on_node = memory_.ranks_on_node};
    const double group = largest_sub_group(run);
    const double groups = group > 0 ? std::ceil(share_of(run) / group) : 0;
    count("sub_groups", groups);
    size("disk_buffer", 4 * group);
    size("disk_buffers_of_two", 2 * buffers_of_sub_group * 4 * group);
    size("disk_buffers_of_three", 3 * buffers_of_sub_group * 4 * group);
    say("optimizer_on", fmt::format("@place-of.{}", name_of(memory_.settings.optimizer)));
    say("parameters_on", fmt::format("@place-of.{}", name_of(memory_.settings.parameters)));
    const bool is_known = inputs_.deepspeed.has_value();
    const bool reads_disk = !is_known || memory_.settings.optimizer == Offload::nvme;
    judge("pipeline", reads_disk && (!is_known || groups > 1) ? verdict_half : verdict_no);
    judge("fast_init", reads_disk && (!is_known || memory_.settings.parameters == Offload::nvme)
                           ? verdict_half
                           : verdict_no);
  }

  MemoryCase memory_;
  const Inputs& inputs_;
  const AskedNumber& asked_;
  Forecast forecast_;
  double card_;
};

}  // namespace

void add_run_figures(const std::optional<MemoryCase>& memory, const Inputs& inputs,
                     const AskedNumber& asked, std::map<std::string, std::string>& figures) {
  const spec::ModelSpec fallback = default_model();
  MemoryCase of_advice;
  if (memory) {
    of_advice = *memory;
  } else {
    of_advice.model = &fallback;
    of_advice.run.is_lora = false;
    of_advice.sizes = sizes_of(fallback);
  }
  if (!inputs.deepspeed && !inputs.run) {
    of_advice.run.micro_batch = 1;
    of_advice.settings.stage = 3;
    of_advice.settings.overlap_comm = true;
  }
  RunFigures(std::move(of_advice), inputs, asked, figures).add();
}

}  // namespace underkeel::doctor
