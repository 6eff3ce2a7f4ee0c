#include "doctor/deepspeed_settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

Offload offload_of(const Value& config, std::string_view section, std::string_view old_key) {
  const std::string device =
      text_at(config, fmt::format("zero_optimization.{}.device", section)).value_or("none");
  if (device == "nvme") return Offload::nvme;
  const bool is_old =
      truth_at(config, fmt::format("zero_optimization.{}", old_key)).value_or(false);
  return device == "cpu" || is_old ? Offload::cpu : Offload::none;
}

class SettingsReader {
 public:
  SettingsReader(const Value& config, double width) : config_(config), width_(width) {}

  /// One of the spellings of a bound; `auto_value` where it says "auto" and the width is known.
  double bound(std::string_view key, double fallback, double auto_value = -1) const {
    for (const std::string_view prefix : {"stage3_", ""}) {
      const std::string path = fmt::format("zero_optimization.{}{}", prefix, key);
      std::optional<double> value = number_at(config_, path);
      if (const auto whole = lax_whole_at(config_, path); !value && whole)
        value = static_cast<double>(*whole);
      if (value && *value >= 0) return *value;
      if (is_auto_at(config_, path) && auto_value >= 0 && width_ > 0) return auto_value;
    }
    return fallback;
  }
  bool on(std::string_view path, bool fallback) const {
    return truth_at(config_, path).value_or(fallback);
  }
  double number(std::string_view path, double fallback) const {
    const auto value = number_at(config_, path);
    return value && *value >= 0 ? *value : fallback;
  }

 private:
  const Value& config_;
  double width_;
};

void read_precision(const Value& config, const std::optional<RunFacts>& run,
                    DeepspeedSettings& settings) {
  const auto mode = [&](std::string_view section, bool by_run) {
    const std::string path = fmt::format("{}.enabled", section);
    if (is_auto_at(config, path)) return by_run;
    // accelerate adds a section that is left out, as the run's flags say.
    if (value_at(config, section) == nullptr) return by_run;
    return truth_at(config, path).value_or(false);
  };
  const bool fp16 = mode("fp16", run && run->fp16);
  const std::string section = value_at(config, "bfloat16") != nullptr ? "bfloat16" : "bf16";
  // Without a run "auto" is what such configs are for, unless they ask for fp16.
  const bool is_left_open = !run && !fp16 && is_auto_at(config, fmt::format("{}.enabled", section));
  const bool bf16 = mode(section, is_left_open || (run && (run->bf16 || run->pure_bf16)));
  settings.is_16_bit = fp16 || bf16;
  settings.is_bf16 = bf16;
  const std::string type = text_at(config, "data_types.grad_accum_dtype").value_or("");
  const bool in_f32 = type == "fp32" || type == "float32" || type == "float";
  settings.gradient_bytes = in_f32 || !settings.is_16_bit ? 4 : 2;
  // ZeRO alone takes them, and 16-bit moments only beside a 16-bit master.
  const bool has_narrow_master =
      settings.stage > 0 &&
      ((bf16 && truth_at(config, section + ".bf16_master_weights_and_grads").value_or(false)) ||
       (fp16 && truth_at(config, "fp16.fp16_master_weights_and_grads").value_or(false)));
  if (has_narrow_master) settings.master_bytes = 2;
  if (has_narrow_master && bf16 &&
      truth_at(config, section + ".bf16_optimizer_states").value_or(false))
    settings.moments_bytes = 4;
  const std::string sent = lower_case(text_at(config, "communication_data_type").value_or(""));
  if (sent == "fp32") settings.communication_bytes = 4;
  if (sent == "fp16" || sent == "bf16" || sent == "bfp16") settings.communication_bytes = 2;
  settings.uses_bf16_optimizer =
      settings.stage == 1 && bf16 && in_f32 && settings.optimizer == Offload::none;
}

}  // namespace

std::string_view name_of(Offload offload) {
  constexpr std::string_view names[] = {"none", "cpu", "nvme"};
  return names[static_cast<std::size_t>(offload)];
}

double sent_bytes(const DeepspeedSettings& settings) {
  return settings.communication_bytes.value_or(settings.is_16_bit ? 2 : 4);
}

double optimizer_file_bytes(const DeepspeedSettings& settings) {
  const bool has_master = settings.is_16_bit || settings.stage > 0;
  return (has_master ? settings.master_bytes : 0) + settings.moments_bytes;
}

DeepspeedSettings settings_of(const Value& config, const std::optional<RunFacts>& run,
                              std::int64_t width) {
  DeepspeedSettings settings;
  const auto h = static_cast<double>(width);
  const SettingsReader reader(config, h);
  settings.stage = stage_in(config);
  if (settings.stage >= 1)
    settings.optimizer = offload_of(config, "offload_optimizer", "cpu_offload");
  if (settings.stage == 3)
    settings.parameters = offload_of(config, "offload_param", "cpu_offload_param");
  // Stages 1 and 2 take nvme for cpu.
  if (settings.stage < 3 && settings.optimizer == Offload::nvme) settings.optimizer = Offload::cpu;
  settings.overlap_comm = reader.on("zero_optimization.overlap_comm", settings.stage == 3);
  settings.contiguous_gradients = reader.on("zero_optimization.contiguous_gradients", true) ||
                                  (settings.stage < 3 && settings.optimizer != Offload::none);
  settings.reduce_scatter = reader.on("zero_optimization.reduce_scatter", true);
  settings.reduce_bucket = reader.bound("reduce_bucket_size", 5e8, h * h);
  settings.prefetch_bucket = reader.bound("prefetch_bucket_size", 5e7, 0.9 * h * h);
  settings.param_persistence = reader.bound("param_persistence_threshold", 1e5, 10 * h);
  settings.model_persistence = reader.bound("model_persistence_threshold", 9.2e18);
  settings.max_live = reader.bound("max_live_parameters", 1e9);
  settings.max_reuse_distance = reader.bound("max_reuse_distance", 1e9);
  settings.sub_group = std::max(1.0, reader.bound("sub_group_size", 1e9));
  settings.buffer_count = reader.number("zero_optimization.offload_optimizer.buffer_count", 4);
  settings.parameter_buffer_count =
      reader.number("zero_optimization.offload_param.buffer_count", 5);
  settings.parameter_buffer = reader.number("zero_optimization.offload_param.buffer_size", 1e8);
  settings.pins_memory = reader.on("zero_optimization.offload_optimizer.pin_memory", true);
  for (const char* key :
       {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
        "stage3_gather_fp16_weights_on_model_save"})
    settings.gathers_on_save =
        settings.gathers_on_save || reader.on(fmt::format("zero_optimization.{}", key), false);
  read_precision(config, run, settings);
  return settings;
}

}  // namespace underkeel::doctor
