#pragma once
// How a reduction on GPUs is cut: every rank sends each other rank that rank's range and adds what it is sent.

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "comm/arguments.h"
#include "comm/cuda/ordered_sum.h"
#include "comm/device_collectives.h"
#include "tensor/shard.h"

namespace underkeel::comm::cuda {

/// The rounds of one reduction: in each, a piece of every other rank's values for the own range lies in staging.
class Exchange {
 public:
  Exchange(TensorView full, TensorView staging, const SumHome& home, int rank, int world_size)
      : full_(full), staging_(staging), home_(home), rank_(rank), world_size_(world_size) {
    check_reduce(full, staging, world_size);
    UK_CHECK(home.into.data == nullptr || home.into.element_count() == range_of(rank).size(),
             "a home holds the own range");
    if (is_empty()) return;
    piece_ = piece_elements(size_bytes(staging) / (world_size - 1), bytes_of(full.type, 1));
  }

  /// Nothing is to be sent or added.
  bool is_empty() const { return world_size_ == 1 || full_.element_count() == 0; }
  std::int64_t round_count() const {
    return is_empty() ? 0 : ceil_div(shard_elements(full_.element_count(), world_size_), piece_);
  }
  /// The part of `rank`'s range that moves in `round`; empty where the range has ended.
  ShardRange piece_of(int rank, std::int64_t round) const {
    const ShardRange range = range_of(rank);
    return intersect({range.begin + round * piece_, range.begin + (round + 1) * piece_}, range);
  }
  ShardRange own_piece(std::int64_t round) const { return piece_of(rank_, round); }
  /// Where `peer`'s values of a piece go.
  std::byte* slot_of(int peer) const {
    const std::int64_t slot = peer < rank_ ? peer : peer - 1;
    return staging_.as<std::byte>() + bytes_of(full_.type, slot * piece_);
  }
  /// Adds what a round has brought, once it is there.
  void queue_sum(std::int64_t round, void* stream) const {
    const ShardRange mine = own_piece(round);
    if (mine.empty()) return;
    queue_ordered_sum({.own = element_at(full_, mine.begin),
                       .others = staging_.data,
                       .stride = piece_,
                       .count = mine.size(),
                       .type = full_.type,
                       .rank = rank_,
                       .world_size = world_size_,
                       .into = home_.into.data == nullptr
                                   ? nullptr
                                   : element_at(home_.into, mine.begin - range_of(rank_).begin),
                       .into_type = home_.into.type,
                       .adds = home_.adds},
                      stream);
  }

 private:
  ShardRange range_of(int rank) const { return shard_of(full_.element_count(), world_size_, rank); }
  /// The largest piece that `room_bytes` holds and that begins where 16 bytes are read at once; large ones on whole
  /// lines of memory.
  static std::int64_t piece_elements(std::int64_t room_bytes, std::int64_t element_bytes) {
    constexpr std::int64_t line_elements = 128;
    const std::int64_t room = room_bytes / element_bytes;
    const std::int64_t pack_elements = 16 / element_bytes;
    if (room >= line_elements) return room - room % line_elements;
    return room >= pack_elements ? room - room % pack_elements : room;
  }

  TensorView full_;
  TensorView staging_;
  SumHome home_;
  int rank_;
  int world_size_;
  std::int64_t piece_ = 0;
};

}  // namespace underkeel::comm::cuda
