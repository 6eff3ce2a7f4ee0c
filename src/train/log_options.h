#pragma once
// What a run's settings come to in steps, and how its log is to be kept.

#include <cstdint>

#include "train/job.h"
#include "train/run_log.h"

namespace underkeel::train {

/// Steps between two events of a strategy by steps; 0 for any other strategy. `fraction` above 0: that share
/// of all steps, rounded up, instead of `steps`.
std::int64_t cadence_steps(spec::Cadence strategy, std::int64_t steps, double fraction,
                           std::int64_t total_steps);

/// Rank 0 writes. The state has the Trainer's figures of a run at step 0.
RunLogOptions log_options_of(const Job& job, int rank);

}  // namespace underkeel::train
