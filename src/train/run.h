#pragma once
// A whole training run: from a checked run file to the last file written.

#include "base/result.h"
#include "spec/run_config.h"

namespace underkeel::train {

/// Trains. Under mpirun or srun this process is one rank; else `run.ranks` ranks run as threads.
/// Errors: as exit_code() maps them; `stopped` after a stop signal, with a complete checkpoint once a step
/// was made. What all ranks were refused alike is told by
/// rank 0: the others return an error without words.
/// A rank that hangs cannot be ended from inside: then this prints the reason and ends the process.
Result<void> train(const spec::RunConfig& run);

}  // namespace underkeel::train
