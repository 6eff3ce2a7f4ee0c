#include "report/run_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "report/json_scalars.h"
#include "report/memory_file.h"
#include "report/plain_file.h"
#include "spec/named_file.h"

namespace underkeel::report {

namespace {
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
}

/// The scalars of one line that is a flat object.
struct LogLine {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;

  double number(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? unknown : found->second;
  }
  bool has(const std::string& name) const { return numbers.contains(name); }
  std::string text(const std::string& name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? "" : found->second;
  }
  /// A count that a double holds exactly; nullopt of anything else.
  std::optional<std::int64_t> count(const std::string& name) const {
    const double value = number(name);
    constexpr double most = 9007199254740992.0;  // 2^53
    if (!(value >= 0 && value <= most)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
};

namespace {

// More than a screen can show at any zoom; beyond it, lows and highs of neighbours are kept.
constexpr std::size_t most_points = 100'000;
constexpr std::size_t most_notices = 200;
constexpr std::size_t most_saves = 100'000;
// memory.json of 8 ranks with a thousand saves has 5 MB, trainer_state.json of a million entries 200 MB.
constexpr std::int64_t memory_limit_bytes = 16 * mebibyte;
constexpr std::int64_t state_limit_bytes = 256 * mebibyte;
constexpr std::int64_t values_limit_bytes = 4 * mebibyte;

constexpr const char* known_files[] = {"events.jsonl", "trainer_log.jsonl", "trainer_state.json",
                                       "memory.json", "training_args.json"};

Result<LogLine> read_line(std::string_view text, const std::string& where) {
  LogLine line;
  UK_TRY_VOID(for_each_scalar(text, where, [&](io::JsonPath path, const io::JsonScalar& value) {
    if (path.size() != 1) return;
    if (const auto number = number_of(value)) line.numbers[path[0].key] = *number;
    if (auto words = text_of(value)) line.texts[path[0].key] = std::move(*words);
  }));
  return line;
}

std::string sentence(const Error& error) {
  return error.what + (error.where.empty() ? "" : " (" + error.where + ")");
}

}  // namespace

RunFolder::RunFolder(io::FileSystem& files, std::string folder)
    : files_(&files), lines_(files, "") {
  record_.folder = std::move(folder);
}

Result<RunFolder> RunFolder::open(io::FileSystem& files, const std::string& folder) {
  UK_TRY(stat, files.stat(folder));
  if (!stat)
    return fail(ErrorCode::not_found, "there is no such folder", folder,
                spec::where_to_look(folder));
  if (stat->kind != io::FileKind::folder)
    return fail(ErrorCode::bad_file, "not a folder", folder,
                "give the output folder of a run; a run file goes behind --plan");
  const bool holds_any =
      std::any_of(std::begin(known_files), std::end(known_files),
                  [&](const char* name) { return files.exists(io::join_path(folder, name)); });
  if (!holds_any)
    return fail(ErrorCode::not_found, "the folder holds no file of a run", folder,
                "give the output_dir of a run: it has events.jsonl, trainer_log.jsonl, "
                "trainer_state.json, memory.json or training_args.json");
  return RunFolder(files, folder);
}

void RunFolder::refresh() {
  record_.remarks.clear();
  const auto folder = files_->stat(record_.folder);
  if (!folder || !*folder) {
    record_.remarks.push_back(
        fmt::format("{} is not there any more: this is what was last read of it", record_.folder));
    return;
  }
  record_.memory.reset();
  record_.values.clear();
  const auto is_there = [&](const char* name) {
    return files_->exists(io::join_path(record_.folder, name));
  };
  const std::string source = is_there("events.jsonl")        ? "events.jsonl"
                             : is_there("trainer_log.jsonl") ? "trainer_log.jsonl"
                                                             : "trainer_state.json";
  const bool has_lines = source != "trainer_state.json";
  if (source != record_.curve_source || !has_lines) {
    forget_curves();
    record_.curve_source = source;
    lines_ = LineReader(*files_, io::join_path(record_.folder, source));
  }
  if (has_lines) {
    read_lines();
  } else {
    read_trainer_state();
  }
  if (record_.steps.empty() && record_.evaluations.empty())
    record_.remarks.push_back("no step has been logged yet: there are no curves");
  read_memory();
  read_values();
}

std::optional<std::string> RunFolder::small_file(const std::string& name, std::int64_t limit_bytes,
                                                 const std::string& when_missing) {
  const std::string path = io::join_path(record_.folder, name);
  const auto text = [&]() -> Result<std::string> {
    UK_TRY(file, open_plain_file(*files_, path));
    UK_TRY(size_bytes, file.size_bytes());
    if (size_bytes > limit_bytes)
      return fail(ErrorCode::bad_file,
                  fmt::format("it has {}; at most {} are read", format_bytes(size_bytes),
                              format_bytes(limit_bytes)));
    std::string content(static_cast<std::size_t>(size_bytes), '\0');
    UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(content)), 0));
    return content;
  }();
  if (text) return *text;
  record_.remarks.push_back(text.error().code == ErrorCode::not_found
                                ? fmt::format("{} is not there: {}", name, when_missing)
                                : fmt::format("{} was not read: {}", name, sentence(text.error())));
  return std::nullopt;
}

