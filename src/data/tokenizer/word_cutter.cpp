#include "data/tokenizer/word_cutter.h"

#include <string>
#include <utility>

#include "data/tokenizer/regex.h"

namespace underkeel::data {
namespace {

constexpr std::array<std::string_view, 3> patterns = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr char32_t code_point_count = 0x110000;

}  // namespace

std::string_view text_of(WordPattern pattern) {
  return patterns[static_cast<std::size_t>(pattern)];
}

std::optional<WordPattern> word_pattern_of(std::string_view regex) {
  for (std::size_t index = 0; index < patterns.size(); ++index)
    if (patterns[index] == regex) return static_cast<WordPattern>(index);
  return std::nullopt;
}

Result<const WordCutter*> WordCutter::get() {
  static const Result<WordCutter> made = []() -> Result<WordCutter> {
    WordCutter cutter;
    cutter.kinds_.resize(code_point_count, other);
    std::string all;
    for (char32_t code_point = 0; code_point < code_point_count; ++code_point)
      if (code_point < 0xD800 || code_point > 0xDFFF) append_utf8(code_point, all);
    for (const auto& [pattern, kind] :
         {std::pair(R"(\p{L}+)", letter), std::pair(R"(\p{N}+)", number),
          std::pair(R"(\s+)", space)}) {
      UK_TRY(regex, Regex::compile(pattern));
      UK_TRY_VOID(regex.for_each_match(all, [&, kind = kind](Match match) {
        for (std::size_t at = match.begin; at < match.end; at += code_point_bytes(all[at]))
          cutter.kinds_[first_code_point(std::string_view(all).substr(at))] = kind;
      }));
    }
    cutter.kinds_['\r'] = newline;
    cutter.kinds_['\n'] = newline;
    return cutter;
  }();
  if (!made) return tl::unexpected(made.error());
  return &*made;
}

}  // namespace underkeel::data
