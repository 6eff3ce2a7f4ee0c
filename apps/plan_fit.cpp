#include "plan_fit.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/units.h"
#include "planner/best_fit.h"
#include "simulate/simulate.h"
#include "spec/value.h"

namespace underkeel::apps {

namespace {

using Json = nlohmann::ordered_json;
using planner::BestFit;
using planner::FittingRun;

constexpr double seconds_per_hour = 3600;

// What a user may expect here and this engine cannot do or does not change.
std::vector<std::string> not_searched(const planner::FitQuestion& question, const FitWords& words) {
  std::vector<std::string> said = {
      "offload of optimizer or parameters, LoRA and QLoRA: not built yet",
      fmt::format("ranks stay {}, the global batch {} sequences, precision and cutoff_len as they "
                  "are: they would change the machine or the result",
                  question.placement.world_size,
                  question.run.sequences_per_micro_batch * question.run.accumulation_steps *
                      question.placement.world_size),
      "bucket sizes: the forecast of times does not depend on them"};
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

std::optional<double> hours_of(const FittingRun& row, const FitWords& words) {
  const auto steps = words.total_steps(row.run);
  if (!steps) return std::nullopt;
  std::int64_t saves = 0;
  const spec::SaveConfig& save = row.run.save;
  if (save.strategy == spec::Cadence::steps && save.steps > 0 && save.steps_fraction == 0)
    saves = *steps / save.steps;
  return (static_cast<double>(*steps) * row.times.step_s +
          static_cast<double>(saves) * row.times.save_wait_s) /
         seconds_per_hour;
}

Json json_of(const FittingRun& row, const FitWords& words) {
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
  const auto steps = words.total_steps(row.run);
  const auto hours = hours_of(row, words);
  return {{"changes", row.words},
          {"patch", patch},
          {"step_s", row.times.step_s},
          {"steps_per_hour", seconds_per_hour / row.times.step_s},
          {"total_steps", steps ? Json(*steps) : Json()},
          {"hours", hours ? Json(*hours) : Json()},
          {"save_s", row.times.save_s},
          {"save_wait_s", row.times.save_wait_s},
          {"peak_bytes", peaks},
          {"node_host_bytes", row.node_bytes},
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
  Json rows = Json::array();
  for (const FittingRun& row : found.rows) rows.push_back(json_of(row, words));
  const Json whole = {{"fits", !found.rows.empty()},
                      {"ranks", question.placement.world_size},
                      {"budgets", budgets},
                      {"searched", found.searched},
                      {"planned", found.planned},
                      {"rates_are_measured", question.machine.rates_are_measured},
                      {"rows", rows},
                      {"smallest", found.smallest ? json_of(*found.smallest, words) : Json()},
                      {"not_searched", not_searched(question, words)}};
  return whole.dump(2) + "\n";
}

std::string settings_text(const FittingRun& row) {
  return row.words.empty() ? "as it is" : fmt::format("{}", fmt::join(row.words, " "));
}

std::string time_text(double seconds) {
  constexpr double shortest_s = 1e-6;
  return seconds < shortest_s ? "0 s" : fmt::format("{:.3g} s", seconds);
}

std::string rate_text(double steps_per_hour) {
  return steps_per_hour < 100 ? fmt::format("{:.3g}", steps_per_hour)
                              : format_count(std::llround(steps_per_hour));
}

std::string choice_text(const plan::Decision& choice) {
  std::string text = fmt::format("  {} {}: {}", choice.subject, choice.value, choice.reason);
  for (const plan::Alternative& other : choice.alternatives)
    text += fmt::format("; {}: {}", other.value, other.effect);
  return text + "\n";
}

std::string table_text(const BestFit& found, const planner::Room& room, const FitWords& words) {
  const bool device_is_host = room.device_is_host;
  std::string text = fmt::format("  {:>9}{:>10}{:>10}{:>10}{:>10}{:>11}{:>11}  settings\n", "step",
                                 "steps/h", "hours", "save", "of which", "device", "node's");
  text += fmt::format("  {:>9}{:>10}{:>10}{:>10}{:>10}{:>11}{:>11}\n", "", "", "to end", "",
                      "waited", device_is_host ? "of a rank" : "of a GPU", "host");
  for (const FittingRun& row : found.rows) {
    const auto hours = hours_of(row, words);
    text += fmt::format("  {:>9}{:>10}{:>10}{:>10}{:>10}{:>11}{:>11}  {}\n",
                        time_text(row.times.step_s), rate_text(seconds_per_hour / row.times.step_s),
                        hours ? fmt::format("{:.3g}", *hours) : "?", time_text(row.times.save_s),
                        time_text(row.times.save_wait_s),
                        format_bytes(row.peak_bytes[index(plan::MemorySpace::device)]),
                        format_bytes(row.node_bytes), settings_text(row));
  }
  return text;
}

std::string text_of(const planner::FitQuestion& question, const planner::Room& room,
                    const BestFit& found, const FitWords& words) {
  std::string text = fmt::format(
      "{} settings of {} looked at, {} planned in full; fastest first, times from {} rates\n\n",
      found.searched, question.run.run_file.string(), found.planned,
      question.machine.rates_are_measured ? "measured" : "assumed");
  text += table_text(found, room, words);
  const FittingRun& best = found.rows.front();
  if (!words.total_steps(best.run))
    text += "  hours: not known without max_steps; --data counts the samples\n";
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

Error nothing_fits(const planner::FitQuestion& question, const BestFit& found,
                   const FitWords& words) {
  UK_CHECK(found.smallest && found.shortage, "settings that do not fit are short of something");
  const planner::Shortage& shortage = *found.shortage;
  return {
      .code = ErrorCode::does_not_fit,
      .what = fmt::format(
          "none of {} settings fits: the smallest peak that can be reached is {} of {}, allowed "
          "{} ({})",
          found.searched, format_bytes(shortage.needed_bytes),
          shortage.space ? std::string(name_of(*shortage.space)) : "host memory of a node",
          format_bytes(shortage.allowed_bytes), shortage.reason),
      .where = fmt::format("{}, with {}", question.run.run_file.string(),
                           settings_text(*found.smallest)),
      .fix = fmt::format("more ranks or memory, a shorter cutoff_len, or a smaller model; not "
                         "searched: {}",
                         not_searched(question, words).front())};
}

}  // namespace

Result<void> show_best_fit(const planner::FitQuestion& question, const FitWords& words) {
  const BestFit found = planner::find_best_fit(question, [&](const plan::Plan& plan) {
    const simulate::Simulation times = simulate::simulate_step(plan, question.machine);
    return planner::StepTimes{times.step_s, times.save_s, times.save_wait_s};
  });
  const planner::Room room = planner::room_of(question.run, question.machine, question.placement);
  if (words.json) std::fputs(json_text(question, room, found, words).c_str(), stdout);
  if (found.rows.empty()) return tl::unexpected(nothing_fits(question, found, words));
  if (!words.json) std::fputs(text_of(question, room, found, words).c_str(), stdout);
  return {};
}

}  // namespace underkeel::apps
