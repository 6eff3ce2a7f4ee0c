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

constexpr std::size_t message_bytes = 1200;  // the sentences of the error

/// "Process 12 has 60.00 GiB memory in use": of all that are named so.
std::optional<double> held_by_others(std::string_view message) {
  constexpr std::string_view words = "Process ";
  std::optional<double> sum;
  for (std::size_t at = message.find(words); at != std::string_view::npos;
       at = message.find(words, at + 1)) {
    const std::string_view rest = message.substr(at, 80);
    const std::size_t end = rest.find("memory in use");
    if (end == std::string_view::npos) continue;
    if (const auto size = size_after(rest.substr(0, end), " has ")) sum = sum.value_or(0) + *size;
  }
  return sum;
}

OutOfMemory numbers_of(std::string_view text, std::size_t at) {
  const std::string_view message = text.substr(at, message_bytes);
  OutOfMemory error{.at = at};
  error.tried = size_after(message, "Tried to allocate");
  for (const std::string_view device : {"GPU ", "(NPU ", "(XPU "})
    if (!error.gpu) error.gpu = whole_after(message, device);
  constexpr std::int64_t most_gpus = 1024;  // of a node
  if (error.gpu && *error.gpu >= most_gpus) error.gpu.reset();
  error.total = size_after(message, "total capacity of");
  if (!error.total)
    error.total = size_after(message, "total capacty of");  // as torch 2.1 spells it
  if (!error.total) error.total = size_before(message, "total capacity");
  error.free = size_before(message, "is free");
  if (!error.free) error.free = size_before(message, "free;");
  error.of_others = held_by_others(message);
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
    {Place::resume, "load_checkpoint"},
    {Place::resume, "_load_from_checkpoint"},
    {Place::resume, "_load_optimizer_and_scheduler"},
    {Place::save, "_save_checkpoint("},
    {Place::save, "save_checkpoint"},
    {Place::save, "save_16bit_model"},
    {Place::save, "_zero3_consolidated_16bit_state_dict"},
    {Place::save, "in save_model"},
    {Place::save, "in save_pretrained"},
    {Place::evaluation, "evaluation_loop"},
    {Place::evaluation, "in evaluate"},
    {Place::evaluation, "in prediction_step"},
    {Place::load, "from_pretrained"},
    {Place::load, "_move_model_to_device"},
    {Place::load, "_configure_zero_optimizer"},
    {Place::load, "_configure_distributed_model"},
    {Place::load, "in deepspeed_init"},
    {Place::load, "deepspeed.initialize("},
    {Place::update, "in _take_model_step"},
    {Place::update, "_optimizer_step"},
    {Place::update, "optimizer.step("},
    {Place::update, "in unscale_and_clip_grads"},
    {Place::update, "self.engine.step("},
    {Place::update, "clip_grad_norm_"},
    {Place::update, "in _init_group"},
    {Place::update, ", in step\n"},
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

/// The highest number behind any of the words, and `more`.
std::optional<std::int64_t> most_after(std::string_view text, std::string_view words,
                                       std::int64_t more) {
  constexpr std::int64_t most_ranks = 1 << 20;
  std::optional<std::int64_t> most;
  for (std::size_t at = find_words(text, words); at != std::string_view::npos;) {
    const std::string_view rest = text.substr(at);
    if (const auto number = whole_after(rest.substr(0, words.size() + 20), words);
        number && *number < most_ranks)
      most = std::max(most.value_or(0), *number + more);
    const std::size_t next = find_words(rest.substr(words.size()), words);
    at = next == std::string_view::npos ? next : at + words.size() + next;
  }
  return most;
}

/// The least number of ranks that wrote the log.
std::optional<std::int64_t> ranks_in(std::string_view text) {
  std::optional<std::int64_t> ranks;
  const auto take = [&](std::optional<std::int64_t> count) {
    if (count && *count > 0) ranks = std::max(ranks.value_or(0), *count);
  };
  take(most_after(text, "[rank", 1));
  take(most_after(text, "[Rank ", 1));
  take(most_after(text, "world_size=", 0));
  take(most_after(text, "world_size: ", 0));
  take(most_after(text, "world size: ", 0));
  return ranks;
}

/// Steps that were logged between two places.
int losses_between(std::string_view text, std::size_t begin, std::size_t end) {
  std::string_view rest = text.substr(begin, end - begin);
  int count = 0;
  constexpr int enough = 100;
  for (std::size_t at = find_words(rest, "'loss':"); at != std::string_view::npos && count < enough;
       at = find_words(rest, "'loss':")) {
    ++count;
    rest.remove_prefix(at + 1);
  }
  return count;
}

/// What the log last tells of before `end`, by its own words of phases.
Place last_seen_before(std::string_view text, std::size_t end) {
  constexpr Clue words[] = {{Place::load, "Loading checkpoint shards"},
                            {Place::load, "loading weights file"},
                            {Place::resume, "Loading DeepSpeed Checkpoint"},
                            {Place::resume, "Attempting to resume from"},
                            {Place::resume, "Resuming training from"},
                            {Place::resume, "Resuming from checkpoint"},
                            {Place::resume, "[Torch] Loading checkpoint"},
                            {Place::save, "Saving model checkpoint to"},
                            {Place::save, "[Torch] Saving"},
                            {Place::save, "Saving checkpoint"},
                            {Place::evaluation, "Running Evaluation"},
                            {Place::forward, "'loss':"},
                            {Place::forward, "\"loss\":"},
                            {Place::forward, "Running training"}};
  Place last = Place::unknown;
  std::size_t furthest = 0;
  for (const Clue& each : words) {
    const std::size_t at = find_last_words(text, each.words, end);
    if (at == std::string_view::npos || (last != Place::unknown && at < furthest)) continue;
    last = each.place;
    furthest = at;
  }
  return last;
}

}  // namespace

