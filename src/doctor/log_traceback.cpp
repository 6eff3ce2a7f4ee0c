// Where a log's traceback begins and ends, also where several ranks write between one another.

#include <algorithm>
#include <cctype>
#include <cstring>

#include "doctor/log_reader.h"

namespace underkeel::doctor {
namespace {

/// Bytes of what a launcher puts before a rank's lines: "[rank3]: ", "[default0]:", "(Worker pid=12) ", "node-1: ", "3: ".
std::size_t mark_length(std::string_view line) {
  if (line.starts_with('[') || line.starts_with('(')) {
    const std::size_t close = line.substr(0, 80).find(line.front() == '[' ? ']' : ')');
    const std::string_view inside = line.substr(0, close == std::string_view::npos ? 0 : close);
    if (!inside.starts_with("[rank") && !inside.starts_with("[default") &&
        !inside.starts_with("[Rank") && inside.find("pid=") == std::string_view::npos)
      return 0;
    std::size_t length = close + 1;
    // One blank is the mark's; the others are the line's own.
    if (length < line.size() && line[length] == ':') ++length;
    if (length < line.size() && line[length] == ' ') ++length;
    return length;
  }
  const std::size_t colon = line.substr(0, 64).find(": ");
  if (colon == std::string_view::npos || colon == 0) return 0;
  const std::string_view name = line.substr(0, colon);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
  const bool is_error =
      name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
  return is_name && !is_error ? colon + 2 : 0;
}

constexpr std::string_view traceback_words = "Traceback (most recent call last)";
// A traceback has some dozens of lines; what other ranks write between them may be a few times as much.
constexpr std::size_t most_traceback_bytes = std::size_t{256} << 10;

/// Where the frames begin that stand right above a line, in a log whose beginning of the traceback is cut off; npos where
/// there are none.
std::size_t frames_above(std::string_view text, std::size_t own_line, std::string_view mark) {
  std::size_t begin = std::string_view::npos;
  for (std::size_t line = own_line; line > 0 && own_line - line < most_traceback_bytes;) {
    const std::size_t above = line_begin(text, line - 1);
    const std::string_view own = text.substr(above, line - above);
    if (!own.starts_with(mark) || !own.substr(mark.size()).starts_with("  ")) break;
    line = above;
    if (own.substr(mark.size()).starts_with("  File \"")) begin = above;
  }
  return begin;
}

/// Where the traceback of the error in the line at `own_line` begins, behind what stands before it on its line (a bar
/// that is redrawn); npos where there is none.
std::size_t traceback_begin(std::string_view text, std::size_t own_line, std::string_view mark) {
  constexpr int most_tracebacks = 256;  // of other ranks in between
  const std::size_t earliest =
      own_line > most_traceback_bytes ? own_line - most_traceback_bytes : 0;
  std::size_t end = own_line;
  for (int i = 0; i < most_tracebacks && end > 0; ++i) {
    const std::size_t words = find_last_words(text, traceback_words, end - 1);
    if (words == std::string_view::npos || words < earliest) break;
    const std::size_t line = line_begin(text, words);
    const std::string_view before = text.substr(line, words - line);
    if (mark.empty() && mark_length(before) == 0 && !before.ends_with("]: ")) return line;
    if (!mark.empty() && before.ends_with(mark)) return words - mark.size();
    end = words;
  }
  return frames_above(text, own_line, mark);
}

}  // namespace

std::size_t line_begin(std::string_view text, std::size_t at) {
  const std::size_t end = at == 0 ? std::string_view::npos : text.find_last_of("\r\n", at - 1);
  return end == std::string_view::npos ? 0 : end + 1;
}

bool names_an_error(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) ||
                               line[end] == '.' || line[end] == '_'))
    ++end;
  const std::string_view name = line.substr(0, end);
  return (name.ends_with("Error") || name.ends_with("Exception")) &&
         line.substr(end).starts_with(':');
}

std::string traceback_of(std::string_view text, std::size_t at) {
  const std::size_t own_line = line_begin(text, at);
  const std::string_view mark = text.substr(own_line, mark_length(text.substr(own_line)));
  const std::size_t begin = traceback_begin(text, own_line, mark);
  if (begin == std::string_view::npos) return {};
  std::string lines;
  bool is_first = true;
  for (std::size_t line = begin; line < own_line;) {
    const std::size_t end = std::min(text.find_first_of("\r\n", line), own_line);
    std::string_view own = text.substr(line, end - line);
    line = end + 1;
    if (mark.empty() ? mark_length(own) > 0 && !own.starts_with(' ') : !own.starts_with(mark))
      continue;
    own.remove_prefix(mark.size());
    // It ended in another error before.
    if (!is_first && names_an_error(own)) return {};
    is_first = false;
    lines += own;
    lines += '\n';
  }
  return lines + std::string(text.substr(own_line, at - own_line));
}

std::size_t find_words(std::string_view text, std::string_view words) {
  if (words.empty()) return 0;
  const void* at = memmem(text.data(), text.size(), words.data(), words.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

std::size_t find_last_words(std::string_view text, std::string_view words, std::size_t end) {
  // From the end in pieces, since what is sought for stands near it as a rule.
  constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  std::size_t stop = std::min(text.size(), end > text.size() ? text.size() : end + words.size());
  while (stop >= words.size()) {
    const std::size_t begin = stop > piece_bytes ? stop - piece_bytes : 0;
    const std::string_view piece = text.substr(begin, stop - begin);
    std::size_t last = std::string_view::npos, from = 0;
    while (true) {
      const std::size_t at = find_words(piece.substr(from), words);
      if (at == std::string_view::npos) break;
      last = from + at;
      from = last + 1;
    }
    if (last != std::string_view::npos) return begin + last;
    if (begin == 0) break;
    stop = begin + words.size() - 1;
  }
  return std::string_view::npos;
}

}  // namespace underkeel::doctor
