#pragma once
// UTF-8: checking, reading code points, and the lossy repair that decoding uses.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace underkeel::data {

/// Offset of the first byte that is not part of well-formed UTF-8 (no surrogates, no overlong
/// forms, nothing above U+10FFFF), or nullopt when all of `text` is well formed.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// Length in bytes of the code point that starts with `lead`. `lead` must start one.
constexpr std::size_t code_point_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

/// The code point at the start of well-formed, non-empty `text`.
char32_t first_code_point(std::string_view text);
/// The last code point of well-formed, non-empty `text`, as its bytes.
std::string_view last_code_point(std::string_view text);

void append_utf8(char32_t code_point, std::string& text);

/// `bytes` with every maximal invalid part replaced by one U+FFFD (Unicode 16, section 3.9,
/// "substitution of maximal subparts").
std::string repair_utf8(std::string_view bytes);

/// The Unicode property White_Space.
bool is_white_space(char32_t code_point);
/// Bytes of white space at an end of well-formed `text`.
std::size_t white_space_at_start(std::string_view text);
std::size_t white_space_at_end(std::string_view text);

}  // namespace underkeel::data
