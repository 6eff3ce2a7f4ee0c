#pragma once
// Merges the bytes of short words: the lowest rank first, the leftmost of equals, as merge_symbols.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer/merge_table.h"

namespace underkeel::data {

/// Immutable; may be used by several threads.
class ByteMerger {
 public:
  /// Looking at all pairs again after every merge beats a heap for words of this many bytes.
  static constexpr std::size_t longest_word_bytes = 48;

  struct Job {
    std::string_view word;        // not empty, at most longest_word_bytes
    std::int32_t* ids = nullptr;  // gets the ids; room for one a byte
    std::size_t id_count = 0;     // set by merge()
  };

  /// `merges` must outlive it.
  ByteMerger(const MergeTable& merges, const std::array<std::int32_t, 256>& id_of_byte);

  /// Several words side by side: while one waits for memory another goes on.
  void merge(std::span<Job> jobs) const;

 private:
  struct Lane;
  void begin(Lane& lane, Job& job) const;
  bool step(Lane& lane) const;
  void take_answers(Lane& lane) const;

  const MergeTable& merges_;
  std::array<std::int32_t, 256> id_of_byte_;
  std::vector<Merge> merge_of_bytes_;  // by two bytes
};

}  // namespace underkeel::data
