// Text of ids that come one by one. Each text is decoded behind the tokens of the one before it, so
// that a decoder that treats the first token in its own way does so once.

#include <algorithm>

#include "data/tokenizer.h"

namespace underkeel::data {
namespace {

// A character has at most four bytes, so no more than four tokens can wait for its end.
constexpr std::size_t longest_character_bytes = 4;

}  // namespace

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string StreamDecoder::push(std::int32_t id) {
  ids_.push_back(id);
  std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
  const bool is_open = text.ends_with("\xEF\xBF\xBD") || !text.starts_with(given_text_);
  if (is_open && ids_.size() - given_count_ < longest_character_bytes) return {};
  return take(std::move(text));
}

std::string StreamDecoder::finish() {
  std::string rest = take(tokenizer_.decode(ids_, skip_special_tokens_));
  ids_.clear();
  given_count_ = 0;
  given_text_.clear();
  return rest;
}

// Bytes that turn out not to be a character may change the text before them. What was given out
// stays so; what follows the part in common is new.
std::string StreamDecoder::take(std::string text) {
  const auto [last, unused] =
      std::mismatch(text.begin(), text.end(), given_text_.begin(), given_text_.end());
  std::string added(last, text.end());
  if (added.empty() && text.size() <= given_text_.size()) return added;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(given_count_));
  given_count_ = ids_.size();
  given_text_ = tokenizer_.decode(ids_, skip_special_tokens_);
  return added;
}

}  // namespace underkeel::data
