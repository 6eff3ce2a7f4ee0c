// What answers to advice on another method, precision, optimizer, stage or machine name: the run as the advice makes it.

#include <algorithm>
#include <cmath>

#include "doctor/advice_sheet.h"

namespace underkeel::doctor {
namespace {

double number(std::int64_t value) {
  return static_cast<double>(value);
}

double tokens_of_batch(const MemoryCase& memory) {
  return number(memory.run.micro_batch) * memory.tokens;
}

class MethodFigures {
 public:
  MethodFigures(const MemoryCase& memory, const Inputs& inputs, const AskedNumber& asked,
                AdviceSheet& sheet)
      : memory_(memory),
        inputs_(inputs),
        asked_(asked),
        sheet_(sheet),
        forecast_(forecast_of(memory)),
        state_now_(state_on_device(memory)) {}

  void add() {
    if (asked_.said) return add_asked();
    add_stage();
    add_precision();
    add_gpus();
    add_host();
    add_quantised();
    add_loss_and_cache();
    add_share_of_recomputation();
    add_evaluation();
    add_optimizers();
    add_offload();
    add_adapters();
    add_sizes();
  }

 private:
  /// Those that the number changes.
  void add_asked() {
    switch (asked_.quantity) {
      case Quantity::stage:
        return add_stage();
      case Quantity::gpus:
        return add_gpus();
      case Quantity::bits:
        return add_quantised();
      case Quantity::percent:
        return add_share_of_recomputation();
      case Quantity::rank:
        return add_adapters();
      case Quantity::accumulation:
      case Quantity::checkpoints:
        return add_sizes();
      case Quantity::evaluation_batch:
        return add_evaluation();
      case Quantity::none:
      case Quantity::tokens:
      case Quantity::batch:
        break;  // of the run: advice_run_figures.cpp
    }
  }

  bool is_card_known() const { return memory_.limits.device.has_value(); }
  double least_now() const { return on_device(forecast_).low; }

  MemoryCase at_stage(int stage) const { return run_at_stage(memory_, inputs_, stage); }

  void add_stage() {
    const auto said = asked_.of(Quantity::stage);
    // Who says the stage that the run has speaks for it against the next one.
    int other = said ? static_cast<int>(said->value) : memory_.settings.stage;
    const bool is_kept = other == memory_.settings.stage;
    if (is_kept) other = other > 0 ? other - 1 : 1;
    const MemoryCase changed = at_stage(other);
    const double then = state_on_device(changed);
    sheet_.count("stage_said", changed.settings.stage);
    sheet_.size("state_at_stage", then);
    if (is_kept)
      sheet_.judge_change("stage", then - state_now_, memory_);
    else
      sheet_.judge_change("stage", state_now_ - then, changed);
    sheet_.size("state_at_3", state_on_device(at_stage(3)));
    const MemoryCase whole = at_stage(0);
    sheet_.size("state_at_0", state_on_device(whole));
    sheet_.judge_change("ddp", state_now_ - state_on_device(whole), whole);
  }

  void add_precision() {
    MemoryCase whole = memory_, half = memory_;
    whole.settings.is_16_bit = false;
    whole.settings.gradient_bytes = 4;
    half.settings.is_16_bit = true;
    if (!memory_.settings.is_16_bit) half.settings.gradient_bytes = 2;
    const auto activations = [](const MemoryCase& memory) {
      return activation_peak(activations_of(memory)).low;
    };
    sheet_.size("state_32_bit", state_on_device(whole));
    sheet_.size("state_16_bit", state_on_device(half));
    sheet_.size("activations_32_bit", activations(whole));
    sheet_.size("activations_16_bit", activations(half));
    sheet_.say("precision_now", !memory_.settings.is_16_bit ? "@precision.32"
                                : memory_.settings.is_bf16  ? "@precision.16-bf16"
                                                            : "@precision.16-fp16");
    const double least_half =
        memory_.settings.is_16_bit ? least_now() : on_device(forecast_of(half)).low;
    if (memory_.settings.is_16_bit)
      sheet_.judge("precision", verdict_half);
    else
      sheet_.judge_saving("precision", least_now() - least_half, least_half);
    const double share = memory_.sizes.trainable / memory_.ranks;
    sheet_.size("master_32", 4 * share);
    sheet_.size("master_16", 2 * share);
    sheet_.size("moments_32", 8 * share);
    sheet_.size("moments_16", 4 * share);
    const bool may_be_16_bit =
        memory_.settings.stage > 0 && memory_.settings.optimizer != Offload::none;
    sheet_.judge("master", may_be_16_bit ? verdict_half : verdict_no);
    sheet_.say("half_now", !memory_.settings.is_16_bit ? "@precision.32"
                           : memory_.settings.is_bf16  ? "@precision.bf16"
                                                       : "@precision.fp16");
    if (memory_.settings.is_16_bit)
      sheet_.judge("half_for_half", verdict_no);
    else
      sheet_.judge_saving("half_for_half", least_now() - least_half, least_half);
    // Weights and gradients in 16 bit, and either an f32 master with f32 moments, or 16-bit moments alone.
    sheet_.size("adam_whole", 16 * memory_.sizes.trainable + frozen_bytes(memory_));
    sheet_.size("pure_16_bit", 8 * memory_.sizes.trainable + frozen_bytes(memory_));
  }

