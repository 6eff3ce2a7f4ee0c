#include "planner/fitting_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace underkeel::planner {

namespace {

// Sums of times differ in their last digits.
constexpr double same_time = 1e-6;

bool is_faster(const FittingRun& one, const FittingRun& other) {
  if (std::abs(one.times.step_s - other.times.step_s) > same_time * other.times.step_s)
    return one.times.step_s < other.times.step_s;
  if (one.words.size() != other.words.size()) return one.words.size() < other.words.size();
  return one.peak_bytes < other.peak_bytes;
}

/// A step with its share of the wait for saves. Where the steps between two saves are not known, with all of one: who is
/// no longer in this and without saves is so at any number of steps.
double step_with_saves_s(const FittingRun& run) {
  const spec::SaveConfig& save = run.run.save;
  if (save.strategy == spec::Cadence::no) return run.times.step_s;
  const bool is_counted = save.strategy == spec::Cadence::steps && save.steps_fraction == 0;
  const double steps = is_counted ? static_cast<double>(save.steps) : 1;
  return run.times.step_s + run.times.save_wait_s / steps;
}

// Nobody takes a slower run for less than this part of a memory, or of the free disk.
constexpr double least_saving = 0.01;

/// Host arenas are held against all of the node's host memory, a small part of which some of them are.
bool needs_hardly_more(const FittingRun& one, const FittingRun& other) {
  const auto is_close = [](std::int64_t mine, std::int64_t its, std::int64_t whole) {
    return static_cast<double>(mine - its) <= least_saving * static_cast<double>(whole);
  };
  bool is = is_close(one.node_bytes, other.node_bytes, other.node_bytes);
  for (std::size_t s = 0; s < plan::memory_space_count; ++s) {
    const bool is_device = s == index(plan::MemorySpace::device);
    is = is && is_close(one.peak_bytes[s], other.peak_bytes[s],
                        is_device ? other.peak_bytes[s] : other.node_bytes);
  }
  return is;
}

bool is_as_good(const FittingRun& one, const FittingRun& other) {
  const auto is_no_longer = [&](double mine, double its) {
    return mine <= its + same_time * other.times.step_s;
  };
  const auto of_sequence = [](const FittingRun& run) {
    return run.times.evaluation_batch_s / static_cast<double>(run.settings.evaluation_batch);
  };
  const auto needs_hardly_more_disk = [&] {
    if (!one.disk || !other.disk) return true;
    return static_cast<double>(one.disk->needed_bytes - other.disk->needed_bytes) <=
           least_saving * static_cast<double>(other.disk->free_bytes);
  };
  return is_no_longer(one.times.step_s, other.times.step_s) &&
         is_no_longer(step_with_saves_s(one), step_with_saves_s(other)) &&
         is_no_longer(of_sequence(one), of_sequence(other)) && needs_hardly_more(one, other) &&
         needs_hardly_more_disk();
}

}  // namespace

bool needs_no_more(const std::array<std::int64_t, plan::memory_space_count>& one,
                   const std::array<std::int64_t, plan::memory_space_count>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), std::less_equal<>());
}

void insert_run(FittingRun run, std::vector<FittingRun>& rows) {
  const auto better = std::find_if(rows.begin(), rows.end(),
                                   [&](const FittingRun& row) { return is_as_good(row, run); });
  if (better != rows.end()) {
    const bool are_the_same = is_as_good(run, *better);
    if (are_the_same && is_faster(run, *better)) *better = std::move(run);
    return;
  }
  std::erase_if(rows, [&](const FittingRun& row) { return is_as_good(run, row); });
  rows.insert(std::upper_bound(rows.begin(), rows.end(), run, is_faster), std::move(run));
  if (rows.size() > most_fitting_runs) rows.pop_back();
}

}  // namespace underkeel::planner
