#include "doctor/deepspeed_sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace underkeel::doctor {

double share_of(const DeepspeedRun& run) {
  if (run.settings.stage == 0) return run.sizes.trainable;
  if (run.settings.stage < 3) return 2 * std::ceil(run.sizes.trainable / (2 * run.ranks));
  const auto ranks = static_cast<std::int64_t>(run.ranks);
  std::int64_t share = 0;
  for (const Tensor& tensor : run.sizes.tensors)
    if (tensor.is_trainable) share += (tensor.elements + ranks - 1) / ranks;
  return static_cast<double>(share);
}

double persistent_elements(const ModelSizes& sizes, const DeepspeedSettings& settings) {
  double sum = 0;
  for (const Tensor& tensor : sizes.tensors) {
    const auto elements = static_cast<double>(tensor.elements);
    if (elements <= settings.param_persistence && sum + elements <= settings.model_persistence)
      sum += elements;
  }
  return sum;
}

double largest_sub_group(const DeepspeedRun& run) {
  const double share = share_of(run);
  if (run.settings.sub_group >= share) return share;
  // Parameters in their order, a group until it is full.
  double largest = 0, group = 0;
  for (const Tensor& tensor : run.sizes.tensors) {
    if (!tensor.is_trainable) continue;
    group += std::ceil(static_cast<double>(tensor.elements) / run.ranks);
    largest = std::max(largest, group);
    if (group >= run.settings.sub_group) group = 0;
  }
  return largest;
}

double owned_elements(const DeepspeedRun& run) {
  const auto share = static_cast<std::int64_t>(share_of(run));
  if (share == 0) return 0;
  // Tensors come in the order of the ranks, so that one rank is open at a time.
  std::int64_t begin = 0, open_rank = 0, open_elements = 0, most = 0;
  for (const Tensor& tensor : run.sizes.tensors) {
    if (!tensor.is_trainable || tensor.elements == 0) continue;
    const std::int64_t end = begin + tensor.elements;
    if (begin / share > open_rank) open_elements = 0;
    open_elements += tensor.elements;
    most = std::max(most, open_elements);
    open_rank = (end - 1) / share;
    if (open_rank > begin / share) open_elements = tensor.elements;
    begin = end;
  }
  return static_cast<double>(most);
}

bool flattens_on_device(const DeepspeedRun& run) {
  if (!run.device_limit) return true;
  const double element = run.settings.is_16_bit ? 2 : 4;
  const double quantised = run.sizes.quantised;
  const double weights =
      element * (run.sizes.total() - quantised) + run.quantised_bytes * quantised;
  return weights + element * run.sizes.trainable + context_bytes.high <= *run.device_limit;
}

Range adapters_on_rank_0(const ModelSizes& sizes) {
  return {2 * sizes.trainable, 4 * sizes.trainable};
}

double rounded_block(double size_bytes) {
  return size_bytes <= 0 ? 0 : std::exp2(std::ceil(std::log2(size_bytes)));
}

}  // namespace underkeel::doctor
