#pragma once
// Collectives between ranks. Every reduction adds ranks in rank order in f32 and rounds once, so
// results do not depend on the transport. All ranks make the same calls in the same order.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/shard.h"
#include "tensor/view.h"

namespace underkeel::comm {

/// One rank's end of a group of ranks. Calls block until this rank's part is complete and its
/// buffers may be reused. One thread at a time may use one communicator; the engine has one for
/// the collective lane and one for control, so the two never meet.
///
/// Errors: peer_lost, naming the rank, the phase and the seconds waited, when a rank failed, left,
/// or did not arrive within the time limit. After an error every later call fails at once.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Ranks that share this rank's memory and processors.
  virtual int ranks_on_node() const = 0;
  virtual std::string_view transport() const = 0;  // "single", "threads", "mpi"

  /// full <- the shards of all ranks. `full` is one row of n elements; rank r's shard lies at
  /// shard_of(n, world, r) of it. `shard` (one row, own range's size) may be that part of `full`.
  virtual Result<void> all_gather(TensorView shard, TensorView full) = 0;

  /// own range of `full` <- sum over ranks of that range, in place; the rest of `full` is undefined
  /// afterwards. Types f32, bf16, f16. `staging` holds at least
  /// reduce_staging_bytes(world, chunk_elements, type) and is the only memory used.
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
  /// How long a collective waits for a peer.
  virtual void set_time_limit(double seconds) = 0;
  /// Tells all ranks that this one gives up, and why; their pending and later calls fail with it.
  virtual void abort(const Error& reason) = 0;
};

/// Bytes of staging for reduce_scatter when it works in chunks of `chunk_elements` per rank.
constexpr std::int64_t reduce_staging_bytes(std::int64_t world_size, std::int64_t chunk_elements,
                                            DType type) {
  return world_size == 1 ? 0 : world_size * bytes_of(type, chunk_elements);
}

/// A group of one.
std::unique_ptr<Communicator> make_single();

/// `world_size` ends of one group, for ranks that are threads of this process.
std::vector<std::unique_ptr<Communicator>> make_thread_group(int world_size);

/// Whether this process was started by mpirun or srun (from the environment; starts nothing).
bool started_by_mpi();

/// Initialises MPI (once) and returns `count` independent groups over all its ranks. unsupported,
/// saying how to build it in, when this binary has no MPI.
Result<std::vector<std::unique_ptr<Communicator>>> make_mpi_groups(int count);
void finalize_mpi();

}  // namespace underkeel::comm