  void add_gpus() {
    const auto said = asked_.of(Quantity::gpus);
    MemoryCase more = memory_;
    more.ranks = said ? said->of(memory_.ranks) : 2 * memory_.ranks;
    const double nodes = std::ceil(memory_.ranks / memory_.ranks_on_node);
    more.ranks_on_node = nodes > 1 ? std::min(more.ranks, memory_.ranks_on_node) : more.ranks;
    const double then = state_on_device(more);
    sheet_.count("ranks_said", more.ranks);
    sheet_.size("state_of_more", then);
    sheet_.size("host_of_more", host_of(forecast_of(more)));
    sheet_.judge_change("gpus", state_now_ - then, more);
  }

  double host_of(const Forecast& forecast) const {
    return host_need(forecast, memory_.resumes).bytes.low;
  }

  void add_host() {
    const double host = host_of(forecast_);
    sheet_.size("host_now", host);
    sheet_.size("needed_least", least_now());
    const bool is_host_short = memory_.limits.host && host > *memory_.limits.host;
    const bool is_device_short = least_now() > sheet_.card_bytes();
    const bool offloads = memory_.settings.optimizer != Offload::none;
    sheet_.judge("host", is_host_short                  ? verdict_yes
                         : is_device_short && !offloads ? verdict_half
                                                        : verdict_no);
    // What other programs hold on the card is not known; without them the card is whole.
    sheet_.judge("alone", is_device_short ? verdict_no : verdict_half);
    const bool is_lock_short =
        memory_.limits.page_locked && forecast_.at(Phase::step, Space::pinned_host) &&
        forecast_.at(Phase::step, Space::pinned_host)->low() > *memory_.limits.page_locked;
    sheet_.judge("page_lock", is_lock_short ? verdict_yes : verdict_half);
  }

  MemoryCase with_adapters(std::int64_t bits) const {
    MemoryCase changed = memory_;
    changed.run.is_lora = true;
    if (bits > 0) changed.run.quantization_bits = bits;
    changed.sizes = sizes_of(*changed.model, changed.run);
    return changed;
  }

  void add_quantised() {
    const std::int64_t bits =
        std::llround(asked_.of(Quantity::bits).value_or(Said{.value = 4}).value);
    const MemoryCase changed = with_adapters(bits);
    const double then = state_on_device(changed);
    sheet_.count("bits_said", number(bits));
    sheet_.size("state_of_bits", then);
    sheet_.size("base_of_bits", frozen_bytes(changed));
    sheet_.judge_change("quantised", state_now_ - then, changed);
  }

  void add_loss_and_cache() {
    const ActivationQuestion question = activations_of(memory_);
    const Range logits = logits_and_loss(question);
    ActivationQuestion fused = question;
    fused.has_fused_kernels = true;
    const double with = activation_peak(question).low, without = activation_peak(fused).low;
    sheet_.size("logits_low", logits.low);
    sheet_.size("logits_high", logits.high);
    sheet_.size("logits_saved", std::max(0.0, with - without));
    sheet_.judge_saving("fused_loss", with - without, least_now() - (with - without));
    const spec::ModelSpec& model = *memory_.model;
    sheet_.size("kv_cache", 2 * number(model.layers * model.key_heads * model.head_width) *
                                question.element_bytes * tokens_of_batch(memory_));
    sheet_.size("batch_bytes", tokens_of_batch(memory_) * 3 * 8);  // ids, mask, labels
  }

