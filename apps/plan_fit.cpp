#include "plan_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/units.h"
#include "planner/best_fit.h"
#include "planner/search_grid.h"
#include "run_length.h"
#include "simulate/simulate.h"
#include "spec/value.h"
#include "time_text.h"

namespace underkeel::apps {

namespace {

using Json = nlohmann::ordered_json;
using planner::BestFit;
using planner::FittingRun;

constexpr double seconds_per_hour = 3600;

std::string plural(std::string_view what, std::int64_t count) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

// What a user may expect here and this engine cannot do or does not change.
std::vector<std::string> not_searched(const planner::FitQuestion& question, const FitWords& words) {
  std::vector<std::string> said = {
      "offload of optimizer or parameters, LoRA and QLoRA: not built yet",
      fmt::format(
          "ranks stay {}, the global batch {}, precision and cutoff_len as they "
          "are: they would change the machine or the result",
          question.placement.world_size,
          plural("sequence", question.run.sequences_per_micro_batch *
                                 question.run.accumulation_steps * question.placement.world_size)),
      "bucket sizes: the forecast of times does not depend on them"};
  const planner::MicroBatches batches = planner::micro_batches_to_search(question);
  const auto tried_count = static_cast<std::int64_t>(batches.tried.size());
  if (batches.passed_over > 0)
    said.push_back(fmt::format("{} of {} micro-batches: they lie between those that are tried",
                               batches.passed_over, batches.passed_over + tried_count));
  if (words.nvme_bytes)
    said.push_back(
        fmt::format("nvme={}: nothing of a run lies there yet", format_bytes(*words.nvme_bytes)));
  return said;
}

// Key and value of "key=value", the value typed as the run file reads it.
std::pair<std::string, Json> entry_of(const std::string& word) {
  const std::size_t sign = word.find('=');
  const std::string value = word.substr(sign + 1);
  const auto number = spec::parse_integer(value);
  return {word.substr(0, sign), number ? Json(*number) : Json(value)};
}

/// What is known of the time to the end of a run.
struct ToEnd {
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> evaluations;
  std::optional<std::int64_t> saves;
  std::optional<double> evaluation_s;  // of one
  std::optional<double> whole_s;       // without evaluations or saves where they are not known

