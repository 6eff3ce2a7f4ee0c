#pragma once
// GPT-2's map between bytes and printable characters: a vocabulary of bytes can then be written as
// text. Bytes 33-126, 161-172 and 174-255 stand for themselves; the other 68 become U+0100 onward.

#include <optional>
#include <string>
#include <string_view>

namespace underkeel::data {

/// Every byte of `bytes` as the UTF-8 of its character.
std::string bytes_to_characters(std::string_view bytes);

/// The bytes that the characters of `text` stand for, or nullopt when one stands for no byte.
std::optional<std::string> characters_to_bytes(std::string_view text);

/// The UTF-8 of the character of `byte`.
std::string_view byte_character(unsigned char byte);

}  // namespace underkeel::data
