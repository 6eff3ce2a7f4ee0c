#pragma once
// Tokens that are found in the text itself, before the pre-tokenizer and the model see it.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/model.h"
#include "data/tokenizer/normalizer.h"

namespace underkeel::data {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space on its left
  bool rstrip = false;       // and on its right
  bool normalized = true;    // searched in normalized text, else in the text as given
  bool special = false;      // left out by decoding when asked
  std::string found_as;      // `content`, normalized if it is searched so; set by finish()
};

/// A part of the text: an added token, or text to go on with.
struct Segment {
  std::optional<std::int32_t> id;
  std::string_view text;
};

/// Finds the longest of a set of strings at a position.
class Trie {
 public:
  /// `value` stays with the first of equal words. Empty words are ignored.
  void insert(std::string_view word, std::int32_t value);
  struct Found {
    std::int32_t value = -1;  // -1: no word begins here
    std::size_t size_bytes = 0;
  };
  bool is_empty() const { return nodes_.size() == 1; }
  /// Where the next byte is that begins a word; the end of `text` if none does.
  std::size_t next_begin(std::string_view text, std::size_t position) const {
    while (position < text.size() && !begins_[static_cast<unsigned char>(text[position])])
      ++position;
    return position;
  }
  Found longest_at(std::string_view text, std::size_t position) const;

 private:
  struct Node {
    std::map<char, std::int32_t> children;
    std::int32_t value = -1;
  };
  std::vector<Node> nodes_{1};
  std::array<bool, 256> begins_{};  // bytes that begin a word
};

class AddedTokens {
 public:
  /// Adds `token`. Its id is that of the model's vocabulary if it is there, else the next free one;
  /// the id that a file states is a claim only, and the returned id may differ. A content that was
  /// added before keeps its id and takes the new flags.
  std::int32_t add(AddedToken token, const Model& model);

  /// Makes the search tables. Call after the last add().
  Result<void> finish(const Normalizer* normalizer);

  /// Cuts raw text at tokens with normalized = false, or normalized text at the others.
  std::vector<Segment> cut_raw(std::string_view text, bool ignore_special) const;
  std::vector<Segment> cut_normalized(std::string_view text, bool ignore_special) const;

  std::optional<std::int32_t> id_of(std::string_view content) const;
  /// Whether a special token has exactly this content. Decoding asks it with `found_as`, so that a
  /// special token changed by the normalizer is not left out; the library does the same.
  bool is_special(std::string_view content) const;
  const AddedToken* token_of(std::int32_t id) const;
  std::int32_t largest_id() const { return largest_id_; }  // -1: none
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  std::vector<Segment> cut(const Trie& trie, std::string_view text, bool ignore_special) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t> index_of_content_;
  std::unordered_map<std::int32_t, std::size_t> index_of_id_;
  std::int32_t largest_id_ = -1;
  Trie raw_;
  Trie normalized_;
};

}  // namespace underkeel::data
