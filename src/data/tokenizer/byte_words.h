#pragma once
// Byte-pair encoding of words that are bytes: what byte-level tokenizers do after their mapping of
// bytes to characters, without the mapping.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/byte_merger.h"
#include "data/tokenizer/merge_table.h"
#include "data/tokenizer/word_cache.h"
#include "data/tokenizer/word_cutter.h"

namespace underkeel::data {

/// Immutable apart from what it remembers; may be used by several threads.
class ByteWords {
 public:
  /// A token's text as the vocabulary spells it, and its id.
  struct Token {
    std::string_view text;
    std::int32_t id = 0;
  };
  /// Nothing when the vocabulary lacks the character of one of the 256 bytes. `merges` must outlive it.
  static std::unique_ptr<ByteWords> make(const std::vector<Token>& tokens, const MergeTable& merges,
                                         bool ignore_merges);

  /// Appends the ids of the words of well-formed `text`. Without `use_cache` only whole tokens are
  /// looked up; the ids are the same.
  void append_ids(std::string_view text, const WordCutter& cutter, WordPattern pattern,
                  bool use_cache, std::vector<std::int32_t>& ids) const;

 private:
  class Batch;

  ByteWords(const MergeTable& merges, bool ignore_merges)
      : merges_(merges), ignore_merges_(ignore_merges) {}

  void take_tokens(const std::vector<Token>& tokens);
  std::int32_t whole_token(std::string_view word, std::uint64_t hash) const;  // -1: none
  bool is_reachable(std::string_view word, std::int32_t id) const;
  void append_long_word(std::string_view word, std::vector<std::int32_t>& ids) const;

  std::unique_ptr<WordCache> borrow_cache() const;
  void give_back(std::unique_ptr<WordCache> cache) const;

  struct Slot {
    std::uint32_t begin = 0;  // in `bytes_`
    std::uint32_t size_bytes = 0;
    std::uint32_t hash = 0;
    std::int32_t id = -1;
  };

  const MergeTable& merges_;
  bool ignore_merges_ = false;
  std::array<std::int32_t, 256> id_of_byte_{};
  std::optional<ByteMerger> merger_;
  std::string bytes_;        // of all tokens
  std::vector<Slot> slots_;  // tokens by their bytes
  enum : std::uint8_t { unknown, reachable, unreachable };
  // Whether merging the bytes of a token gives the token: found out when it is met.
  mutable std::vector<std::atomic<std::uint8_t>> reach_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<WordCache>> idle_caches_;
};

}  // namespace underkeel::data
