#pragma once
// Pairs of token ids to their merge: a lookup per candidate pair is what encoding spends its time on.
//
// The partners of a left id lie together in an open-addressed row, and rows in the order of ids. Vocabularies
// number tokens by falling frequency, so that what is used much shares few cache lines; in one
// table hashed by pairs it would be spread over all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace underkeel::data {

struct Merge {
  /// The rank of a pair that does not merge.
  static constexpr std::int32_t no_rank = std::numeric_limits<std::int32_t>::max();

  std::int32_t rank = no_rank;
  std::int32_t merged_id = -1;
};

struct MergePair {
  std::int32_t left = 0;
  std::int32_t right = 0;
  Merge merge;
};

class MergeTable {
 public:
  MergeTable() : MergeTable(std::span<const MergePair>{}) {}

  /// Ids are not negative. Of equal pairs the last one counts.
  explicit MergeTable(std::span<const MergePair> pairs) {
    std::vector<std::uint32_t> partners;  // by left id
    for (const MergePair& pair : pairs) {
      const auto left = static_cast<std::size_t>(pair.left);
      if (partners.size() <= left) partners.resize(left + 1);
      ++partners[left];
    }
    rows_.resize(partners.size() + 1);
    std::size_t slot_count = 1;
    for (std::size_t left = 0; left < partners.size(); ++left) {
      if (partners[left] == 0) continue;
      Row& row = rows_[left + 1];
      row.begin = static_cast<std::uint32_t>(slot_count);
      while (std::uint32_t{1} << row.size_bits < 2 * partners[left]) ++row.size_bits;
      slot_count += std::size_t{1} << row.size_bits;
    }
    slots_.resize(slot_count);
    for (const MergePair& pair : pairs) {
      Row& row = rows_[static_cast<std::size_t>(pair.left) + 1];
      const std::uint64_t hash = hash_of(pair.right);
      row.filter = (row.filter | std::uint32_t{1} << bit_of(hash)) & ((1U << 27) - 1);
      slots_[slot_of(question_of(row, hash, pair.right, ~std::size_t{0}))] = {.right = pair.right,
                                                                              .merge = pair.merge};
    }
  }

  /// Merge::no_rank: the pair does not merge. Neither does any with the id -1.
  Merge get(std::int32_t left, std::int32_t right) const { return answer(ask(left, right)); }

  /// get() in two halves: what the second one needs is on its way from memory meanwhile.
  struct Question {
    std::int32_t right = -1;
    std::uint32_t row_mask = 0;
    std::size_t begin = 0;
    std::size_t index = 0;
  };
  Question ask(std::int32_t left, std::int32_t right) const {
    const Row row = row_of(left);
    const std::uint64_t hash = hash_of(right);
    // Without a branch, which would be mispredicted as often as not: what is no pair for certain is sent
    // to the slot that stays empty.
    const std::size_t mask = 0 - (row.filter >> bit_of(hash) & 1);
    const Question question = question_of(row, hash, right, mask);
    __builtin_prefetch(&slots_[question.begin + question.index]);
    return question;
  }
  Merge answer(const Question& question) const { return slots_[slot_of(question)].merge; }
  /// Brings what ask() will read for `left` into the nearest cache.
  void fetch(std::int32_t left) const { __builtin_prefetch(&row_of(left)); }

 private:
  // The first row, and that of an id without partners, is slot 0, which stays empty.
  struct Row {
    std::uint32_t begin = 0;
    std::uint32_t size_bits : 5 = 0;
    std::uint32_t filter : 27 = 0;  // a bit for each partner: most pairs are no merge
  };
  static_assert(sizeof(Row) == 8);
  struct Slot {
    std::int32_t right = -1;  // -1: empty
    Merge merge;
  };

  static std::uint64_t hash_of(std::int32_t right) {
    return static_cast<std::uint32_t>(right) * 0x9E3779B97F4A7C15;
  }
  static std::uint64_t bit_of(std::uint64_t hash) { return (hash >> 32) * 27 >> 32; }

  const Row& row_of(std::int32_t left) const {
    const auto index = static_cast<std::size_t>(left + 1);
    return rows_[index < rows_.size() ? index : 0];
  }
  // `mask` 0 leads to slot 0.
  static Question question_of(Row row, std::uint64_t hash, std::int32_t right, std::size_t mask) {
    const auto row_mask = static_cast<std::uint32_t>((std::uint64_t{1} << row.size_bits) - 1);
    return {.right = right,
            .row_mask = row_mask,
            .begin = row.begin & mask,
            .index = hash >> 24 & row_mask & mask};
  }
  // The slot of the pair, or the empty one where it would be.
  std::size_t slot_of(const Question& question) const {
    // The least of both differences: one branch, seldom taken, and not one for each way to end.
    const auto goes_on = [&](std::int32_t there) {
      return std::min(static_cast<std::uint32_t>(there ^ question.right),
                      static_cast<std::uint32_t>(~there)) != 0;
    };
    std::size_t index = question.index;
    while (goes_on(slots_[question.begin + index].right)) index = (index + 1) & question.row_mask;
    return question.begin + index;
  }

  std::vector<Row> rows_;  // by left id + 1
  std::vector<Slot> slots_;
};

}  // namespace underkeel::data
