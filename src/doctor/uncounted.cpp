#include "doctor/uncounted.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/config_rules.h"
#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

/// Names of the Trainer whose state is Adam's two moments in f32.
constexpr std::array<std::string_view, 5> plain_adam = {
    "adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_apex_fused", "adamw_torch_npu_fused"};

bool is_plain_adam(const std::string& name) {
  return std::find(plain_adam.begin(), plain_adam.end(), name) != plain_adam.end();
}

constexpr Bound without_moments = {.of_moments = false};
constexpr Bound of_device_alone = {.of_host = false};
// Another head, other losses: the state is at least that of stage sft, and activations differ.
constexpr Bound without_activations = {.of_activations = false};
constexpr Bound of_weights_alone = {.of_training = false};
constexpr Bound no_bound = {.of_device = false, .of_host = false};

/// Settings of LLaMA-Factory that train something else than the forecast does: stage sft or pt, of all weights or LoRA.
void add_other_training(const Document& run, std::vector<Uncounted>& found) {
  if (const auto method = text_at(run.root, "finetuning_type");
      method && *method != "lora" && *method != "full")
    found.push_back({run.file, "finetuning_type", *method, "@uncounted.method", of_weights_alone});
  if (const auto stage = text_at(run.root, "stage");
      stage && (*stage == "dpo" || *stage == "kto" || *stage == "ppo" || *stage == "rm"))
    found.push_back({run.file, "stage", *stage, "@uncounted.stage", without_activations});
}

}  // namespace

std::vector<Uncounted> uncounted_settings(const Inputs& inputs) {
  std::vector<Uncounted> found;
  const spec::Value no_config;
  const spec::Value& config = inputs.deepspeed ? inputs.deepspeed->root : no_config;
  const auto type = text_at(config, "optimizer.type");
  // An optimizer of the config holds over the run file's.
  if (inputs.run && !type)
    if (const auto optimizer = text_at(inputs.run->root, "optim");
        optimizer && !is_plain_adam(*optimizer))
      found.push_back(
          {inputs.run->file, "optim", *optimizer, "@uncounted.optimizer", without_moments});
  if (inputs.run)
    if (const auto method = text_at(inputs.run->root, "quantization_method");
        method && *method != "bnb" && *method != "bitsandbytes" &&
        whole_at(inputs.run->root, "quantization_bit"))
      found.push_back(
          {inputs.run->file, "quantization_method", *method, "@uncounted.quantization", no_bound});
  if (inputs.run) add_other_training(*inputs.run, found);
  const auto add = [&](std::string_view key, std::string_view why, Bound bound) {
    const spec::Value& value = *value_at(config, key);
    const bool is_switch = value.kind == spec::ValueKind::boolean;
    found.push_back({inputs.deepspeed->file, std::string(key), is_switch ? "true" : value.text,
                     std::string(why), bound});
  };
  if (type && lower_case(*type) != "adam" && lower_case(*type) != "adamw")
    add("optimizer.type", "@uncounted.optimizer", without_moments);
  const auto above = [&](std::string_view key, double neutral) {
    return number_at(config, key).value_or(neutral) > neutral;
  };
  if (above("tensor_parallel.autotp_size", 1))
    add("tensor_parallel.autotp_size", "@uncounted.autotp", no_bound);
  if (stage_in(config) < 3) return found;
  if (above("zero_optimization.mics_shard_size", 0))
    add("zero_optimization.mics_shard_size", "@uncounted.mics", Bound{});
  if (above("zero_optimization.zero_hpz_partition_size", 1))
    add("zero_optimization.zero_hpz_partition_size", "@uncounted.hpz", Bound{});
  const auto is_on = [&](std::string_view key) { return truth_at(config, key).value_or(false); };
  if (is_on("zero_optimization.zero_quantized_weights"))
    add("zero_optimization.zero_quantized_weights", "@uncounted.quantised-gathers", Bound{});
  if (is_on("zero_optimization.zero_quantized_nontrainable_weights"))
    add("zero_optimization.zero_quantized_nontrainable_weights", "@uncounted.quantised-frozen",
        no_bound);
  if (is_on("zero_optimization.zero_quantized_gradients"))
    add("zero_optimization.zero_quantized_gradients", "@uncounted.quantised-reduction", Bound{});
  const std::string device =
      text_at(config, "zero_optimization.offload_optimizer.device").value_or("none");
  if (device != "none" &&
      number_at(config, "zero_optimization.offload_optimizer.ratio").value_or(1) < 1)
    add("zero_optimization.offload_optimizer.ratio", "@uncounted.ratio", of_device_alone);
  return found;
}

}  // namespace underkeel::doctor
