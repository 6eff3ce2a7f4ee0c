#pragma once
// One rank's training loop: windows, updates, evaluations, saves. Which segment comes next is decided from
// values that all ranks agree on.

#include <memory>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "train/job.h"
#include "train/run_log.h"

namespace underkeel::train {

/// Runs `job` on this rank and its device until its last step, a stop signal or an error.
Result<void> run_rank(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
                      comm::Communicator& control, RankDevice device);

}  // namespace underkeel::train
