#pragma once
// What a log with a traceback says: numbers of an out-of-memory error, the phase it struck in, kills, timeouts.
// Not here: what follows from it (log_rules.cpp).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/forecast.h"

namespace underkeel::doctor {

/// As text.find(words), by the two-way method: a log of some MiB is searched for some dozens of words.
std::size_t find_words(std::string_view text, std::string_view words);
/// As text.rfind(words, end).
std::size_t find_last_words(std::string_view text, std::string_view words,
                            std::size_t end = std::string_view::npos);

inline bool has(std::string_view text, std::string_view words) {
  return find_words(text, words) != std::string_view::npos;
}

/// "CUDA out of memory. Tried to allocate ...", in the wordings of torch 1.x and 2.x. Bytes; nothing where it is not said.
struct OutOfMemory {
  std::optional<double> tried;
  std::optional<double> total;
  std::optional<double> free;
  std::optional<double> allocated;
  std::optional<double> reserved_unused;  // reserved by torch, but not allocated
  std::optional<double> of_others;        // other processes on the GPU
  std::optional<std::int64_t> gpu;
  std::size_t at = 0;  // where in the log
};

enum class Place { unknown, load, forward, loss, backward, update, evaluation, save, resume };
std::string_view name_of(Place place);

struct LogSummary {
  std::optional<OutOfMemory> out_of_memory;  // the last one
  Place place = Place::unknown;              // of the error, by the functions of its own traceback
  bool cuda_refused = false;                 // device memory was refused, and no sizes are told
  bool host_refused = false;                 // the system refused host memory
  std::optional<double> host_tried;          // how much, in bytes
  Place host_place = Place::unknown;         // of that refusal
  bool keeps_logits = false;                 // the error struck where an evaluation collects logits
  bool lacks_shared_memory = false;          // a worker's bus error
  std::optional<std::int64_t> ranks;         // the least that the log's own words need
  bool failed_lock = false;  // page-locking failed: a host shortage in a device error's clothes
  bool was_killed = false;   // exit code -9 or 137, SIGKILL, the kernel's killer
  Place last_seen = Place::unknown;  // what the log last tells of before that; forward: a step
  std::optional<std::int64_t> last_save_step;
  std::optional<std::int64_t> last_step;  // of the progress bar
  bool resumed = false;
  bool evaluated_after_save = false;
  /// The error came in the first steps after a save.
  bool after_save = false;
};

/// Whether a shell said that it lost a process: "Killed" as a line, or behind a process's number.
bool shell_says_killed(std::string_view text);

/// "torch.OutOfMemoryError: CUDA ...": a class of errors by its dotted name, and a colon.
bool names_an_error(std::string_view line);

/// Where the line of `at` begins; a bar that is redrawn ends one.
std::size_t line_begin(std::string_view text, std::size_t at);

/// The lines of the traceback that ends in the error at `at`, of the same rank where ranks write between one another;
/// empty where there is none.
std::string traceback_of(std::string_view text, std::size_t at);

LogSummary read_log(std::string_view text);

}  // namespace underkeel::doctor
