#pragma once
// Collectives between ranks. Every reduction adds ranks in rank order in f32 and rounds once, so
// results do not depend on the transport. All ranks make the same calls in the same order.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/shard.h"
#include "tensor/view.h"

namespace underkeel::comm {

/// What a call that has not returned waits for.
struct Wait {
  int rank = 0;       // the lowest rank that has not come
  std::string phase;  // set_phase() of the rank that waits
  double elapsed_s = 0;
  std::string doing;  // the missing rank's last report_progress(); empty when there is none
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// "waiting for rank 0 to write (12.3 of 40.0 MB)", or without a report "waiting for rank 0 for
/// 3.2 s (save at step 2)".
std::string to_text(const Wait& wait);

/// One rank's end of a group of ranks. Calls block until this rank's part is complete and its
/// buffers may be reused. One thread at a time may use one communicator; the engine has one for
/// the collective lane and one for control, so the two never meet. report_progress(), waiting(),
/// check() and abort() may be called from any thread at any time.
///
/// Errors: peer_lost, naming the rank, the phase and the seconds waited, when a rank failed, left,
/// or did not arrive within the time limit. After an error every later call fails at once with
/// the first reason. Ranks that make different calls are our own mistake (UK_CHECK) where the
/// transport sees it, else the time limit ends them.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Ranks that share this rank's memory and processors.
  virtual int ranks_on_node() const = 0;
  /// This rank's place among them.
  virtual int rank_on_node() const = 0;
  virtual std::string_view transport() const = 0;  // "single", "threads", "mpi"

  /// full <- the shards of all ranks. `full` is one row of n elements; rank r's shard lies at
  /// shard_of(n, world, r) of it. `shard` (one row, own range's size) may be that part of `full`.
  virtual Result<void> all_gather(TensorView shard, TensorView full) = 0;

  /// own range of `full` <- sum over ranks of that range, in place; the rest of `full` is undefined
  /// afterwards. Types f32, bf16, f16. `staging` holds at least
  /// reduce_staging_bytes(world, chunk_elements, type) for a chunk of one element or more, has the
  /// same size on all ranks, and is the only memory used. Its size never changes the result.
  virtual Result<void> reduce_scatter(TensorView full, TensorView staging) = 0;

  /// full <- sum over ranks, everywhere: reduce_scatter, then all_gather, in place.
  virtual Result<void> all_reduce(TensorView full, TensorView staging) = 0;

  /// all (world * n) f64 <- the n values of every rank, in rank order.
  virtual Result<void> all_gather_values(std::span<const double> own, std::span<double> all) = 0;

  /// Every rank's text, in rank order, on every rank: for start-up, manifests and error reports.
  virtual Result<std::vector<std::string>> all_gather_text(std::string_view own) = 0;

  virtual Result<void> barrier() = 0;

  /// Named in the error when a peer does not come ("save at step 12"). Cheap.
  virtual void set_phase(std::string_view phase) = 0;
  /// How long a call waits for a peer of which nothing is heard: default_time_limit_s unless set.
  virtual void set_time_limit(double seconds) = 0;
  /// Tells the others what keeps this rank away ("write", 12 of 40 MB). Each report starts their
  /// time limit for this rank anew, so a slow rank is waited for and a dead one is not. A report
  /// of all bytes done ends it. Cheap; call it as often as there is something to tell.
  virtual void report_progress(std::string_view doing, std::int64_t done_bytes,
                               std::int64_t total_bytes) = 0;
  /// What this rank's pending call waits for; nothing when no call is waiting.
  virtual std::optional<Wait> waiting() const = 0;
  /// Whether the group is whole, as far as this rank has heard. Never waits; any thread.
  virtual Result<void> check() = 0;
  /// Tells all ranks that this one gives up, and why; pending and later calls fail with it, on
  /// this rank with `reason` itself, elsewhere with its own code and "rank R gave up: " before it.
  virtual void abort(const Error& reason) = 0;
};

constexpr double default_time_limit_s = 1800;

using underkeel::reduce_staging_bytes;

/// A group of one.
std::unique_ptr<Communicator> make_single();

/// `world_size` ends of one group, for ranks that are threads of this process. Destroying an end
/// tells the others that its rank has left. A thread that hangs cannot be ended by the others:
/// after peer_lost, print and end the process without joining it.
std::vector<std::unique_ptr<Communicator>> make_thread_group(int world_size);

/// Whether this process was started by mpirun or srun (from the environment; starts nothing).
bool started_by_mpi();

/// Initialises MPI (once per process) and returns `count` independent groups over all its ranks.
/// The buffers of a call that failed stay valid until finalize_mpi(): a transfer that has begun
/// cannot be withdrawn.
/// Errors: unsupported, saying how to build it in, when this binary has no MPI; bad_config when
/// the launcher started several processes that MPI takes for separate worlds of one.
Result<std::vector<std::unique_ptr<Communicator>>> make_mpi_groups(int count);

/// Ends MPI; call it last, after output is written, on every path (no effect without MPI). While
/// all groups are whole it returns once all ranks have come. After a failure, or when a rank does
/// not come, MPI_Finalize would wait for ever: the others get up to two seconds to print their
/// reasons, then MPI_Abort ends all processes with the exit code of the first failure, and this
/// function does not return.
void finalize_mpi();

}  // namespace underkeel::comm
