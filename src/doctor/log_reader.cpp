#include "doctor/log_reader.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "spec/value.h"

namespace underkeel::doctor {
namespace {

/// The number and unit at the front of `text`: "6.50 GiB", "954.00 MiB", "512 bytes".
std::optional<double> size_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '.'))
    ++end;
  const auto number = spec::parse_double(text.substr(0, end));
  if (!number) return std::nullopt;
  std::string_view unit = text.substr(end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.starts_with("GiB") || unit.starts_with("GB")) return *number * 1024 * 1024 * 1024;
  if (unit.starts_with("MiB") || unit.starts_with("MB")) return *number * 1024 * 1024;
  if (unit.starts_with("KiB")) return *number * 1024;
  if (unit.starts_with("byte")) return *number;
  return std::nullopt;
}

/// The size that follows `words`.
std::optional<double> size_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return size_at(text);
}

/// The size that stands before `words`: "73.11 GiB already allocated".
std::optional<double> size_before(std::string_view text, std::string_view words) {
  const std::size_t end = text.find(words);
  if (end == std::string_view::npos) return std::nullopt;
  // Backwards over blanks, the unit, a blank and the number.
  const auto skip = [&](std::size_t at, auto belongs) {
    while (at > 0 && belongs(text[at - 1])) --at;
    return at;
  };
  const auto is_blank = [](char c) { return c == ' '; };
  std::size_t begin = skip(end, is_blank);
  begin = skip(begin, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  begin = skip(begin, is_blank);
  begin = skip(begin,
               [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; });
  return size_at(text.substr(begin, end - begin));
}

std::optional<std::int64_t> whole_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  std::size_t end = 0;
  while (end < text.size() && end < 18 && std::isdigit(static_cast<unsigned char>(text[end])))
    ++end;
  return end == 0 ? std::nullopt : spec::parse_integer(text.substr(0, end));
}

constexpr std::string_view out_of_memory_words = "CUDA out of memory";
constexpr std::size_t message_bytes = 1200;  // the sentences of the error

OutOfMemory numbers_of(std::string_view text, std::size_t at) {
  const std::string_view message = text.substr(at, message_bytes);
  OutOfMemory error{.at = at};
  error.tried = size_after(message, "Tried to allocate");
  error.gpu = whole_after(message, "GPU ");
  error.total = size_after(message, "total capacity of");
  if (!error.total) error.total = size_before(message, "total capacity");
  error.free = size_before(message, "is free");
  if (!error.free) error.free = size_before(message, "free;");
  error.allocated = size_before(message, "is allocated by PyTorch");
  if (!error.allocated) error.allocated = size_before(message, "already allocated");
  error.reserved_unused = size_before(message, "is reserved by PyTorch but unallocated");
  if (!error.reserved_unused)
    if (const auto reserved = size_before(message, "reserved in total by PyTorch");
        reserved && error.allocated)
      error.reserved_unused = std::max(0.0, *reserved - *error.allocated);
  return error;
}

struct Clue {
  Place place;
  std::string_view words;  // a function or file of the traceback
};
/// The innermost that tells wins, so that more telling ones stand first.
constexpr Clue clues[] = {
    {Place::save, "_save_checkpoint("},
    {Place::save, "save_checkpoint"},
    {Place::save, "save_16bit_model"},
    {Place::save, "_zero3_consolidated_16bit_state_dict"},
    {Place::save, "in save_model"},
    {Place::evaluation, "evaluation_loop"},
    {Place::evaluation, "in evaluate"},
    {Place::load, "load_checkpoint"},
    {Place::load, "from_pretrained"},
    {Place::load, "_move_model_to_device"},
    {Place::update, "in _take_model_step"},
    {Place::update, "_optimizer_step"},
    {Place::update, "optimizer.step("},
    {Place::update, "in unscale_and_clip_grads"},
    {Place::backward, "in backward"},
    {Place::backward, ".backward("},
    {Place::loss, "cross_entropy"},
    {Place::loss, "log_softmax"},
    {Place::loss, "loss_utils"},
    {Place::forward, "in forward"},
};

Place place_of(std::string_view traceback) {
  for (const Clue& clue : clues)
    if (has(traceback, clue.words)) return clue.place;
  return Place::unknown;
}

std::string_view traceback_before(std::string_view text, std::size_t at) {
  const std::size_t begin = find_last_words(text, "Traceback (most recent call last)", at);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, at - begin);
}

