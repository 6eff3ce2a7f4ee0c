#include "data/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

constexpr char32_t last_character = 0x143;  // 0x100 + 68 - 1

struct Maps {
  std::array<std::string, 256> character_of_byte;
  std::array<std::int16_t, last_character + 1> byte_of_character;
};

const Maps& maps() {
  static const Maps made = [] {
    Maps result;
    result.byte_of_character.fill(-1);
    char32_t next_character = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const char32_t character = printable ? byte : next_character++;
      append_utf8(character, result.character_of_byte[byte]);
      result.byte_of_character[character] = static_cast<std::int16_t>(byte);
    }
    return result;
  }();
  return made;
}

}  // namespace

std::string_view byte_character(unsigned char byte) {
  return maps().character_of_byte[byte];
}

std::string bytes_to_characters(std::string_view bytes) {
  const auto& characters = maps().character_of_byte;
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) text += characters[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> characters_to_bytes(std::string_view text) {
  const auto& bytes_of = maps().byte_of_character;
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const char32_t character = first_code_point(text);
    if (character > last_character || bytes_of[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(bytes_of[character]));
    text.remove_prefix(code_point_bytes(text[0]));
  }
  return bytes;
}

}  // namespace underkeel::data
