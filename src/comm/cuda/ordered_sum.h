#pragma once
// The sum in rank order on a GPU: bits as sum_in_rank_order() has them.

#include <cstdint>

#include "tensor/dtype.h"

namespace underkeel::comm::cuda {

/// sum[i] = x_0[i] + ... + x_(world-1)[i], added in that order in f32 and rounded once to `type`, where x_rank is `own`
/// and the others lie in `others`, `stride` elements apart, in rank order without it. Then own[i] <- sum[i], or with
/// `into`: into[i] <- sum[i], or into[i] + sum[i] rounded once.
struct OrderedSum {
  void* own = nullptr;
  const void* others = nullptr;
  std::int64_t stride = 0;
  std::int64_t count = 0;
  DType type = DType::f32;  // f32, bf16, f16
  int rank = 0;
  int world_size = 1;
  void* into = nullptr;
  DType into_type = DType::f32;
  bool adds = false;
};
void queue_ordered_sum(const OrderedSum& sum, void* stream);

}  // namespace underkeel::comm::cuda
