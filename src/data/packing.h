#pragma once
// Whole samples put together into packs, as LLaMA-Factory does it.

#include <cstdint>
#include <span>
#include <vector>

namespace underkeel::data {

/// Whether what lies in one sample of several sequences sees each other.
enum class PackingAttention {
  block_diagonal,  // each sequence stands alone
  shared           // the sample is one sequence, as LLaMA-Factory has it in plain packing
};

/// Records that are packed together: batches of `batch_records`, which do not cross the borders of
/// `shards` contiguous parts of nearly equal size.
struct PackingBatches {
  std::int64_t batch_records = 1000;
  std::int64_t shards = 1;
};

/// Where the batches of `count` records end.
std::vector<std::int64_t> batch_ends(std::int64_t count, const PackingBatches& batches);

/// Packs samples of `lengths`, none above `capacity`: the largest that fits goes in, again and again,
/// until none does; of samples of one length the last one first. Places in `lengths`, pack by pack.
std::vector<std::vector<std::uint32_t>> pack(std::span<const std::int64_t> lengths,
                                             std::int64_t capacity);

}  // namespace underkeel::data
