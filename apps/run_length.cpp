#include "run_length.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "data/sampler.h"
#include "train/log_options.h"
#include "train/run_data.h"

namespace underkeel::apps {

namespace {

struct Due {
  spec::Cadence strategy = spec::Cadence::no;
  std::int64_t steps = 0;
  double fraction = 0;
  double delay = 0;  // steps, or epochs with that strategy
};

std::optional<std::int64_t> times_due(Due due, const RunLength& length) {
  std::int64_t every = train::cadence_steps(due.strategy, due.steps, due.fraction, length.steps);
  if (due.strategy == spec::Cadence::epoch) {
    if (!length.steps_of_epoch) return std::nullopt;
    every = *length.steps_of_epoch;
    due.delay *= static_cast<double>(every);
  }
  if (every <= 0 || due.delay > static_cast<double>(length.steps)) return 0;
  // The first that is not before the delay.
  const auto begun = static_cast<std::int64_t>(std::ceil(due.delay / static_cast<double>(every)));
  const std::int64_t all = ceil_div(length.steps, every);
  return all - std::min(all - 1, std::max<std::int64_t>(begun - 1, 0));
}

}  // namespace

std::optional<RunLength> length_of(const spec::RunConfig& run, std::int64_t ranks,
                                   const std::optional<DataFacts>& data) {
  std::optional<RunLength> length;
  if (run.max_steps > 0) length = RunLength{.steps = run.max_steps, .steps_of_epoch = {}};
  if (!data) return length;
  const auto sampler = data::Sampler::make(
      train::sampler_config(run, data->sample_count, static_cast<int>(ranks), 0));
  if (!sampler) return length;
  return RunLength{.steps = run.max_steps > 0 ? run.max_steps : sampler->updates_for(run.epochs),
                   .steps_of_epoch = sampler->updates_per_epoch()};
}

std::optional<std::int64_t> evaluation_samples(const spec::RunConfig& run,
                                               const std::optional<DataFacts>& data) {
  if (data) return data->evaluation_sample_count;
  if (run.evaluation.validation_size > 1 && run.data.evaluation_datasets.empty())
    return static_cast<std::int64_t>(run.evaluation.validation_size);
  return std::nullopt;
}

std::optional<std::int64_t> evaluation_count(const spec::RunConfig& run, const RunLength& length) {
  const spec::EvaluationConfig& evaluation = run.evaluation;
  auto count = times_due(
      {evaluation.strategy, evaluation.steps, evaluation.steps_fraction, evaluation.delay}, length);
  if (!count) return std::nullopt;
  if (evaluation.at_end && *count == 0) ++*count;
  return *count + (evaluation.on_start ? 1 : 0);
}

std::optional<std::int64_t> save_count(const spec::RunConfig& run, const RunLength& length) {
  const spec::SaveConfig& save = run.save;
  if (save.strategy == spec::Cadence::best) return evaluation_count(run, length);
  return times_due({save.strategy, save.steps, save.steps_fraction, 0}, length);
}

}  // namespace underkeel::apps
