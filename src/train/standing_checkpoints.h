#pragma once
// What a run does with the checkpoints that stand in its output folder before its first step.

#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "io/checkpoint.h"

namespace underkeel::train {

/// For a run that starts anew, on rank 0: checkpoints that another run left are no part of it. Sets them
/// aside and says so.
Result<void> leave_earlier_run(io::FileSystem& files, const std::string& output);

/// For a run that goes on, on all ranks: reads every byte once, each rank its share, before any is
/// trained on.
/// Errors: bad_file on every rank, naming the first damaged place.
Result<void> verify_checkpoint(io::FileSystem& files, comm::Communicator& control,
                               const io::FoundCheckpoint& checkpoint);

}  // namespace underkeel::train
