#pragma once
// Inputs and expected results for tests of collectives, made alike for every transport.

#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "base/random.h"
#include "comm/communicator.h"

namespace underkeel::comm::testing {

using Bytes = std::vector<std::byte>;

inline float read(const std::byte* data, DType type, std::int64_t index) {
  const std::byte* at = data + bytes_of(type, index);
  if (type == DType::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == DType::bf16 ? to_f32(BFloat16{bits}) : to_f32(Float16{bits});
}

inline void write(std::byte* data, DType type, std::int64_t index, float value) {
  std::byte* at = data + bytes_of(type, index);
  if (type == DType::f32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = type == DType::bf16 ? to_bf16(value).bits : to_f16(value).bits;
  std::memcpy(at, &bits, sizeof bits);
}

constexpr int most_ranks = 4;
constexpr std::int64_t most_elements = 65'537;

/// Values whose sum depends on the order of addition: signs and magnitudes mixed, some -0 and a few
/// infinities. Drawn once, since every test asks for them many times.
inline const std::vector<float>& samples_of_rank(int rank) {
  static const auto samples = [] {
    std::vector<std::vector<float>> ranks(most_ranks, std::vector<float>(most_elements));
    for (std::uint32_t stream = 0; stream < most_ranks; ++stream) {
      for (std::uint64_t i = 0; i < most_elements; ++i) {
        const float scale = (random_word(7, 100 + stream, i) & 1) != 0 ? 300.0f : 0.01f;
        ranks[stream][i] = (random_uniform(7, stream, i) - 0.5f) * scale;
        if (i % 97 == 5) ranks[stream][i] = -0.0f;
        if (i % 1009 == 8 && stream == 0) ranks[stream][i] = std::numeric_limits<float>::infinity();
      }
    }
    return ranks;
  }();
  return samples[static_cast<std::size_t>(rank)];
}

inline Bytes values_of_rank(int rank, DType type, std::int64_t element_count) {
  Bytes values(static_cast<std::size_t>(bytes_of(type, element_count)));
  const std::vector<float>& samples = samples_of_rank(rank);
  for (std::int64_t i = 0; i < element_count; ++i)
    write(values.data(), type, i, samples[static_cast<std::size_t>(i)]);
  return values;
}

/// The definition: rank by rank in f32, rounded once.
inline Bytes sum_of_ranks(int world_size, DType type, std::int64_t element_count) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < world_size; ++rank)
    inputs.push_back(values_of_rank(rank, type, element_count));
  Bytes sums(inputs[0].size());
  for (std::int64_t i = 0; i < element_count; ++i) {
    float sum = read(inputs[0].data(), type, i);
    for (int rank = 1; rank < world_size; ++rank)
      sum += read(inputs[static_cast<std::size_t>(rank)].data(), type, i);
    write(sums.data(), type, i, sum);
  }
  return sums;
}

inline Bytes part_of(const Bytes& whole, DType type, ShardRange range) {
  return Bytes(whole.begin() + bytes_of(type, range.begin),
               whole.begin() + bytes_of(type, range.end));
}

/// The bytes of `rank`'s range after a reduce_scatter of everybody's values.
inline Result<Bytes> reduced_range(Communicator& comm, DType type, std::int64_t element_count,
                                   std::int64_t chunk_elements) {
  Bytes full = values_of_rank(comm.rank(), type, element_count);
  Bytes staging(
      static_cast<std::size_t>(reduce_staging_bytes(comm.world_size(), chunk_elements, type)));
  UK_TRY_VOID(comm.reduce_scatter(
      vector(full.data(), type, element_count),
      vector(staging.data(), DType::u8, static_cast<std::int64_t>(staging.size()))));
  return part_of(full, type, shard_of(element_count, comm.world_size(), comm.rank()));
}

inline Result<Bytes> reduced_everywhere(Communicator& comm, DType type, std::int64_t element_count,
                                        std::int64_t chunk_elements) {
  Bytes full = values_of_rank(comm.rank(), type, element_count);
  Bytes staging(
      static_cast<std::size_t>(reduce_staging_bytes(comm.world_size(), chunk_elements, type)));
  UK_TRY_VOID(comm.all_reduce(
      vector(full.data(), type, element_count),
      vector(staging.data(), DType::u8, static_cast<std::int64_t>(staging.size()))));
  return full;
}

/// Gathers rank 0's values from their shards; `in_place` says whether the shard lies in `full`.
inline Result<Bytes> gathered(Communicator& comm, DType type, std::int64_t element_count,
                              bool in_place) {
  const ShardRange own = shard_of(element_count, comm.world_size(), comm.rank());
  Bytes shard = part_of(values_of_rank(0, type, element_count), type, own);
  Bytes full(static_cast<std::size_t>(bytes_of(type, element_count)), std::byte{0xcd});
  std::byte* shard_data = shard.data();
  if (in_place) {
    shard_data = full.data() + bytes_of(type, own.begin);
    std::copy(shard.begin(), shard.end(), shard_data);
  }
  UK_TRY_VOID(comm.all_gather(vector(shard_data, type, own.size()),
                              vector(full.data(), type, element_count)));
  return full;
}

/// Around shard boundaries, primes, sizes where the last ranks own nothing, and none at all.
inline const std::vector<std::int64_t> awkward_sizes = {
    0, 1, 7, 2'047, 2'049, 16'383, 16'384, 16'385, 32'769, 50'021, most_elements};

/// Runs `body` once per rank, each on its own thread, on ends that are destroyed afterwards.
inline void on_threads(std::vector<std::unique_ptr<Communicator>> group,
                       const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (auto& comm : group) threads.emplace_back([&comm, &body] { body(*comm); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace underkeel::comm::testing
