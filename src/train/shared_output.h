#pragma once
// Refuses a run whose ranks do not write to one folder.

#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "io/file.h"

namespace underkeel::train {

/// Every rank writes the ranges of its own shards into the same files (docs/decisions/0007), so all must see
/// one output folder. Called by all ranks, before anything else is read; makes `output` on rank 0.
/// Errors: bad_config on every rank, naming the ranks that do not see it with their hosts and folders; io.
Result<void> check_output_is_shared(io::FileSystem& files, comm::Communicator& control,
                                    const std::string& output);

}  // namespace underkeel::train