  bool counts_evaluations() const { return evaluations && evaluation_s; }
};

ToEnd to_end(const FittingRun& row, const FitWords& words, std::int64_t ranks) {
  ToEnd known;
  const spec::EvaluationConfig& evaluation = row.run.evaluation;
  if (row.times.evaluation_batch_s == 0) {
    known.evaluations = 0;
    known.evaluation_s = 0;
  } else if (const auto samples = evaluation_samples(row.run, words.data)) {
    known.evaluation_s = row.times.evaluation_batch_s *
                         static_cast<double>(ceil_div(*samples, evaluation.batch_size * ranks));
  }
  const std::optional<train::RunLength> length = length_of(row.run, ranks, words.data);
  if (!length) return known;
  known.steps = length->steps;
  if (!known.evaluations) known.evaluations = train::evaluation_count(row.run, *length);
  known.saves = train::save_count(row.run, *length);
  known.whole_s = static_cast<double>(length->steps) * row.times.step_s +
                  static_cast<double>(known.saves.value_or(0)) * row.times.save_wait_s;
  if (known.counts_evaluations())
    *known.whole_s += static_cast<double>(*known.evaluations) * *known.evaluation_s;
  return known;
}

bool saves(const FittingRun& row) {
  return row.run.save.strategy != spec::Cadence::no;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const FittingRun& row, const FitWords& words, std::int64_t ranks) {
  Json patch = Json::object();
  for (const std::string& word : row.words) {
    auto [key, value] = entry_of(word);
    patch[key] = value;
  }
  Json peaks = Json::object();
  for (std::size_t s = 0; s < row.peak_bytes.size(); ++s)
    if (row.peak_bytes[s] > 0)
      peaks[std::string(name_of(static_cast<plan::MemorySpace>(s)))] = row.peak_bytes[s];
  Json decisions = Json::array();
  for (const plan::Decision& choice : row.choices) {
    Json alternatives = Json::array();
    for (const plan::Alternative& other : choice.alternatives)
      alternatives.push_back({{"value", other.value}, {"effect", other.effect}});
    decisions.push_back({{"subject", choice.subject},
                         {"value", choice.value},
                         {"reason", choice.reason},
                         {"alternatives", alternatives}});
  }
  const ToEnd end = to_end(row, words, ranks);
  return {{"changes", row.words},
          {"patch", patch},
          {"step_s", row.times.step_s},
          {"steps_per_hour", seconds_per_hour / row.times.step_s},
          {"total_steps", or_null(end.steps)},
          {"hours", end.whole_s ? Json(*end.whole_s / seconds_per_hour) : Json()},
          {"evaluation_batch_s", row.times.evaluation_batch_s},
          {"evaluation_s", or_null(end.evaluation_s)},
          {"evaluations", or_null(end.evaluations)},
          {"saves", or_null(end.saves)},
          {"save_s", saves(row) ? Json(row.times.save_s) : Json()},
          {"save_wait_s", saves(row) ? Json(row.times.save_wait_s) : Json()},
          {"peak_bytes", peaks},
          {"node_host_bytes", row.node_bytes},
          {"disk_bytes", row.disk ? Json(row.disk->needed_bytes) : Json()},
          {"decisions", decisions}};
}

std::string json_text(const planner::FitQuestion& question, const planner::Room& room,
                      const BestFit& found, const FitWords& words) {
  Json budgets = Json::object();
  const auto add = [&](std::string_view name, const std::optional<plan::Budget>& budget) {
    if (budget)
      budgets[std::string(name)] = {{"bytes", budget->size_bytes}, {"reason", budget->reason}};
  };
  add("device", room.spaces[index(plan::MemorySpace::device)]);
  add("host", room.node);
  if (words.disk)
    budgets["disk"] = {{"bytes", words.disk->free_bytes}, {"reason", words.disk->source}};
  Json rows = Json::array();
  for (const FittingRun& row : found.rows)
    rows.push_back(json_of(row, words, question.placement.world_size));
  const Json whole = {
      {"fits", !found.rows.empty()},
      {"ranks", question.placement.world_size},
      {"budgets", budgets},
      {"searched", found.searched},
      {"planned", found.planned},
      {"rates_are_measured", question.machine.rates_are_measured},
      {"rows", rows},
      {"smallest",
       found.smallest ? json_of(*found.smallest, words, question.placement.world_size) : Json()},
      {"not_searched", not_searched(question, words)}};
  return whole.dump(2) + "\n";
}

std::string settings_text(const FittingRun& row) {
  return row.words.empty() ? "as it is" : fmt::format("{}", fmt::join(row.words, " "));
}

std::string rate_text(double steps_per_hour) {
  return steps_per_hour < 100 ? fmt::format("{:.3g}", steps_per_hour)
                              : format_count(std::llround(steps_per_hour));
}

/// A line for the choice and one for each alternative.
std::string choice_text(const plan::Decision& choice) {
  std::string text = fmt::format("  {} {}: {}\n", choice.subject, choice.value, choice.reason);
  std::size_t width = 0;
  for (const plan::Alternative& other : choice.alternatives)
    width = std::max(width, other.value.size());
  for (const plan::Alternative& other : choice.alternatives)
    text += fmt::format("      {:{}}  {}\n", other.value, width, other.effect);
  return text;
}

/// "a", "a and b", "a, b and c".
std::string in_words(const std::vector<std::string>& parts) {
  const std::string before = fmt::format("{}", fmt::join(parts.begin(), parts.end() - 1, ", "));
  return before.empty() ? parts.back() : before + " and " + parts.back();
}

/// Columns as wide as what stands in them, figures to the right.
std::string table_text(const BestFit& found, const planner::Room& room, const FitWords& words) {
  using Line = std::vector<std::string>;
  std::vector<Line> lines = {
      {"step", "steps/h", "to end", "evaluation", "save", "of which", "device", "node's",
       "settings"},
      {"", "", "", "", "", "waited", room.device_is_host ? "of a rank" : "of a GPU", "host", ""}};
  for (const FittingRun& row : found.rows) {
    const ToEnd end = to_end(row, words, room.placement.world_size);
    lines.push_back({time_text(row.times.step_s), rate_text(seconds_per_hour / row.times.step_s),
                     end.whole_s ? time_text(*end.whole_s) : "?",
                     row.times.evaluation_batch_s == 0 ? "-"
                     : end.evaluation_s                ? time_text(*end.evaluation_s)
                                                       : "?",
                     saves(row) ? time_text(row.times.save_s) : "-",
                     saves(row) ? time_text(row.times.save_wait_s) : "-",
                     format_bytes(row.peak_bytes[index(plan::MemorySpace::device)]),
                     format_bytes(row.node_bytes), settings_text(row)});
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      row += fmt::format("  {:>{}}", line[i], widths[i]);
    text += row + (line.back().empty() ? "" : "  " + line.back()) + "\n";
  }
  return text;
}

/// What `to end` counts, and what it does not.
std::string to_end_text(const FittingRun& best, const ToEnd& end) {
  if (!end.steps) return "  to end: not known without max_steps; --data counts the samples\n";
  std::vector<std::string> counted = {plural("step", *end.steps)}, left_out;
  if (!end.counts_evaluations())
    left_out.push_back(
        fmt::format("evaluations ({} a batch)", time_text(best.times.evaluation_batch_s)));
  else if (*end.evaluations > 0)
    counted.push_back(plural("evaluation", *end.evaluations));
  if (!end.saves)
    left_out.push_back(
        fmt::format("saves ({} waited for each)", time_text(best.times.save_wait_s)));
  else if (*end.saves > 0)
    counted.push_back(plural("save", *end.saves));
  std::string text = fmt::format("  to end: {}", in_words(counted));
  if (!left_out.empty())
    text += fmt::format("; without {}: --data counts them", in_words(left_out));
  return text + "\n";
}

std::string text_of(const planner::FitQuestion& question, const planner::Room& room,
                    const BestFit& found, const FitWords& words) {
  std::string text = fmt::format(
      "{} settings of {} looked at, {} planned in full; fastest first, times from {} rates\n\n",
      found.searched, question.run.run_file.string(), found.planned,
      question.machine.rates_are_measured ? "measured" : "assumed");
  text += table_text(found, room, words);
  const FittingRun& best = found.rows.front();
  text += to_end_text(best, to_end(best, words, question.placement.world_size));
  if (!saves(best)) text += "  save: none on the way (save_strategy no)\n";
  if (best.disk)
    text +=
        fmt::format("  disk: the first needs {} for checkpoints and the final model, of {} ({})\n",
                    format_bytes(best.disk->needed_bytes), format_bytes(best.disk->free_bytes),
                    words.disk->source);
  if (!best.words.empty()) {
    text += "\nthe first, as lines of the run file (instead of lines with the same key):\n";
    for (const std::string& word : best.words) {
      const std::size_t sign = word.find('=');
      text += fmt::format("    {}: {}\n", word.substr(0, sign), word.substr(sign + 1));
    }
  }
  text += "\nwhy the first\n";
  for (const plan::Decision& choice : best.choices) text += choice_text(choice);
  text += "\nnot searched\n";
  for (const std::string& said : not_searched(question, words)) text += fmt::format("  {}\n", said);
  return text;
}

/// What the disk lacks for the settings that come closest; nothing where it has the room.
Result<void> check_disk(const FittingRun& closest, const std::optional<FitDisk>& disk) {
  if (!disk) return {};
  return io::check_space(disk->need(closest.run), disk->free_bytes, disk->source);
}

/// "5.6 MiB of device, allowed 4.0 MiB (--fit device)"
std::string shortage_text(const planner::Shortage& shortage) {
  return fmt::format(
      "{} of {}, allowed {} ({})", format_bytes(shortage.needed_bytes),
      shortage.space ? std::string(name_of(*shortage.space)) : "host memory of a node",
      format_bytes(shortage.allowed_bytes), shortage.reason);
}

std::string memory_fix(const planner::FitQuestion& question, const FitWords& words,
                       const std::vector<planner::Shortage>& shortages) {
  const bool is_of_ranks =
      std::any_of(shortages.begin(), shortages.end(),
                  [](const auto& shortage) { return shortage.space.has_value(); });
  // Ranks share the memory of their node.
  return fmt::format("{}, a shorter cutoff_len, or a smaller model; not searched: {}",
                     is_of_ranks                            ? "more ranks or memory"
                     : question.placement.ranks_on_node > 1 ? "fewer ranks a node or more memory"
                                                            : "more memory",
                     not_searched(question, words).front());
}

Error nothing_fits(const planner::FitQuestion& question, const BestFit& found,
                   const FitWords& words) {
  UK_CHECK(found.smallest, "settings that do not fit are short of something");
  const std::vector<planner::Shortage>& shortages = found.shortages;
  const Result<void> disk = check_disk(*found.smallest, words.disk);
  UK_CHECK(!shortages.empty() || !disk, "settings that do not fit are short of something");
  Error error{.code = ErrorCode::does_not_fit};
  const std::string settings =
      fmt::format("{}, {}{}", question.run.run_file.string(),
                  found.smallest->words.empty() ? "" : "with ", settings_text(*found.smallest));
  error.where = disk ? settings : fmt::format("{}; {}", words.disk->source, settings);
  if (shortages.empty()) {
    error.what = fmt::format("none of {} settings fits, because of the disk: {}", found.searched,
                             disk.error().what);
    error.fix = disk.error().fix;
    return error;
  }
  std::vector<std::string> said;
  for (const planner::Shortage& shortage : shortages) said.push_back(shortage_text(shortage));
  error.what = fmt::format("none of {} settings fits: {} {}", found.searched,
                           shortages.size() == 1 ? "the smallest peak that can be reached is"
                                                 : "what comes closest needs",
                           fmt::join(said, " and "));
  error.fix = memory_fix(question, words, shortages);
  if (disk) return error;
  error.what += fmt::format("; and {}", disk.error().what);
  error.fix += fmt::format("\n       for the disk: {}", disk.error().fix);
  return error;
}

}  // namespace

Result<void> show_best_fit(const planner::FitQuestion& question, const FitWords& words) {
  const auto predict = [&](const plan::Plan& plan) {
    const simulate::Simulation times = simulate::simulate_step(plan, question.machine);
    return planner::StepTimes{times.step_s, times.save_s, times.save_wait_s,
                              times.evaluation_batch_s};
  };
  planner::AskDisk ask_disk;
  if (words.disk)
    ask_disk = [&](const spec::RunConfig& run) {
      return planner::DiskUse{io::needed_bytes(words.disk->need(run)), words.disk->free_bytes};
    };
  const BestFit found = planner::find_best_fit(question, predict, ask_disk);
  const planner::Room room = planner::room_of(question.run, question.machine, question.placement);
  if (words.json) std::fputs(json_text(question, room, found, words).c_str(), stdout);
  if (found.rows.empty()) return tl::unexpected(nothing_fits(question, found, words));
  if (!words.json) std::fputs(text_of(question, room, found, words).c_str(), stdout);
  return {};
}

}  // namespace underkeel::apps