/// The last place of any of the words before `end`.
std::size_t last_of(std::string_view text, std::size_t end,
                    std::initializer_list<std::string_view> words) {
  std::size_t last = std::string_view::npos;
  for (const std::string_view word : words) {
    const std::size_t at = find_last_words(text, word, end);
    if (at != std::string_view::npos && (last == std::string_view::npos || at > last)) last = at;
  }
  return last;
}

/// "501/1000 [" of a progress bar: the last one before `end`.
std::optional<std::int64_t> step_before(std::string_view text, std::size_t end) {
  for (std::size_t at = std::min(end, text.size()); at-- > 0;) {
    if (text[at] != '/') continue;
    std::size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1]))) --begin;
    std::size_t stop = at + 1;
    while (stop < text.size() && std::isdigit(static_cast<unsigned char>(text[stop]))) ++stop;
    if (begin == at || stop == at + 1 || !text.substr(stop).starts_with(" [")) continue;
    return spec::parse_integer(text.substr(begin, at - begin));
  }
  return std::nullopt;
}

}  // namespace

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

std::string_view name_of(Place place) {
  constexpr std::string_view names[] = {"unknown",  "load",   "forward",    "loss",
                                        "backward", "update", "evaluation", "save"};
  return names[static_cast<std::size_t>(place)];
}

bool shell_says_killed(std::string_view text) {
  for (std::size_t at = find_words(text, "Killed"); at != std::string_view::npos;
       at = text.find("Killed", at + 1)) {
    const std::size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // 0 where there is none
    const std::string_view before = text.substr(line, at - line);
    const std::string_view after = text.substr(at + 6, 1);
    const bool ends = after.empty() || after == "\n" || after == "\r";
    const std::size_t word = before.find_last_not_of(' ');
    const bool follows_number = word != std::string_view::npos && word + 1 < before.size() &&
                                std::isdigit(static_cast<unsigned char>(before[word]));
    if ((before.empty() && ends) || (follows_number && (ends || after == " "))) return true;
  }
  return false;
}

LogSummary read_log(std::string_view text) {
  LogSummary log;
  constexpr std::string_view words_of_kills[] = {"exitcode: -9",
                                                 "exitcode : -9",
                                                 "exit code -9",
                                                 "return code = -9",
                                                 "Signal 9 (SIGKILL)",
                                                 "Signals.SIGKILL",
                                                 "oom-kill",
                                                 "oom_kill event",
                                                 "Out of memory: Killed process",
                                                 "out of memory: Killed process"};
  log.was_killed = shell_says_killed(text) ||
                   std::any_of(std::begin(words_of_kills), std::end(words_of_kills),
                               [&](std::string_view words) { return has(text, words); });
  log.resumed = has(text, "Continuing training from checkpoint") ||
                has(text, "Continuing training from global step") ||
                has(text, "Resuming training from");
  std::size_t end = text.size();
  const std::size_t error = find_last_words(text, out_of_memory_words);
  if (error != std::string_view::npos) {
    log.out_of_memory = numbers_of(text, error);
    log.place = place_of(traceback_before(text, error));
    end = error;
  }
  for (const std::string_view words :
       {"CUDA error: out of memory", "CUDA error: invalid argument"}) {
    const std::size_t at = find_last_words(text, words);
    if (at == std::string_view::npos) continue;
    const std::string_view traceback = traceback_before(text, at);
    if (!has(traceback, "pin_memory") && !has(traceback, "cudaHostAlloc") &&
        !has(traceback, "cudaHostRegister"))
      continue;
    log.failed_lock = true;
    end = std::min(end, at);
  }
  log.last_step = step_before(text, end);
  const std::size_t save = last_of(
      text, end,
      {"Saving model checkpoint to", "[Torch] Saved", "Saving checkpoint", "saving checkpoint"});
  if (save != std::string_view::npos) {
    const std::string_view line = text.substr(save, 400);
    log.last_save_step = whole_after(line, "checkpoint-");
    if (!log.last_save_step) log.last_save_step = whole_after(line, "global_step");
    const std::size_t evaluation =
        last_of(text, end, {"Running Evaluation", "***** Running Evaluation"});
    log.evaluated_after_save = evaluation != std::string_view::npos && evaluation > save;
    const bool is_near =
        !log.last_save_step || !log.last_step || *log.last_step - *log.last_save_step <= 2;
    log.after_save = is_near && (log.out_of_memory || log.was_killed) && log.place != Place::save;
  }
  return log;
}

}  // namespace underkeel::doctor
