#include "data/tokenizer/utf8.h"

#include <cstring>

namespace underkeel::data {
namespace {

struct Step {
  std::size_t length = 0;  // bytes of the code point, or of the maximal invalid part
  bool valid = false;
};

// Reads one code point by the table of well-formed byte sequences (Unicode 16, table 3-7).
Step read_step(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t index = 1; index < length; ++index) {
    if (index >= text.size() || byte(index) < low || byte(index) > high) return {index, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    // ASCII, eight bytes at a time.
    std::uint64_t word = 0;
    if (offset + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + offset, sizeof word);
      if ((word & 0x8080808080808080) == 0) {
        offset += sizeof word;
        continue;
      }
    }
    const Step step = read_step(text.substr(offset));
    if (!step.valid) return offset;
    offset += step.length;
  }
  return std::nullopt;
}

char32_t first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t index) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[index]));
  };
  switch (code_point_bytes(text[0])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
  }
}

std::string_view last_code_point(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string repair_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Step step = read_step(bytes);
    text += step.valid ? bytes.substr(0, step.length) : std::string_view("\xEF\xBF\xBD");
    bytes.remove_prefix(step.length);
  }
  return text;
}

bool is_white_space(char32_t code_point) {
  switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (code_point >= 0x09 && code_point <= 0x0D) ||
             (code_point >= 0x2000 && code_point <= 0x200A);
  }
}

std::size_t white_space_at_end(std::string_view text) {
  std::size_t size_bytes = 0;
  while (!text.empty()) {
    const std::string_view character = last_code_point(text);
    if (!is_white_space(first_code_point(character))) break;
    size_bytes += character.size();
    text.remove_suffix(character.size());
  }
  return size_bytes;
}

std::size_t white_space_at_start(std::string_view text) {
  std::size_t size_bytes = 0;
  while (size_bytes < text.size() && is_white_space(first_code_point(text.substr(size_bytes))))
    size_bytes += code_point_bytes(text[size_bytes]);
  return size_bytes;
}

}  // namespace underkeel::data
