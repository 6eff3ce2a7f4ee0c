#pragma once
// Which part of a flat run of elements each rank owns. The same map serves every ZeRO stage, so
// that sums over shards are added in the same order whatever the stage.

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "tensor/dtype.h"

namespace underkeel {

/// A shard starts at a multiple of this, so that NF4 with double quantisation (64 x 256) cuts
/// cleanly.
constexpr std::int64_t shard_alignment_elements = 16'384;

struct ShardRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // exclusive
  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
};

/// Elements of the largest shard of `element_count` over `world_size` ranks.
inline std::int64_t shard_elements(std::int64_t element_count, std::int64_t world_size) {
  if (world_size == 1) return element_count;
  return std::min(element_count,
                  round_up(ceil_div(element_count, world_size), shard_alignment_elements));
}

/// The range of `rank`; the last ranks may own less, or nothing.
inline ShardRange shard_of(std::int64_t element_count, std::int64_t world_size, std::int64_t rank) {
  const std::int64_t size = shard_elements(element_count, world_size);
  const std::int64_t begin = std::min(element_count, rank * size);
  return {begin, std::min(element_count, begin + size)};
}

/// Bytes of staging with which a reduction over ranks works in chunks of `chunk_elements` per rank.
constexpr std::int64_t reduce_staging_bytes(std::int64_t world_size, std::int64_t chunk_elements,
                                            DType type) {
  return world_size == 1 ? 0 : world_size * bytes_of(type, chunk_elements);
}

inline ShardRange intersect(ShardRange a, ShardRange b) {
  const ShardRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.empty() ? ShardRange{both.begin, both.begin} : both;
}

}  // namespace underkeel
