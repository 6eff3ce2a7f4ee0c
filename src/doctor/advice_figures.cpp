// What answers to advice on a config's keys, stages and offload name: figures of the model and machine at hand.
// Not here: figures of the run around it (advice_run_figures.cpp, advice_method_figures.cpp).

#include <algorithm>

#include <fmt/format.h>

#include "doctor/advice_rules.h"
#include "doctor/config_rules.h"

namespace underkeel::doctor {
namespace {

constexpr double gib_bytes = 1024.0 * 1024 * 1024;

struct Situation {
  const spec::ModelSpec& model;
  ModelSizes sizes;
  double ranks;
  Limits limits;
};

Forecast state_of(const Situation& situation, int stage, Offload optimizer, Offload parameters,
                  double accumulation = 1) {
  DeepspeedSettings settings;
  settings.stage = stage;
  settings.optimizer = optimizer;
  settings.parameters = parameters;
  settings.overlap_comm = stage == 3;
  return deepspeed_memory({.sizes = situation.sizes,
                           .settings = settings,
                           .ranks = situation.ranks,
                           .ranks_on_node = situation.ranks,
                           .accumulation_steps = accumulation,
                           .has_process = false});
}

/// The sizes of buckets in the config at hand.
DeepspeedSettings bucket_settings(const std::optional<MemoryCase>& memory,
                                  const spec::Value* config) {
  if (memory) return memory->settings;
  if (config == nullptr) return {};
  DeepspeedSettings settings = settings_of(*config, std::nullopt, default_model().width);
  settings.is_16_bit = true;  // what the advice is about; "auto" is nobody's yet
  settings.gradient_bytes = 2;
  return settings;
}

std::string_view bucket_source(const spec::Value* config, bool has_model) {
  constexpr std::string_view key = "zero_optimization.reduce_bucket_size";
  if (config != nullptr && is_auto_at(*config, key))
    return has_model ? "@bucket.auto" : "@bucket.auto-of-7b";
  return config != nullptr && number_at(*config, key) ? "@bucket.given" : "@bucket.default";
}

struct BucketBytes {
  double buckets, copy;
};

/// At `stage`, in a backward pass. With `assume_overlap`, as overlap_comm makes it.
BucketBytes buckets_at(const Situation& situation, DeepspeedSettings settings, int stage,
                       bool assume_overlap) {
  settings.stage = stage;
  settings.overlap_comm = settings.overlap_comm || assume_overlap;
  settings.uses_bf16_optimizer = false;
  const Forecast forecast = deepspeed_memory({.sizes = situation.sizes,
                                              .settings = settings,
                                              .ranks = situation.ranks,
                                              .ranks_on_node = situation.ranks,
                                              .accumulation_steps = 1,
                                              .has_process = false});
  return {term_bytes(forecast, Phase::step, Space::device, "bucket"),
          term_bytes(forecast, Phase::step, Space::device, "bucket_copy")};
}

double device_peak(const Forecast& forecast) {
  double most = 0;
  for (const Phase phase : {Phase::first_step, Phase::step, Phase::update})
    most = std::max(most, forecast.at(phase, Space::device)->low());
  return most;
}

}  // namespace

spec::ModelSpec default_model() {
  return {.vocabulary = 32000,
          .width = 4096,
          .feed_forward = 11008,
          .layers = 32,
          .query_heads = 32,
          .key_heads = 32,
          .head_width = 128};
}

std::map<std::string, std::string> advice_figures(const std::optional<MemoryCase>& memory,
                                                  const spec::Value* config) {
  const spec::ModelSpec fallback = default_model();
  RunFacts full;
  full.is_lora = false;
  const Situation situation{.model = memory ? *memory->model : fallback,
                            .sizes = sizes_of(memory ? *memory->model : fallback, full),
                            .ranks = memory ? memory->ranks : 1,
                            .limits = memory ? memory->limits : Limits{.device = 80 * gib_bytes}};
  const double psi = situation.sizes.trainable;
  const double width = static_cast<double>(situation.model.width);
  const double card = situation.limits.device.value_or(80 * gib_bytes);
  std::map<std::string, std::string> figures;
  const auto size = [&](std::string_view name, double bytes) {
    figures[std::string(name)] = amount(bytes);
  };
  const auto fits = [&](std::string_view name, double bytes) {
    size(name, bytes);
    figures[fmt::format("{}_fits", name)] = bytes <= card ? "@fits.yes" : "@fits.no";
  };
  const auto gathered = [&](double threshold) {
    DeepspeedSettings settings;
    settings.param_persistence = threshold;
    return 2 * persistent_elements(situation.sizes, settings);
  };
  figures["model"] = memory ? "@model.here" : "@model.of-7b";
  figures["parameters"] = fmt::format("{:.0f}", psi);
  figures["ranks"] = fmt::format("{:.0f}", situation.ranks);
  figures["card"] = capacity(static_cast<std::int64_t>(card));
  figures["host_limit"] = situation.limits.host
                              ? capacity(static_cast<std::int64_t>(*situation.limits.host))
                              : std::string("@unknown");
  size("weights_16", 2 * psi);
  size("weights_32", 4 * psi);
  size("module", 2 * situation.sizes.largest_tensor);
  const DeepspeedSettings here = bucket_settings(memory, config);
  const double element = here.is_16_bit ? 2 : 4;
  const DeepspeedSettings defaults;
  size("bucket", element * here.reduce_bucket);
  figures["bucket_elements"] = fmt::format("{:.0f}", here.reduce_bucket);
  figures["bucket_source"] = bucket_source(config, memory.has_value());
  size("bucket_default", element * defaults.reduce_bucket);
  size("bucket_auto", element * width * width);
  // A config of stage 1 or 2 without overlap has one bucket; of others the advice supposes two.
  const bool supposes_overlap = config == nullptr || (here.stage != 1 && here.stage != 2);
  const BucketBytes at_3 = buckets_at(situation, here, 3, false);
  const BucketBytes at_2 = buckets_at(situation, here, 2, supposes_overlap);
  size("bucket_saving_3", at_3.buckets + at_3.copy);
  size("bucket_saving_12", at_2.buckets + at_2.copy);
  figures["bucket_share"] = fmt::format(
      "{:.2g}%", 100 * std::max(at_3.buckets + at_3.copy, at_2.buckets + at_2.copy) / card);
  size("bucket_copy_12", at_2.copy);
  size("bucket_copy_3", situation.ranks > 1 ? 0 : at_3.copy);
  size("prefetch", element * defaults.prefetch_bucket);
  figures["threshold_auto"] = fmt::format("{:.0f}", 10 * width);
  size("gathered_auto", gathered(10 * width));
  size("gathered_1e5", gathered(1e5));
  size("gathered_1e9", gathered(1e9));
  const Forecast stage2 = state_of(situation, 2, Offload::none, Offload::none);
  const Forecast stage3 = state_of(situation, 3, Offload::none, Offload::none);
  const Forecast offload2 = state_of(situation, 2, Offload::cpu, Offload::none);
  const Forecast offload2_accumulating = state_of(situation, 2, Offload::cpu, Offload::none, 2);
  const Forecast offload3 = state_of(situation, 3, Offload::cpu, Offload::cpu);
  const Forecast parameters_only = state_of(situation, 3, Offload::none, Offload::cpu);
  fits("stage2", device_peak(stage2));
  fits("stage3", device_peak(stage3));
  fits("stage2_offload", offload2.at(Phase::step, Space::device)->high());
  fits("parameters_only", device_peak(parameters_only));
  // Whether people are right who say that stage 3 takes more, or that offload at stage 2 takes 60 to 70 GB.
  const auto is_so = [&](std::string_view name, bool holds) {
    figures[fmt::format("{}_fits", name)] = holds ? "@fits.yes" : "@fits.no";
  };
  size("stage3_most", stage3.at(Phase::step, Space::device)->high());
  size("stage2_most", stage2.at(Phase::step, Space::device)->high());
  // A bucket's copy and a window more is no "more" that people run out of memory for.
  constexpr double notable = 1.1;
  is_so("stage3_larger", stage3.at(Phase::step, Space::device)->high() >
                             notable * stage2.at(Phase::step, Space::device)->high());
  const double offload2_device = offload2.at(Phase::step, Space::device)->high();
  is_so("stage2_offload_60", offload2_device >= 55e9 && offload2_device <= 75e9);
  size("stage3_offload", offload3.at(Phase::step, Space::device)->high());
  size("stage2_offload_host", offload2.at(Phase::step, Space::host)->low());
  size("stage2_offload_host_more", offload2_accumulating.at(Phase::step, Space::host)->low());
  size("stage3_offload_host", offload3.at(Phase::step, Space::host)->low());
  // Of the run at hand where it offloads, else of stage 2 with the optimizer on the host.
  const bool offloads = memory && memory->settings.optimizer != Offload::none;
  const Forecast offloading = offloads ? forecast_of(*memory) : offload2;
  const auto& own_pinned = offloading.at(Phase::step, Space::pinned_host);
  const Holding& pinned = own_pinned ? *own_pinned : *offload2.at(Phase::step, Space::pinned_host);
  size("pinned", pinned.low());
  size("pinned_rounded", pinned.high());
  const double share = psi / situation.ranks;
  size("moments", 8 * share);
  size("moments_host", 8 * psi);
  size("state", 12 * share);
  size("freed_by_offload", 12 * share + 2 * share);
  size("extra_of_stage3", at_3.buckets + at_3.copy +
                              term_bytes(state_of(situation, 3, Offload::none, Offload::none),
                                         Phase::step, Space::device, "live"));
  // Of the run at hand where it gathers, as the finding on its window; else of stage 3 with the defaults.
  const bool gathers_here = memory && memory->settings.stage == 3;
  size("live", term_bytes(gathers_here ? state_forecast_of(*memory) : offload3, Phase::step,
                          Space::device, "live"));
  // NF4 with doubly quantised scales on all linear layers but the head.
  RunFacts qlora;
  qlora.quantization_bits = 4;
  const ModelSizes four_bit = sizes_of(situation.model, qlora);
  fits("base_4bit",
       four_bit.quantised * (0.5 + 0.127 / 8) + 2 * (four_bit.frozen - four_bit.quantised));
  MemoryCase batch;
  if (memory) batch = *memory;
  const ActivationQuestion activations{.model = situation.model,
                                       .sequences = static_cast<double>(batch.run.micro_batch),
                                       .tokens = batch.tokens,
                                       .recomputes = false,
                                       .element_bytes = element};
  figures["batch"] = fmt::format("{} x {:.0f}", batch.run.micro_batch, batch.tokens);
  ActivationQuestion recomputing = activations;
  recomputing.recomputes = true;
  size("recompute_saves", activation_peak(activations).low - activation_peak(recomputing).low);
  return figures;
}

}  // namespace underkeel::doctor
