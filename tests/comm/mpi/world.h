#pragma once
// The groups that all tests of an MPI run share, made by main().

#include "comm/communicator.h"

namespace underkeel::comm::testing {

/// Two independent groups over all ranks.
Communicator& mpi_group(int which);

}  // namespace underkeel::comm::testing
