#pragma once
// What a run's settings come to in steps, and how its log is to be kept.

#include "train/job.h"
#include "train/run_log.h"

namespace underkeel::train {

/// Rank 0 writes. The state has the Trainer's figures of a run at step 0.
RunLogOptions log_options_of(const Job& job, int rank);

}  // namespace underkeel::train
