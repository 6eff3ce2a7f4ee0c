// Who started this process. Reads the environment only, so that a binary without MPI can tell that
// it is one of several copies.

#include <cstdlib>
#include <string>

#include "comm/communicator.h"

namespace underkeel::comm {

bool started_by_mpi() {
  // Open MPI's mpirun; PMIx (srun --mpi=pmix, prterun); PMI-1 and -2 (srun --mpi=pmi2, MPICH).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name) != nullptr) return true;
  // srun without an MPI plugin starts bare copies. A batch script's own shell has no such variable.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr && std::string(tasks) != "1";
}

}  // namespace underkeel::comm