std::string_view name_of(Place place) {
  constexpr std::string_view names[] = {"unknown", "load",       "forward", "loss",  "backward",
                                        "update",  "evaluation", "save",    "resume"};
  return names[static_cast<std::size_t>(place)];
}

namespace {

/// `killed` as bash writes it ("Killed") or zsh, behind a job's number ("[1]  4242 killed  python").
bool shell_says(std::string_view text, std::string_view killed, bool is_behind_job) {
  for (std::size_t at = find_words(text, killed); at != std::string_view::npos;
       at = text.find(killed, at + 1)) {
    // A shell's line is short; a text without line ends is none.
    constexpr std::size_t most_before = 200;
    const std::string_view near =
        text.substr(at - std::min(at, most_before), std::min(at, most_before));
    const std::size_t line_end = near.rfind('\n');
    if (line_end == std::string_view::npos && near.size() < at) continue;
    const std::string_view before =
        line_end == std::string_view::npos ? near : near.substr(line_end + 1);
    const std::string_view after = text.substr(at + 6, 1);
    const bool ends = after.empty() || after == "\n" || after == "\r";
    const std::size_t word = before.find_last_not_of(' ');
    const bool follows_number = word != std::string_view::npos && word + 1 < before.size() &&
                                std::isdigit(static_cast<unsigned char>(before[word]));
    if (is_behind_job && !before.starts_with('[')) continue;
    if ((before.empty() && ends) || (follows_number && (ends || after == " "))) return true;
  }
  return false;
}

}  // namespace

bool shell_says_killed(std::string_view text) {
  return shell_says(text, "Killed", false) || shell_says(text, "killed", true);
}

