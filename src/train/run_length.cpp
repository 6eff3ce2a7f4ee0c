#include "train/run_length.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace underkeel::train {

namespace {

struct Due {
  spec::Cadence strategy = spec::Cadence::no;
  std::int64_t steps = 0;
  double fraction = 0;
  double delay = 0;  // steps, or epochs with that strategy
};

std::optional<std::int64_t> times_due(Due due, const RunLength& length) {
  std::int64_t every = cadence_steps(due.strategy, due.steps, due.fraction, length.steps);
  if (due.strategy == spec::Cadence::epoch) {
    if (!length.steps_of_epoch) return std::nullopt;
    every = *length.steps_of_epoch;
    due.delay *= static_cast<double>(every);
  }
  if (every <= 0 || due.delay > static_cast<double>(length.steps)) return 0;
  if (length.done >= length.steps) return 0;
  // The first that is not before the delay.
  const auto begun = static_cast<std::int64_t>(std::ceil(due.delay / static_cast<double>(every)));
  const std::int64_t all = ceil_div(length.steps, every);
  const std::int64_t passed = std::max(begun - 1, length.done / every);
  return all - std::min(all - 1, std::max<std::int64_t>(passed, 0));
}

Due evaluations_of(const spec::RunConfig& run) {
  const spec::EvaluationConfig& evaluation = run.evaluation;
  return {evaluation.strategy, evaluation.steps, evaluation.steps_fraction, evaluation.delay};
}

}  // namespace

std::int64_t cadence_steps(spec::Cadence strategy, std::int64_t steps, double fraction,
                           std::int64_t total_steps) {
  if (strategy != spec::Cadence::steps) return 0;
  if (fraction > 0)
    return static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(total_steps)));
  return steps;
}

std::optional<std::int64_t> evaluation_count(const spec::RunConfig& run, const RunLength& length) {
  auto count = times_due(evaluations_of(run), length);
  if (!count) return std::nullopt;
  if (run.evaluation.at_end && *count == 0) ++*count;
  return *count + (run.evaluation.on_start && length.done == 0 ? 1 : 0);
}

std::optional<std::int64_t> save_count(const spec::RunConfig& run, const RunLength& length) {
  const spec::SaveConfig& save = run.save;
  if (save.strategy == spec::Cadence::best) return times_due(evaluations_of(run), length);
  return times_due({save.strategy, save.steps, save.steps_fraction, 0}, length);
}

}  // namespace underkeel::train
