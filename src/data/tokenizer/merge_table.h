#pragma once
// Pairs of token ids to their merge, in open addressing: a lookup per candidate pair is what encoding
// spends its time on.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace underkeel::data {

struct Merge {
  std::int32_t rank = 0;
  std::int32_t merged_id = 0;
};

class MergeTable {
 public:
  /// Call once, before the first put().
  void reserve(std::size_t count) {
    std::size_t capacity = 16;
    while (capacity < 2 * count + 2) capacity *= 2;
    slots_.assign(capacity, Slot{});
    filter_.assign(capacity / 16, 0);
  }
  void put(std::int32_t left, std::int32_t right, Merge merge) {
    const std::size_t bit = bit_of(key_of(left, right));
    filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    Slot& slot = slots_[find(key_of(left, right))];
    slot.key = key_of(left, right);
    slot.merge = merge;
  }
  const Merge* get(std::int32_t left, std::int32_t right) const {
    const std::size_t bit = bit_of(key_of(left, right));
    if ((filter_[bit / 64] >> (bit % 64) & 1) == 0) return nullptr;
    const Slot& slot = slots_[find(key_of(left, right))];
    return slot.key == empty_key ? nullptr : &slot.merge;
  }

 private:
  static constexpr std::uint64_t empty_key = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = empty_key;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t bit_of(std::uint64_t key) const {
    return (key * 0xD6E8FEB86659FD93) >> 24 & (filter_.size() * 64 - 1);
  }
  std::size_t find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t index = (key * 0x9E3779B97F4A7C15) >> 20 & mask;
    while (slots_[index].key != key && slots_[index].key != empty_key) index = (index + 1) & mask;
    return index;
  }

  std::vector<Slot> slots_;
  // Four bits a slot. Most pairs are no merge, and these bits stay in a cache that the slots do not fit.
  std::vector<std::uint64_t> filter_;
};

}  // namespace underkeel::data
