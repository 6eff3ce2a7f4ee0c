#include "base/printable.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace underkeel {
namespace {

unsigned code_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  unsigned code = lead & (0xFFu >> (character.size() + 1));
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

/// Characters that steer a terminal or hide what stands there.
bool steers(unsigned code) {
  struct Range {
    unsigned first, last;
  };
  constexpr std::array ranges = {
      Range{0x00, 0x1F},     Range{0x7F, 0x9F},     Range{0x200B, 0x200F}, Range{0x2028, 0x202E},
      Range{0x2060, 0x206F}, Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE007F}};
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

enum class LineEnds { escape, keep };

std::string escaped(std::string_view text, LineEnds line_ends) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    const std::string_view character = text.substr(0, length);
    const bool is_byte = length == 1;
    const auto byte = static_cast<unsigned char>(character[0]);
    const unsigned code = is_byte ? byte : code_of(character);
    if (character == "\n" && line_ends == LineEnds::keep)
      result += character;
    else if (is_byte && (byte >= 0x80 || steers(code)))
      result += fmt::format("\\x{:02x}", byte);
    else if (steers(code))
      result += fmt::format("\\u{:04x}", code);
    else
      result += character;
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return escaped(text, LineEnds::escape);
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return escaped(text.substr(0, end), LineEnds::escape) +
         fmt::format("... ({} bytes)", text.size());
}

std::string printable_lines(std::string_view text) {
  return escaped(text, LineEnds::keep);
}

}  // namespace underkeel
