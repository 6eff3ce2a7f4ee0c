#pragma once
// What every transport asks of the views it is given. A violation is our own mistake.

#include <cstddef>

#include <fmt/format.h>

#include "base/check.h"
#include "tensor/shard.h"
#include "tensor/view.h"

namespace underkeel::comm {

/// First byte of element `index` of a one-row view.
inline std::byte* element_at(TensorView view, std::int64_t index) {
  return view.as<std::byte>() + bytes_of(view.type, index);
}

inline std::int64_t size_bytes(TensorView view) {
  return bytes_of(view.type, view.element_count());
}

inline void check_all_gather(TensorView shard, TensorView full, int rank, int world_size) {
  const ShardRange own = shard_of(full.element_count(), world_size, rank);
  UK_CHECK(shard.type == full.type, "shard and full are of one type");
  UK_CHECK(shard.element_count() == own.size(),
           fmt::format("rank {} gives {} elements to a gather, its range has {}", rank,
                       shard.element_count(), own.size()));
}

inline void check_reduce(TensorView full, TensorView staging, int world_size) {
  UK_CHECK(full.type == DType::f32 || full.type == DType::bf16 || full.type == DType::f16,
           fmt::format("reduce of {}", name_of(full.type)));
  const std::int64_t least_bytes =
      world_size == 1 || full.element_count() == 0 ? 0 : bytes_of(full.type, world_size);
  UK_CHECK(
      size_bytes(staging) >= least_bytes,
      fmt::format("staging of {} bytes, at least {} needed", size_bytes(staging), least_bytes));
}

}  // namespace underkeel::comm