  void add_share_of_recomputation() {
    MemoryCase kept = memory_, recomputed = memory_;
    kept.run.recomputes = false;
    recomputed.run.recomputes = true;
    const double before = on_device(forecast_of(kept)).low;
    const double after = on_device(forecast_of(recomputed)).low;
    const double share = before > 0 ? 100 * (before - after) / before : 0;
    const double claimed = asked_.of(Quantity::percent).value_or(Said{.value = 50}).value;
    sheet_.size("needed_kept", before);
    sheet_.size("needed_recomputed", after);
    sheet_.say("share_saved", fmt::format("{:.0f}%", share));
    sheet_.say("share_said", fmt::format("{:.0f}%", claimed));
    constexpr double near = 5;  // points: what people round to
    sheet_.judge("share", share >= claimed - near ? verdict_yes
                          : share >= near         ? verdict_half
                                                  : verdict_no);
  }

  void add_evaluation() {
    MemoryCase now = memory_, one = memory_;
    now.run.evaluates = one.run.evaluates = true;
    one.run.evaluation_batch = 1;
    const auto held = [](const MemoryCase& memory) {
      const Forecast forecast = forecast_of(memory);
      const auto& holding = forecast.at(Phase::evaluate, Space::device);
      return holding ? holding->low() : 0;
    };
    if (const auto said = asked_.of(Quantity::evaluation_batch))
      one.run.evaluation_batch =
          std::max<std::int64_t>(1, std::llround(said->of(number(memory_.run.evaluation_batch))));
    const double before = held(now), after = held(one);
    sheet_.count("evaluation_batch_said", number(one.run.evaluation_batch));
    const double step = forecast_.at(Phase::step, Space::device)->low();
    sheet_.count("evaluation_batch", number(memory_.run.evaluation_batch));
    sheet_.size("evaluation_now", before);
    sheet_.size("evaluation_of_one", after);
    sheet_.size("step_least", step);
    sheet_.say("evaluates", memory_.run.evaluates ? "@evaluates.yes" : "@evaluates.no");
    const bool helps = memory_.run.evaluates && before > after && before > step;
    sheet_.judge("evaluation", !helps                                        ? verdict_no
                               : std::max(after, step) > sheet_.card_bytes() ? verdict_half
                                                                             : verdict_yes);
  }

  void add_optimizers() {
    const double moments = term_bytes(forecast_, Phase::update, Space::device, "moments");
    double factored = 0;
    if (memory_.settings.stage == 0 && !memory_.run.is_lora)
      for (const spec::Parameter& each : spec::parameters_of(*memory_.model))
        factored += 4 * number(each.shape().size() > 1 ? each.rows + each.columns : each.columns);
    else
      factored = moments / 2;  // of a flat shard no rows and columns can be kept
    sheet_.size("moments_of_one", moments / 2);
    sheet_.size("moments_factored", std::min(factored, moments));
    sheet_.judge_saving("one_moment", moments, least_now() - moments / 2);
    sheet_.judge("paged", moments > 0 ? verdict_half : verdict_no);
  }

  static double disk_of(const Forecast& forecast) {
    double disk = 0;
    for (const auto& spaces : forecast.memory)
      if (const auto& holding = spaces[static_cast<std::size_t>(Space::nvme)])
        disk = std::max(disk, holding->high());
    return disk;
  }

  void add_offload() {
    MemoryCase offloaded = at_stage(std::max(2, memory_.settings.stage));
    offloaded.settings.optimizer = Offload::cpu;
    const Forecast forecast = forecast_of(offloaded);
    sheet_.count("offload_stage", offloaded.settings.stage);
    sheet_.size("state_offloaded", state_on_device(offloaded));
    sheet_.size("offload_least", on_device(forecast).low);
    sheet_.size("offload_most", on_device(forecast).high);
    sheet_.size("offload_host", host_of(forecast));
    sheet_.say("offload_host_phase",
               fmt::format("@phase.{}", name_of(host_need(forecast, memory_.resumes).phase)));
    sheet_.judge_run("offload", forecast, is_card_known());
    // Master, moments and gradients of what is trained, of its share.
    const double moved = 14 * memory_.sizes.trainable / memory_.ranks;
    sheet_.say("offload_remedy", memory_.settings.optimizer != Offload::none
                                     ? fmt::format("@[offload.is-on] {}", amount(state_now_))
                                     : fmt::format("@[offload.takes] {}", amount(moved)));

    MemoryCase state_on_disk = at_stage(3);
    state_on_disk.settings.optimizer = Offload::nvme;
    const Forecast of_state = forecast_of(state_on_disk);
    sheet_.size("optimizer_nvme_least", on_device(of_state).low);
    sheet_.size("optimizer_nvme_most", on_device(of_state).high);
    sheet_.size("optimizer_nvme_need", disk_of(of_state));
    sheet_.judge_run("optimizer_on_nvme", of_state, is_card_known());

    MemoryCase on_disk = at_stage(3);
    on_disk.settings.optimizer = on_disk.settings.parameters = Offload::nvme;
    const Forecast of_disk = forecast_of(on_disk);
    sheet_.size("nvme_least", on_device(of_disk).low);
    sheet_.size("nvme_most", on_device(of_disk).high);
    sheet_.size("nvme_need", disk_of(of_disk));
    sheet_.judge_run("nvme", of_disk, is_card_known());
  }

