#pragma once
// The model of a tokenizer.json: turns one piece of text into token ids.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace underkeel::data {

class ByteWords;

class Model {
 public:
  virtual ~Model() = default;
  /// Appends the ids of `piece`, which is not empty. May be called by several threads.
  virtual Result<void> append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;
  /// The way for words of bytes (byte_words.h), which gives what append_ids() gives for the words
  /// written as characters; nullptr: this model has none.
  virtual const ByteWords* byte_words() const { return nullptr; }
  virtual std::optional<std::int32_t> id_of(std::string_view token) const = 0;
  virtual std::optional<std::string_view> token_of(std::int32_t id) const = 0;
  /// Number of tokens. Ids may have gaps, so the largest one can be greater.
  virtual std::int32_t token_count() const = 0;
  virtual std::int32_t largest_id() const = 0;
};

struct BpeConfig {
  std::vector<std::pair<std::string, std::int32_t>> vocabulary;  // token and id
  std::vector<std::pair<std::string, std::string>> merges;       // by falling priority
  std::optional<std::string> unknown_token;
  bool fuse_unknown = false;
  bool byte_fallback = false;   // an unknown character becomes <0xHH> tokens, if all exist
  bool ignore_merges = false;   // a piece that is a token is taken whole
  bool has_byte_words = false;  // Model::byte_words() will be asked for
};

/// Byte-pair encoding: the adjacent pair of highest priority is merged first, the leftmost of
/// equals. A pair listed twice has its later priority. Without an unknown token an unknown
/// character is left out, as in the `tokenizers` library; with one that the vocabulary lacks it is
/// an error of append_ids().
/// Errors: bad_file for a merge outside the vocabulary, for ids that are negative, above 2^24 or
/// given twice.
Result<std::unique_ptr<Model>> make_bpe(BpeConfig config);

}  // namespace underkeel::data
