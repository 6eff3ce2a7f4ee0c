#include "comm/mpi/runtime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <mpi.h>

#include "comm/communicator.h"

namespace underkeel::comm {

namespace {

using Clock = std::chrono::steady_clock;

// How long a failed rank lets the others print their reasons before it ends them.
constexpr double farewell_s = 2.0;

std::atomic<int> first_failure_exit_code = 0;
std::atomic<double> largest_time_limit_s = 0;

/// The largest exit code among all ranks, once all have come to the end; nothing when they have not
/// within `limit_s`.
std::optional<int> largest_exit_code(int own, double limit_s) {
  // Static: a request that never ends may still use them.
  static int given = 0;
  static int largest = 0;
  given = own;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const std::lock_guard lock(mpi_mutex());
    if (MPI_Iallreduce(&given, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request) !=
        MPI_SUCCESS)
      return std::nullopt;
  }
  const auto begin = Clock::now();
  while (true) {
    int done = 0;
    {
      const std::lock_guard lock(mpi_mutex());
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return std::nullopt;
    }
    if (done != 0) return largest;
    const double waited_s = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited_s > limit_s) return std::nullopt;
    sleep_between_tests(waited_s);
  }
}

}  // namespace

std::mutex& mpi_mutex() {
  static std::mutex mutex;
  return mutex;
}

Result<void> start_mpi() {
  const std::lock_guard lock(mpi_mutex());
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return {};
  int provided = MPI_THREAD_SINGLE;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
      code != MPI_SUCCESS)
    return fail(ErrorCode::peer_lost, fmt::format("MPI did not start: code {}", code), "start-up",
                "see the lines that the launcher printed above");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_SERIALIZED)
    return fail(ErrorCode::unsupported, "this MPI may be used from its first thread only",
                "start-up", "use an MPI library built with thread support");
  return {};
}

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("code {}", code);
  return {text, static_cast<std::size_t>(length)};
}

void note_failure(ErrorCode code) {
  int none = 0;
  first_failure_exit_code.compare_exchange_strong(none, exit_code(code));
}

void note_time_limit(double seconds) {
  double known = largest_time_limit_s;
  while (known < seconds && !largest_time_limit_s.compare_exchange_weak(known, seconds)) {
  }
}

void sleep_between_tests(double idle_s) {
  if (idle_s < 100e-6) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(idle_s / 20, 50e-6, 1e-3)));
}

void finalize_mpi() {
  int initialised = 0;
  int finalised = 0;
  {
    const std::lock_guard lock(mpi_mutex());
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
  }
  if (initialised == 0 || finalised != 0) return;
  // Longer than a rank may wait for this one in a collective, so that it can say so first.
  const double set_limit_s = largest_time_limit_s;
  const double limit_s = (set_limit_s > 0 ? set_limit_s : default_time_limit_s) + farewell_s;
  const int failed = first_failure_exit_code;
  const auto largest = largest_exit_code(failed, failed != 0 ? farewell_s : limit_s);
  if (largest == 0) {
    const std::lock_guard lock(mpi_mutex());
    MPI_Finalize();
    return;
  }
  if (!largest && failed == 0)
    std::fprintf(stderr, "error: not all ranks came to the end of the run\n");
  std::fflush(nullptr);  // MPI_Abort ends the process without doing so
  // A rank that did not fail is ended by one that did: mpirun can hang when some finalise meanwhile.
  if (largest && failed == 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * farewell_s));
  const std::lock_guard lock(mpi_mutex());
  MPI_Abort(MPI_COMM_WORLD, failed != 0 ? failed
                            : largest   ? *largest
                                        : exit_code(ErrorCode::peer_lost));
}

}  // namespace underkeel::comm
