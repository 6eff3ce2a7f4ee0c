#include "doctor/log_content.h"

#include <algorithm>
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

}  // namespace

bool looks_like_log(std::string_view text) {
  constexpr std::string_view words[] = {"Traceback (most recent call last)",
                                        "out of memory",
                                        "OutOfMemoryError",
                                        "exitcode",
                                        "Signal 9",
                                        "SIGKILL",
                                        "oom_kill",
                                        "oom-kill",
                                        "AssertionError",
                                        "ValidationError",
                                        "RuntimeError",
                                        "ValueError",
                                        "Watchdog",
                                        "[INFO]",
                                        "[WARNING]",
                                        "[rank0]",
                                        "Killed"};
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return has(text, word); });
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
