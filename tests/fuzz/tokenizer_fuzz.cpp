// tokenizer.json, tokenizer_config.json and a text, separated by zero bytes: any of them may be
// anything. A first byte of 0A is that of a tokenizer.model, and then the whole input is also that and
// a text. What reads must encode, decode, and keep its ids inside the vocabulary.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "data/tokenizer.h"

namespace {

void use(const underkeel::data::Tokenizer& tokenizer, std::string_view text) {
  for (const bool split : {false, true}) {
    const auto ids =
        tokenizer.encode(text, {.add_special_tokens = split, .split_special_tokens = split});
    if (!ids) continue;
    if (!split)
      for (const std::int32_t id : *ids)
        UK_CHECK(id >= 0 && id < tokenizer.vocabulary_size(), "an id outside the vocabulary");
    tokenizer.decode(*ids, split);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::size_t first = input.find('\0');
  const std::size_t second = first == input.npos ? first : input.find('\0', first + 1);
  const std::string_view json = input.substr(0, first);
  const std::string_view config =
      first == input.npos ? std::string_view() : input.substr(first + 1, second - first - 1);
  const std::string_view text =
      second == input.npos ? std::string_view() : input.substr(second + 1);

  using underkeel::data::Tokenizer;
  if (input.starts_with('\n'))
    if (const auto tokenizer = Tokenizer::from_texts({.sentencepiece = input}))
      use(*tokenizer, input);
  if (const auto tokenizer = Tokenizer::from_json(json, config)) use(*tokenizer, text);
  return 0;
}
