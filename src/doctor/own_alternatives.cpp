#include "doctor/own_alternatives.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/document.h"
#include "planner/steps_alone.h"

namespace underkeel::doctor {
namespace {

// Rows that are planned at most: an answer is to take less than 300 ms (bench/results/2026-11-answer-times.md).
constexpr int most_plans = 6;
// Rows that are shown at most.
constexpr std::size_t most_rows = 24;

struct Candidate {
  int stage;
  spec::Recompute recompute;
  std::int64_t micro;
  int changes;
  std::vector<std::string> words = {};  // that switch offload off
};

/// On one rank a stage splits nothing, so only the run's own is asked.
std::vector<Candidate> candidates_of(const spec::RunConfig& run, std::int64_t ranks,
                                     const std::vector<AskedOffload>& offloads) {
  std::vector<Candidate> all;
  std::vector<spec::Recompute> levels = {run.recompute};
  if (run.recompute != spec::Recompute::block) levels.push_back(spec::Recompute::block);
  for (int stage = 0; stage <= 3; ++stage) {
    if (ranks == 1 && stage != run.zero.stage) continue;
    std::vector<std::string> without_offload;
    for (const AskedOffload& offload : offloads)
      if (stage == 3 || !offload.acts_at_stage_3_only) without_offload.push_back(offload.words);
    const int switched_off = static_cast<int>(without_offload.size());
    for (const spec::Recompute level : levels) {
      int halvings = 0;
      for (std::int64_t micro = run.sequences_per_micro_batch; micro >= 1; micro /= 2, ++halvings) {
        if (run.sequences_per_micro_batch % micro != 0) break;
        const int changes =
            (stage != run.zero.stage) + (level != run.recompute) + halvings + switched_off;
        all.push_back({stage, level, micro, changes, without_offload});
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.changes < b.changes; });
  return all;
}

std::string words_of(const spec::RunConfig& run, const Candidate& candidate,
                     const std::vector<std::string>& free_batch) {
  std::vector<std::string> words = candidate.words;
  if (candidate.stage != run.zero.stage)
    words.push_back(fmt::format("deepspeed.zero_optimization.stage={}", candidate.stage));
  if (candidate.recompute != run.recompute) words.emplace_back("underkeel.recompute=block");
  if (candidate.micro != run.sequences_per_micro_batch) {
    words.push_back(fmt::format(
        "per_device_train_batch_size={} gradient_accumulation_steps={}", candidate.micro,
        run.accumulation_steps * run.sequences_per_micro_batch / candidate.micro));
    words.insert(words.end(), free_batch.begin(), free_batch.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// For its sizes: without load and save where nothing is chosen by them.
plan::Plan plan_for_sizes(const planner::FitQuestion& question) {
  if (question.run.recompute == spec::Recompute::automatic) return planner::make_plan_on(question);
  return planner::make_plan_of_steps(
      planner::request_on(question.machine, question.placement, question.model, question.run));
}

}  // namespace

double least_state_bytes(const planner::FitQuestion& question, int stage) {
  const auto psi = static_cast<double>(spec::parameter_count(question.model));
  const double share = psi / static_cast<double>(question.placement.world_size);
  const double element = question.run.precision == spec::Precision::f32 ? 4 : 2;
  const double optimizer = question.run.precision == spec::Precision::f32 ? 8 : 12;
  return element * (stage == 3 ? share : psi) + element * (stage >= 2 ? share : psi) +
         optimizer * (stage >= 1 ? share : psi);
}

double state_limit(const planner::FitQuestion& question) {
  const planner::Room room = planner::room_of(question.run, question.machine, question.placement);
  const auto& device = room.spaces[index(plan::MemorySpace::device)];
  double limit = std::numeric_limits<double>::infinity();
  if (device) limit = static_cast<double>(device->size_bytes);
  if (room.device_is_host && room.node) {
    const double share = static_cast<double>(room.node->size_bytes) /
                         static_cast<double>(question.placement.ranks_on_node);
    limit = std::min(limit, share);
  }
  return limit;
}

ConfigWords config_words(const spec::Value& config) {
  ConfigWords words;
  for (const auto& [section, old_key, at_stage_3] :
       {std::tuple{"offload_optimizer", "cpu_offload", false},
        std::tuple{"offload_param", "cpu_offload_param", true}}) {
    const std::string device = fmt::format("zero_optimization.{}.device", section);
    const std::string old = fmt::format("zero_optimization.{}", old_key);
    if (text_at(config, device).value_or("none") != "none")
      words.offloads.push_back({fmt::format("deepspeed.{}=none", device), at_stage_3});
    if (truth_at(config, old).value_or(false))
      words.offloads.push_back({fmt::format("deepspeed.{}=false", old), at_stage_3});
  }
  for (const char* key : {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (number_at(config, key)) words.free_batch.push_back(fmt::format("deepspeed.{}=auto", key));
  return words;
}

std::vector<Alternative> own_alternatives(const planner::FitQuestion& question,
                                          const ConfigWords& config) {
  std::vector<Alternative> rows;
  const double limit = state_limit(question);
  int plans = 0;
  for (const Candidate& candidate :
       candidates_of(question.run, question.placement.world_size, config.offloads)) {
    if (rows.size() == most_rows) break;
    Alternative row{.engine = Engine::underkeel,
                    .stage = candidate.stage,
                    .recomputes = candidate.recompute != spec::Recompute::none,
                    .micro_batch = candidate.micro,
                    .accumulation_steps = question.run.accumulation_steps *
                                          question.run.sequences_per_micro_batch / candidate.micro,
                    .changes = candidate.changes,
                    .words = words_of(question.run, candidate, config.free_batch)};
    const double state = least_state_bytes(question, candidate.stage);
    if (state > limit) {
      row.verdict = Verdict::fails;
      row.device_bytes = state;
      row.device_margin_bytes = limit - state;
      rows.push_back(std::move(row));
      continue;
    }
    if (plans++ == most_plans) break;
    spec::RunConfig run = question.run;
    run.zero.stage = candidate.stage;
    run.recompute = candidate.recompute;
    run.sequences_per_micro_batch = candidate.micro;
    run.accumulation_steps = row.accumulation_steps;
    const planner::FitQuestion other{.model = question.model,
                                     .run = run,
                                     .machine = question.machine,
                                     .placement = question.placement};
    const plan::Plan plan = plan_for_sizes(other);
    const planner::Room its_room = planner::room_of(run, question.machine, question.placement);
    row.verdict = planner::shortage_of(plan, its_room) ? Verdict::fails : Verdict::runs;
    row.device_bytes =
        static_cast<double>(plan.layout.size_bytes[index(plan::MemorySpace::device)]);
    row.host_bytes = static_cast<double>(planner::needed_bytes(plan, its_room, std::nullopt));
    if (const auto budget = planner::budget_of(plan, its_room, plan::MemorySpace::device))
      row.device_margin_bytes = static_cast<double>(budget->size_bytes) - row.device_bytes;
    if (its_room.node)
      row.host_margin_bytes = static_cast<double>(its_room.node->size_bytes) - row.host_bytes;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Alternative& a, const Alternative& b) {
    return (a.verdict == Verdict::runs) > (b.verdict == Verdict::runs);
  });
  return without_needless(std::move(rows));
}

}  // namespace underkeel::doctor
