// One rank of a run that goes wrong, for launch/: the first argument says how. Prints what it saw
// and ends as the application does.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "comm/fault.h"

namespace underkeel::comm {
namespace {

/// Comes to the save at step 2; UNDERKEEL_FAULT may stop a rank.
Result<void> save(Communicator& comm, double time_limit_s) {
  comm.set_time_limit(time_limit_s);
  comm.set_phase("save at step 2");
  UK_TRY_VOID(fault_point(comm.rank(), "save", 2));
  return comm.barrier();
}

/// Rank 0 needs longer than the time limit to write, and says how far it is.
Result<void> write_slowly(Communicator& comm) {
  using Clock = std::chrono::steady_clock;
  comm.set_time_limit(2);
  comm.set_phase("update 3");
  if (comm.rank() == 0) {
    const auto begin = Clock::now();
    while (Clock::now() - begin < std::chrono::milliseconds(2500)) {
      comm.report_progress("write", 12'300'000, 40'000'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return comm.barrier();
  }
  std::string seen;
  std::thread display([&] {
    std::optional<Wait> wait;
    while (seen.empty()) {
      wait = comm.waiting();
      if (wait && wait->total_bytes > 0) seen = to_text(*wait);
      std::this_thread::yield();
    }
  });
  const auto result = comm.barrier();
  display.join();
  std::printf("%s\n", seen.c_str());
  return result;
}

Result<void> abort_on_rank_one(Communicator& comm) {
  // Rank 1 must not give up while another rank still builds its groups.
  UK_TRY_VOID(comm.barrier());
  if (comm.rank() != 1) return comm.barrier();
  const Error reason{.code = ErrorCode::not_finite, .what = "loss is nan", .where = "step 7"};
  comm.abort(reason);
  return tl::unexpected(reason);
}

/// The lane waits in a collective while another thread of the same rank gives up.
Result<void> abort_from_another_thread(Communicator& comm) {
  if (comm.rank() != 1) return comm.barrier();
  comm.set_time_limit(30);
  UK_TRY_VOID(comm.barrier());
  std::thread other([&] {
    while (!comm.waiting()) std::this_thread::yield();
    comm.abort({.code = ErrorCode::io, .what = "disk full"});
  });
  // Rank 0 has come to the first barrier; nobody comes to this one.
  const auto result = comm.barrier();
  other.join();
  return result;
}

Result<void> leave_early(Communicator& comm) {
  comm.set_time_limit(0.5);
  if (comm.rank() == 1) return {};
  return comm.barrier();
}

int run(const std::string& scenario) {
  auto groups = make_mpi_groups(1);
  if (!groups) {
    // Another rank may have given up while this one was still meeting the others.
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    std::fprintf(stderr, "rank %s: %s\n", rank == nullptr ? "?" : rank,
                 to_text(groups.error()).c_str());
    return exit_code(groups.error().code);
  }
  Communicator& comm = *(*groups)[0];
  Result<void> result;
  if (scenario == "save") result = save(comm, 0.5);
  if (scenario == "patient_save") result = save(comm, 600);
  if (scenario == "write") result = write_slowly(comm);
  if (scenario == "abort") result = abort_on_rank_one(comm);
  if (scenario == "thread") result = abort_from_another_thread(comm);
  if (scenario == "leave") result = leave_early(comm);
  if (!result) {
    comm.abort(result.error());
    std::fprintf(stderr, "rank %d: %s\n", comm.rank(), to_text(result.error()).c_str());
  } else {
    std::printf("rank %d: done\n", comm.rank());
  }
  finalize_mpi();
  return result ? 0 : exit_code(result.error().code);
}

}  // namespace
}  // namespace underkeel::comm

int main(int argc, char** argv) {
  return underkeel::comm::run(argc > 1 ? argv[1] : "");
}
