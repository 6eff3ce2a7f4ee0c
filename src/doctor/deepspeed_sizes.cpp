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
  const double largest_share = std::ceil(run.sizes.largest_trainable / run.ranks);
  return std::min(share_of(run), run.settings.sub_group + largest_share);
}

double owned_elements(const DeepspeedRun& run) {
  const auto share = static_cast<std::int64_t>(share_of(run));
  if (share == 0) return 0;
  std::vector<std::int64_t> owned(static_cast<std::size_t>(run.ranks), 0);
  std::int64_t begin = 0;
  for (const Tensor& tensor : run.sizes.tensors) {
    if (!tensor.is_trainable || tensor.elements == 0) continue;
    const std::int64_t end = begin + tensor.elements;
    for (std::int64_t rank = begin / share; rank <= (end - 1) / share; ++rank)
      owned[static_cast<std::size_t>(rank)] += tensor.elements;
    begin = end;
  }
  return static_cast<double>(*std::max_element(owned.begin(), owned.end()));
}

double gathered_bytes(const DeepspeedRun& run) {
  const DeepspeedSettings& s = run.settings;
  // On one rank a gather is a view of the shard.
  if (s.stage < 3 || (run.ranks <= 1 && s.parameters == Offload::none)) return 0;
  const double largest = run.sizes.largest_tensor;
  // Fetching ahead stops at max_live, at most one parameter late.
  const double ahead = s.prefetch_bucket > 0 ? s.max_live : 0;
  const double window = std::max({ahead, s.max_reuse_distance / 2, largest});
  const double passing =
      run.sizes.total() - run.sizes.quantised - persistent_elements(run.sizes, s);
  return (s.is_16_bit ? 2 : 4) * std::min(passing, window + largest);
}

Range live_bytes(const DeepspeedRun& run) {
  const DeepspeedSettings& s = run.settings;
  const double gathered = gathered_bytes(run);
  const double element = s.is_16_bit ? 2 : 4;
  const double low = std::min(gathered, element * run.sizes.largest_tensor);
  if (run.ranks <= 1 || s.prefetch_bucket <= 0) return {low, gathered};
  // Several parameters are received in one flat buffer and then copied out of it.
  const double received = std::min(s.prefetch_bucket, s.max_live) + run.sizes.largest_tensor;
  return {low, gathered + std::min(gathered, element * received)};
}

Range adapters_on_rank_0(const ModelSizes& sizes) {
  return {2 * sizes.trainable, 4 * sizes.trainable};
}

double rounded_block(double size_bytes) {
  return size_bytes <= 0 ? 0 : std::exp2(std::ceil(std::log2(size_bytes)));
}

}  // namespace underkeel::doctor
