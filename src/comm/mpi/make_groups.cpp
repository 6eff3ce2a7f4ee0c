// Starts MPI and duplicates its world, without a call that could wait for ever.

#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/runtime.h"

namespace underkeel::comm {

namespace {

Result<MPI_Comm> duplicate_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  {
    const std::lock_guard lock(mpi_mutex());
    code = MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  }
  const auto begin = std::chrono::steady_clock::now();
  int done = 0;
  while (code == MPI_SUCCESS && done == 0) {
    {
      const std::lock_guard lock(mpi_mutex());
      code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (done == 0 && waited.count() > default_time_limit_s) {
      note_failure(ErrorCode::peer_lost);
      return fail(ErrorCode::peer_lost,
                  fmt::format("not all ranks came to the start within {:.0f} s", waited.count()),
                  "start-up", "look for the first error of the other ranks");
    }
    if (done == 0) sleep_between_tests(waited.count());
  }
  const std::lock_guard lock(mpi_mutex());
  if (code != MPI_SUCCESS) {
    note_failure(ErrorCode::peer_lost);
    return fail(ErrorCode::peer_lost, fmt::format("MPI failed: {}", mpi_error_text(code)),
                "start-up", "look for the first error of the other ranks");
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

std::string processor_name() {
  const std::lock_guard lock(mpi_mutex());
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return {name, static_cast<std::size_t>(length)};
}

/// Processes that the launcher says it started, or 1.
int launched_count() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 1;
}

}  // namespace

Result<std::vector<std::unique_ptr<Communicator>>> make_mpi_groups(int count) {
  UK_CHECK(count >= 1, "at least one group");
  UK_TRY_VOID(start_mpi());
  int rank = 0;
  int world_size = 1;
  {
    const std::lock_guard lock(mpi_mutex());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  }
  if (world_size == 1 && launched_count() > 1)
    return fail(ErrorCode::bad_config,
                fmt::format("{} processes were started, and MPI takes each for a world of its own",
                            launched_count()),
                "start-up", "start them with the mpirun of this MPI, or with srun --mpi=pmix");
  std::vector<std::unique_ptr<Communicator>> groups;
  int rank_on_node = 0;
  int ranks_on_node = 0;
  for (int i = 0; i < count; ++i) {
    UK_TRY(comm, duplicate_world());
    auto group = std::make_unique<MpiCommunicator>(comm, rank, world_size);
    if (i == 0) {
      UK_TRY(names, group->all_gather_text(processor_name()));
      for (int peer = 0; peer < world_size; ++peer) {
        if (names[static_cast<std::size_t>(peer)] != names[static_cast<std::size_t>(rank)])
          continue;
        ++ranks_on_node;
        if (peer < rank) ++rank_on_node;
      }
    }
    group->set_place_on_node(rank_on_node, ranks_on_node);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace underkeel::comm
