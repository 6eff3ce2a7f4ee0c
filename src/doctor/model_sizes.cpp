#include "doctor/model_sizes.h"

#include <algorithm>

namespace underkeel::doctor {
namespace {

/// "model.layers.3.self_attn.q_proj.weight" -> "q_proj".
std::string module_of(const std::string& name) {
  const std::size_t end = name.rfind('.');
  const std::size_t begin = name.rfind('.', end - 1);
  return name.substr(begin + 1, end - begin - 1);
}

bool is_target(const spec::Parameter& parameter, const std::vector<std::string>& targets) {
  if (parameter.role != spec::ParameterRole::matrix) return false;
  return std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
    return target == "all" || target == module_of(parameter.name);
  });
}

void add(ModelSizes& sizes, Tensor tensor) {
  const auto elements = static_cast<double>(tensor.elements);
  (tensor.is_trainable ? sizes.trainable : sizes.frozen) += elements;
  if (tensor.is_quantised) sizes.quantised += elements;
  sizes.largest_tensor = std::max(sizes.largest_tensor, elements);
  if (tensor.is_trainable) sizes.largest_trainable = std::max(sizes.largest_trainable, elements);
  sizes.tensors.push_back(tensor);
}

}  // namespace

ModelSizes sizes_of(const spec::ModelSpec& model, const RunFacts& run) {
  ModelSizes sizes;
  for (const spec::Parameter& parameter : spec::parameters_of(model)) {
    const bool is_matrix = parameter.role == spec::ParameterRole::matrix;
    add(sizes, {.elements = parameter.element_count(),
                .is_trainable = !run.is_lora,
                .is_quantised = run.is_lora && run.quantization_bits > 0 && is_matrix});
    if (!run.is_lora || !is_target(parameter, run.lora_targets)) continue;
    add(sizes, {.elements = run.lora_rank * parameter.columns});
    add(sizes, {.elements = run.lora_rank * parameter.rows});
  }
  if (model.tied_head && !run.is_lora)
    sizes.tied = static_cast<double>(sizes.tensors.front().elements);
  return sizes;
}

ModelSizes sizes_of(const spec::ModelSpec& model) {
  RunFacts run;
  run.is_lora = false;
  return sizes_of(model, run);
}

}  // namespace underkeel::doctor