void RunFolder::read_lines() {
  const std::string& name = record_.curve_source;
  const auto read =
      lines_.read_new([&] { forget_curves(); }, [&](std::string_view line) { take_line(line); });
  if (!read) record_.remarks.push_back(name + " was not read: " + sentence(read.error()));
  if (bad_lines_ > 0)
    record_.remarks.push_back(fmt::format(
        "{}: {} of {} lines are no events of a run and were passed over; the first: {}", name,
        format_count(bad_lines_), format_count(lines_.line_count()), first_bad_line_));
  if (lines_.too_long_count() > 0)
    record_.remarks.push_back(fmt::format(
        "{}: {} longer than 1 MiB passed over", name,
        lines_.too_long_count() == 1 ? "a line was"
                                     : format_count(lines_.too_long_count()) + " lines were"));
  if (lines_.has_torn_end())
    record_.remarks.push_back(
        fmt::format("{} ends within a line: it is being written, or its writer died", name));
}

void RunFolder::take_line(std::string_view text) {
  const auto read = read_line(text, fmt::format("line {}", lines_.line_count()));
  if (!read) {
    if (++bad_lines_ == 1) first_bad_line_ = sentence(read.error());
  } else if (record_.curve_source == "events.jsonl") {
    if (!take_event(*read) && ++bad_lines_ == 1)
      first_bad_line_ = fmt::format("no step of `{}` (line {})", printable(read->text("event")),
                                    lines_.line_count());
  } else {
    take_log_entry(*read);
  }
}

void RunFolder::forget_curves() {
  record_.steps.clear();
  record_.evaluations.clear();
  record_.saves.clear();
  record_.notices.clear();
  record_.step_count = 0;
  record_.total_steps.reset();
  record_.state = RunState::unknown;
  record_.last_event_s = 0;
  record_.process = {};
  bad_lines_ = 0;
}

bool RunFolder::take_event(const LogLine& line) {
  const std::string event = line.text("event");
  const auto read_step = line.count("step");
  // Of no step it must not count as of step 0: all later ones would be thrown away.
  if (!read_step) return event.empty();
  const std::int64_t step = *read_step;
  if (line.has("time")) record_.last_event_s = line.number("time");
  if (event == "begin" || event == "resume") {
    begin_at(step, line.count("total_steps"));
  } else if (event == "step") {
    record_.state = RunState::unfinished;
    record_.process = {.planned_bytes = line.count("planned_process_bytes"),
                       .measured_bytes = line.count("process_bytes")};
    add_step({.step = step,
              .epoch = line.number("epoch"),
              .loss = line.number("loss"),
              .learning_rate = line.number("lr"),
              .gradient_norm = line.number("grad_norm"),
              .tokens_per_s = line.number("tokens_per_s"),
              .step_s = line.number("step_s")});
  } else if (event == "evaluate") {
    add_evaluation({.step = step, .loss = line.number("eval_loss")});
  } else if (event == "save_begin" && record_.saves.size() < most_saves) {
    record_.saves.push_back({.step = step, .folder = line.text("folder")});
  } else if (event == "save_end") {
    const auto same = [&](const SavePoint& save) { return save.step == step && !save.is_complete; };
    auto found = std::find_if(record_.saves.rbegin(), record_.saves.rend(), same);
    if (found == record_.saves.rend()) return true;
    *found = {.step = step,
              .folder = line.text("folder"),
              .size_bytes = line.count("bytes").value_or(0),
              .elapsed_s = line.number("elapsed_s"),
              .waited_s = line.number("waited_s"),
              .is_complete = true};
  } else if (event == "finish") {
    record_.state = RunState::finished;
  } else if (event == "stop") {
    record_.state = RunState::stopped;
    record_.stop_reason = line.text("reason");
  } else if (event == "notice" && record_.notices.size() < most_notices) {
    record_.notices.push_back(fmt::format("step {}: {}", step, line.text("text")));
  }
  return true;
}

// What came of later steps than this one is made again.
void RunFolder::begin_at(std::int64_t step, std::optional<std::int64_t> total_steps) {
  drop_after(step);
  std::erase_if(record_.saves, [&](const SavePoint& save) { return save.step > step; });
  record_.state = RunState::unfinished;
  record_.total_steps = total_steps;
}

