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

bool is_as_good(const FittingRun& one, const FittingRun& other) {
  const auto is_no_longer = [&](double mine, double its) {
    return mine <= its + same_time * other.times.step_s;
  };
  const auto of_sequence = [](const FittingRun& run) {
    return run.times.evaluation_batch_s / static_cast<double>(run.settings.evaluation_batch);
  };
  const auto disk_bytes = [](const FittingRun& run) {
    return run.disk ? run.disk->needed_bytes : 0;
  };
  return is_no_longer(one.times.step_s, other.times.step_s) &&
         is_no_longer(one.times.save_wait_s, other.times.save_wait_s) &&
         is_no_longer(of_sequence(one), of_sequence(other)) &&
         needs_no_more(one.peak_bytes, other.peak_bytes) && one.node_bytes <= other.node_bytes &&
         disk_bytes(one) <= disk_bytes(other);
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
