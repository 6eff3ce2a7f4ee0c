#pragma once
// Whether the processes of a run were given the same run.

#include "base/result.h"
#include "comm/communicator.h"
#include "io/file.h"
#include "train/job.h"

namespace underkeel::train {

/// Compares values in force, model, weights, samples, checkpoint and plan of all ranks; what may lie elsewhere on each
/// node, such as the folder of the data, is compared by what is in it. Of weights the headers and a sample are
/// read, of a checkpoint its checksums. Collective.
/// Errors:  bad_config on every rank, naming the first rank that differs from rank 0 and how.
Result<void> check_ranks_agree(io::FileSystem& files, comm::Communicator& control, const Job& job);

}  // namespace underkeel::train
