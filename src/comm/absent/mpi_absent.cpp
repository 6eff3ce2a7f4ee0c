// Stands in for comm/mpi in a build without MPI.

#include "comm/communicator.h"

namespace underkeel::comm {

Result<std::vector<std::unique_ptr<Communicator>>> make_mpi_groups(int) {
  return fail(ErrorCode::unsupported, "this binary was built without MPI", "start-up",
              "build it with -DUNDERKEEL_MPI=ON (needs libopenmpi-dev), or start one process "
              "without mpirun or srun and use --ranks N");
}

void finalize_mpi() {}  // nothing was initialised

}  // namespace underkeel::comm
