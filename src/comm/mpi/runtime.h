#pragma once
// What all groups of this process share: MPI's start and end, and the lock around it.

#include <mutex>
#include <string>

#include "base/result.h"

namespace underkeel::comm {

/// Held around every MPI call. No call under it blocks, so several lanes may use MPI in turn, and
/// MPI_THREAD_SERIALIZED is enough.
std::mutex& mpi_mutex();

/// Initialises MPI unless this was done before.
Result<void> start_mpi();

/// MPI's own words for a return code. The caller holds mpi_mutex().
std::string mpi_error_text(int code);

/// The groups tell finalize_mpi() how it has to end.
void note_failure(ErrorCode code);
void note_time_limit(double seconds);

/// Rests between two looks at requests on which nothing has moved for `idle_s`: yields for the
/// first 100 us, since a message takes several steps of a few microseconds each; then sleeps, 50 us
/// at first and 1 ms after 20 ms.
void sleep_between_tests(double idle_s);

}  // namespace underkeel::comm
