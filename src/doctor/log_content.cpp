#include "doctor/log_content.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "doctor/log_reader.h"
#include "spec/json_reader.h"

namespace underkeel::doctor {
namespace {

bool has_any(const spec::Value& line, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return line.find(key) != nullptr; });
}

/// Words of a log in a line that is no JSON object; the first line of an end that was cut out may be half of one.
bool has_log_lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with('{') && looks_like_log(line)) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
}

/// Without "[rank3]: ", "[default0]:" and what else stands in brackets before a message.
std::string_view without_marks(std::string_view line) {
  while (line.starts_with('[')) {
    const std::size_t close = line.find(']');
    if (close == std::string_view::npos || close > 120) return line;
    line.remove_prefix(close + 1);
    line.remove_prefix(std::min(line.find_first_not_of(": "), line.size()));
  }
  return line;
}

/// "2026-11-30 21:13:43", also in a bracket.
bool begins_with_time(std::string_view line) {
  if (line.starts_with('[')) line.remove_prefix(1);
  constexpr std::string_view form = "0000-00-00 00:00";
  if (line.size() < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool fits = form[i] == '0' ? is_digit_at(line, i)
                                     : line[i] == form[i] || (form[i] == ' ' && line[i] == 'T');
    if (!fits) return false;
  }
  return true;
}

/// What only a program writes, by how the line begins.
bool is_log_line(std::string_view line) {
  constexpr std::string_view beginnings[] = {"[INFO", "[WARNING", "[ERROR", "[rank",
                                             "Traceback (most recent call last)"};
  for (const std::string_view beginning : beginnings)
    if (line.starts_with(beginning)) return true;
  if (begins_with_time(line)) return true;
  const std::string_view message = without_marks(line);
  return names_an_error(message) || message.starts_with("Traceback (most recent call last)");
}

/// Words of launchers, kernels and libraries anywhere in a line; with `#` for a digit that follows.
bool has_words_of_programs(std::string_view text) {
  constexpr std::string_view words[] = {"Tried to allocate #",
                                        "(exitcode: #",
                                        "(exitcode: -#",
                                        "exitcode  : ",
                                        "return code = -#",
                                        "Signal # (SIGKILL)",
                                        "<Signals.SIGKILL",
                                        "oom-kill:constraint",
                                        "oom_kill event",
                                        "Exited (#",
                                        "ut of memory: Killed process #",
                                        "Watchdog caught collective operation timeout",
                                        "it/s]",
                                        "s/it]"};
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view pattern) {
    const std::size_t digit = pattern.find('#');
    const std::string_view start = pattern.substr(0, digit);
    if (digit == std::string_view::npos) return has(text, start);
    const std::string_view rest = pattern.substr(digit + 1);
    for (std::size_t from = 0;;) {
      const std::size_t at = find_words(text.substr(from), start);
      if (at == std::string_view::npos) return false;
      from += at + start.size();
      if (is_digit_at(text, from) && text.substr(from + 1).starts_with(rest)) return true;
    }
  });
}

}  // namespace

bool looks_like_log(std::string_view text) {
  if (has_words_of_programs(text) || shell_says_killed(text)) return true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (is_log_line(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::optional<spec::Value> first_json_line(std::string_view text) {
  if (!text.starts_with('{')) return std::nullopt;
  auto line = spec::read_json(text.substr(0, text.find('\n')), "", spec::JsonDialect::strict);
  if (!line) return std::nullopt;
  return std::move(line->root);
}

bool is_log_in_json(const spec::Value& first, std::string_view beginning, std::string_view end) {
  if (has_any(first, {"instruction", "messages", "conversations", "prompt", "text", "chosen"}))
    return false;
  const bool counts_steps =
      has_any(first, {"current_steps", "total_steps"}) ||
      (has_any(first, {"loss", "eval_loss"}) && has_any(first, {"step", "global_step", "epoch"}));
  const bool is_of_a_logger = has_any(first, {"level", "levelname", "severity"}) &&
                              has_any(first, {"msg", "message", "event"});
  return counts_steps || is_of_a_logger || has_log_lines(beginning) || has_log_lines(end);
}

}  // namespace underkeel::doctor