  void add_adapters() {
    MemoryCase now = with_adapters(0), changed = now, fewer = now;
    changed.run.lora_rank = std::max<std::int64_t>(
        1, std::llround(
               asked_.of(Quantity::rank).value_or(Said{.value = 8}).of(number(now.run.lora_rank))));
    fewer.run.lora_targets = {"q_proj", "v_proj"};
    for (MemoryCase* each : {&changed, &fewer}) each->sizes = sizes_of(*each->model, each->run);
    const auto adapters = [](const MemoryCase& memory) { return 16 * memory.sizes.trainable; };
    sheet_.say("targets_now", memory_.run.is_lora ? "@targets.of-run" : "@targets.all");
    sheet_.count("rank_now", number(now.run.lora_rank));
    sheet_.count("rank_said", number(changed.run.lora_rank));
    sheet_.size("adapters_now", adapters(now));
    sheet_.size("adapters_at_rank", adapters(changed));
    sheet_.size("adapters_of_two", adapters(fewer));
    sheet_.size("base_frozen", frozen_bytes(now));
    sheet_.judge_change("rank", adapters(now) - adapters(changed), changed);
    sheet_.judge_change("targets", adapters(now) - adapters(fewer), fewer);
  }

  void add_sizes() {
    const spec::ModelSpec& model = *memory_.model;
    // Of full fine-tuning at stage 3: 16 bytes a parameter over all ranks.
    sheet_.say("parameters_fit",
               fmt::format("{:.1f}e9", sheet_.card_bytes() * memory_.ranks / 16 / 1e9));
    sheet_.judge("smaller_model", least_now() > sheet_.card_bytes() ? verdict_yes : verdict_half);
    sheet_.size("embedding_saved", 14 * number(model.vocabulary * model.width));
    sheet_.size("checkpoint_whole", 12 * memory_.sizes.trainable + 2 * memory_.sizes.total());
    sheet_.size("checkpoint_weights", 2 * memory_.sizes.total());
    add_checkpoints();
    sheet_.count("steps", number(memory_.run.accumulation_steps));
    sheet_.count("steps_said", asked_.of(Quantity::accumulation)
                                   .value_or(Said{.value = 8})
                                   .of(number(memory_.run.accumulation_steps)));
  }

  void add_checkpoints() {
    MemoryCase kept = memory_;
    kept.run.save_total_limit = std::max<std::int64_t>(
        1, std::llround(asked_.of(Quantity::checkpoints).value_or(Said{.value = 2}).value));
    const io::SpaceNeed need = disk_need_of(kept, inputs_);
    sheet_.count("limit_said", number(kept.run.save_total_limit));
    sheet_.size("checkpoint_each", number(need.checkpoint_bytes));
    sheet_.size("checkpoints_at_once", number(io::most_at_once(need) * need.checkpoint_bytes));
    sheet_.say("limit_now", memory_.run.save_total_limit > 0
                                ? fmt::format("{}", memory_.run.save_total_limit)
                                : std::string("@limit.none"));
  }

  const MemoryCase& memory_;
  const Inputs& inputs_;
  const AskedNumber& asked_;
  AdviceSheet& sheet_;
  Forecast forecast_;
  double state_now_;
};

}  // namespace

void add_method_figures(const MemoryCase& memory, const Inputs& inputs, const AskedNumber& asked,
                        AdviceSheet& sheet) {
  MethodFigures(memory, inputs, asked, sheet).add();
}

}  // namespace underkeel::doctor
