#pragma once
// Text from outside (keys, values, names, log lines) made fit for a terminal, a log line and JSON.

#include <string>
#include <string_view>

namespace underkeel {

/// A word from outside, for a message: control characters (line ends and escape sequences too), marks that turn the
/// direction of writing, and bytes that are no UTF-8 become `\x1b`, `\u202e`; at most `longest` bytes, cut between
/// characters, with the length behind.
std::string printable(std::string_view text, std::size_t longest = 200);
constexpr std::size_t any_length = std::string_view::npos;

/// A message of ours that may quote such words: nothing is cut, and line ends stay.
std::string printable_lines(std::string_view text);

/// Bytes of the UTF-8 character at the front of `text`; 0 when it is none (empty, overlong, surrogate, cut).
std::size_t utf8_length(std::string_view text);

}  // namespace underkeel
