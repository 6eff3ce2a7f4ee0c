#pragma once
// How long a run is, and how often it saves and evaluates until its end.

#include <cstdint>
#include <optional>

#include "spec/run_config.h"

namespace underkeel::train {

struct RunLength {
  std::int64_t steps = 0;                      // of the optimizer, to the end
  std::optional<std::int64_t> steps_of_epoch;  // none where the data are not known
  std::int64_t done = 0;                       // steps, of a run that goes on
};

/// Steps between two events of a strategy by steps; 0 for any other strategy. `fraction` above 0: that share
/// of all steps, rounded up, instead of `steps`.
std::int64_t cadence_steps(spec::Cadence strategy, std::int64_t steps, double fraction,
                           std::int64_t total_steps);

/// Evaluations that are still to come, the last step's included; none where epochs are asked about and their steps are not
/// known.
std::optional<std::int64_t> evaluation_count(const spec::RunConfig& run, const RunLength& length);

/// Saves that are still to come, the last step's included; of the best model as many as there are evaluations between steps.
std::optional<std::int64_t> save_count(const spec::RunConfig& run, const RunLength& length);

}  // namespace underkeel::train
