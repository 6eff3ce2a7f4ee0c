#pragma once
// Metaspace: a visible mark stands for the space, and may be put before the text.

#include <cstdint>
#include <memory>
#include <string>

#include "data/tokenizer/pre_tokenizer.h"

namespace underkeel::data {

enum class Prepend : std::uint8_t { always, first, never };  // first: only before the whole text

struct MetaspaceOptions {
  std::string mark = "\xE2\x96\x81";  // one code point; U+2581 in every file seen
  Prepend prepend = Prepend::always;
  bool split = true;  // every mark begins a piece
};

/// A piece that begins with the mark already gets no other.
Result<std::unique_ptr<PreTokenizer>> make_metaspace(MetaspaceOptions options);

}  // namespace underkeel::data