namespace {

/// The last place of words that tell of a kill; npos where there is none.
std::size_t last_kill(std::string_view text) {
  return last_of(text, std::string_view::npos,
                 {"exitcode: -9",
                  "exitcode : -9",
                  "exitcode  : -9",
                  "exit code -9",
                  "exit code: -9",
                  "return code = -9",
                  "returncode: -9",
                  "exit code 137",
                  "exit code: 137",
                  "exit status 137",
                  "exited with code 137",
                  "exitCode: 137",
                  "Exited (137)",
                  "OOMKilled",
                  "Signal 9 (SIGKILL)",
                  "Signals.SIGKILL",
                  "killed by signal: Killed",
                  "oom-kill",
                  "oom_kill event",
                  "Out of memory: Killed process",
                  "out of memory: Killed process",
                  "已杀死"});
}

void read_refusals(std::string_view text, LogSummary& log) {
  for (const std::string_view words :
       {"CUDA error: out of memory", "CUDA error: invalid argument", "cudaHostAlloc",
        "cudaHostRegister", "CUBLAS_STATUS_ALLOC_FAILED", "Cuda failure 'out of memory'",
        "Cuda failure 2 'out of memory'", "cuda runtime error (2) : out of memory"}) {
    const std::size_t at = find_last_words(text, words);
    if (at == std::string_view::npos) continue;
    const std::string traceback = traceback_of(text, at);
    const std::string_view line = text.substr(line_begin(text, at), 400);
    const bool names_lock = has(traceback, "pin_memory") || has(traceback, "cudaHostAlloc") ||
                            has(traceback, "cudaHostRegister") ||
                            has(line.substr(0, line.find('\n')), "cudaHost");
    if (names_lock) {
      log.failed_lock = true;
    } else if (words != "CUDA error: invalid argument" && !words.starts_with("cudaHost")) {
      log.cuda_refused = true;
      if (log.place == Place::unknown) log.place = place_of(traceback);
    }
  }
  if (has(text, "DefaultCPUAllocator: can't allocate memory") ||
      has(text, "DefaultCPUAllocator: not enough memory") || has(text, "Cannot allocate memory") ||
      has(text, "\nMemoryError") || has(text, "std::bad_alloc")) {
    log.host_refused = true;
    if (const std::size_t at = find_last_words(text, "llocat"); at != std::string_view::npos)
      log.host_place = place_of(traceback_of(text, at));
    if (const auto tried = whole_after(text, "you tried to allocate "))
      log.host_tried = static_cast<double>(*tried);
  }
  log.lacks_shared_memory = has(text, "out of shared memory. Please try to raise") ||
                            has(text, "killed by signal: Bus error") ||
                            has(text, "No space left on device: '/torch_") ||
                            has(text, "unable to open shared memory object") ||
                            has(text, "unable to write to file </torch_");
}

}  // namespace

LogSummary read_log(std::string_view text) {
  LogSummary log;
  const std::size_t kill = last_kill(text);
  log.was_killed = kill != std::string_view::npos || shell_says_killed(text);
  log.resumed = has(text, "Continuing training from checkpoint") ||
                has(text, "Continuing training from global step") ||
                has(text, "Resuming training from");
  std::size_t end = text.size();
  const std::size_t error = last_of(
      text, std::string_view::npos,
      {"CUDA out of memory", "HIP out of memory", "NPU out of memory", "XPU out of memory"});
  if (error != std::string_view::npos) {
    log.out_of_memory = numbers_of(text, error);
    const std::string traceback = traceback_of(text, error);
    log.place = place_of(traceback);
    log.keeps_logits = has(traceback, "nested_concat") || has(traceback, "all_preds.add") ||
                       has(traceback, "all_logits.add") || has(traceback, "pad_and_concatenate");
    end = error;
  }
  read_refusals(text, log);
  log.ranks = ranks_in(text);
  if (log.was_killed) log.last_seen = last_seen_before(text, std::min(kill, text.size()));
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
        (!log.last_save_step || !log.last_step || *log.last_step - *log.last_save_step <= 2) &&
        losses_between(text, save, end) <= 2;
    log.after_save = is_near && (log.out_of_memory || log.was_killed) && log.place != Place::save;
  }
  return log;
}

}  // namespace underkeel::doctor