void RunFolder::take_log_entry(const LogLine& line) {
  const auto step = line.count("current_steps");
  if (!step) return;
  if (record_.state == RunState::unknown) record_.state = RunState::unfinished;
  record_.total_steps = line.count("total_steps");
  if (line.has("loss"))
    add_step({.step = *step,
              .epoch = line.number("epoch"),
              .loss = line.number("loss"),
              .learning_rate = line.has("lr") ? line.number("lr") : line.number("learning_rate"),
              .gradient_norm = unknown,
              .tokens_per_s = line.number("throughput"),
              .step_s = unknown});
  if (line.has("eval_loss")) add_evaluation({.step = *step, .loss = line.number("eval_loss")});
}

void RunFolder::read_trainer_state() {
  const auto text = small_file("trainer_state.json", state_limit_bytes,
                               "the Trainer and this engine write it at the end of a run");
  if (!text) return;
  LogLine entry;
  std::int64_t position = -1;
  const auto take_entry = [&] {
    const auto step = entry.count("step");
    if (step && entry.has("loss"))
      add_step({.step = *step,
                .epoch = entry.number("epoch"),
                .loss = entry.number("loss"),
                .learning_rate = entry.number("learning_rate"),
                .gradient_norm = entry.number("grad_norm"),
                .tokens_per_s = unknown,
                .step_s = unknown});
    if (step && entry.has("eval_loss"))
      add_evaluation({.step = *step, .loss = entry.number("eval_loss")});
    entry = {};
  };
  const auto read = for_each_scalar(*text, "trainer_state.json",
                                    [&](io::JsonPath path, const io::JsonScalar& value) {
                                      if (path.size() == 1 && path[0].key == "max_steps")
                                        record_.total_steps = whole_of(value);
                                      if (path.size() != 3 || path[0].key != "log_history") return;
                                      if (path[1].index != position) take_entry();
                                      position = path[1].index;
                                      if (const auto number = number_of(value))
                                        entry.numbers[path[2].key] = *number;
                                    });
  take_entry();
  if (!read)
    record_.remarks.push_back("trainer_state.json was read in part: " + sentence(read.error()));
}

void RunFolder::read_memory() {
  const auto text = small_file("memory.json", memory_limit_bytes,
                               "this engine writes it when a run ends; planned and measured memory "
                               "are compared then");
  if (!text) return;
  auto memory = read_memory_file(*text);
  if (memory) {
    record_.memory = std::move(*memory);
  } else {
    record_.remarks.push_back("memory.json was not read: " + sentence(memory.error()));
  }
}

void RunFolder::read_values() {
  const auto text =
      small_file("training_args.json", values_limit_bytes, "the values in force are not known");
  if (!text) return;
  const auto read = for_each_scalar(
      *text, "training_args.json", [&](io::JsonPath path, const io::JsonScalar& value) {
        if (path.size() == 1) {
          record_.values.push_back({path[0].key, words_of(value), ""});
        } else if (path.size() == 2 && path[1].key == "value") {
          record_.values.push_back({path[0].key, words_of(value), ""});
        } else if (path.size() == 2 && path[1].key == "source" && !record_.values.empty() &&
                   record_.values.back().key == path[0].key) {
          record_.values.back().source = words_of(value);
        }
      });
  if (!read)
    record_.remarks.push_back("training_args.json was read in part: " + sentence(read.error()));
}

// A resume makes steps again: of two events of one step the later one counts.
void RunFolder::drop_after(std::int64_t step) {
  while (!record_.steps.empty() && record_.steps.back().step > step) {
    record_.steps.pop_back();
    record_.step_count = std::max<std::int64_t>(record_.step_count - 1, 0);
  }
  while (!record_.evaluations.empty() && record_.evaluations.back().step > step)
    record_.evaluations.pop_back();
}

void RunFolder::add_step(const StepPoint& point) {
  drop_after(point.step - 1);
  record_.steps.push_back(point);
  ++record_.step_count;
  if (record_.steps.size() > most_points) thin_out();
}

void RunFolder::add_evaluation(const EvaluationPoint& point) {
  while (!record_.evaluations.empty() && record_.evaluations.back().step >= point.step)
    record_.evaluations.pop_back();
  record_.evaluations.push_back(point);
  // One an hour for ten years.
  if (record_.evaluations.size() > most_points)
    record_.evaluations.erase(record_.evaluations.begin());
}

// Of every four neighbours the lowest and the highest loss stay.
void RunFolder::thin_out() {
  std::vector<StepPoint> kept;
  kept.reserve(record_.steps.size() / 2 + 2);
  const auto by_loss = [](const StepPoint& a, const StepPoint& b) { return a.loss < b.loss; };
  for (auto begin = record_.steps.begin(); begin != record_.steps.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(4, record_.steps.end() - begin);
    auto [low, high] = std::minmax_element(begin, end, by_loss);
    if (low > high) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
    begin = end;
  }
  record_.steps = std::move(kept);
}

}  // namespace underkeel::report
