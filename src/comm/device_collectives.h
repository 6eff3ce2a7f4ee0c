#pragma once
// Collectives that are queued on a GPU, like kernels. The same sums as a Communicator's: ranks are added in
// rank order in f32 and rounded once, so results do not depend on the transport.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "device/gpu.h"
#include "tensor/view.h"

namespace underkeel::comm {

/// Where a reduction puts the own range instead of into `full`: into [+]= the rounded sum. `into` holds the own range, in
/// f32, bf16 or f16. Without data: into `full`.
struct SumHome {
  TensorView into;
  bool adds = false;
};

/// One rank's end. Calls return once queued (of the host link once done); all ranks make the same calls in the same order, on one queue.
/// Views lie in this rank's device memory. check() and abort() may be called from any thread.
/// Errors:  io with the library's words.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;

  /// As Communicator::all_gather().
  virtual Result<void> all_gather(TensorView shard, TensorView full,
                                  const device::Queue& queue) = 0;
  /// As Communicator::reduce_scatter(); `staging` holds at least one element of every other rank. With a home, the
  /// own range of `full` is undefined afterwards as well.
  virtual Result<void> reduce_scatter(TensorView full, TensorView staging, const SumHome& home,
                                      const device::Queue& queue) = 0;
  /// As Communicator::all_reduce().
  virtual Result<void> all_reduce(TensorView full, TensorView staging,
                                  const device::Queue& queue) = 0;
  /// all (world * count) f64 <- the values of every rank, in rank order.
  virtual Result<void> all_gather_values(const double* own, double* all, std::int64_t count,
                                         const device::Queue& queue) = 0;

  /// Whether all that is queued can still end. Never waits.
  /// Errors:  peer_lost when the library has lost a peer.
  virtual Result<void> check() = 0;
  /// Ends what is queued, with whatever it holds then; later calls fail.
  virtual void abort() = 0;
};

/// How bytes get from GPU to GPU; the bits are the same. Copies: ranks are threads of this process, and their GPUs reach one
/// another's memory. Host: through host memory and a Communicator; slow, and the only one for ranks that share a GPU.
enum class GpuLink { copies, nccl, host };

/// What join_gpus() takes for `rank_count` ranks, each with the GPU of its number. UNDERKEEL_GPU_LINK asks for `nccl` or
/// `host` everywhere.
/// Errors:  bad_config for another word; those of device::find_gpus().
Result<GpuLink> link_of_gpus(bool ranks_are_threads, int rank_count);

/// Joins the GPUs of the ranks of `control`, each rank's on its calling thread. What the link takes of a card's memory is
/// taken when this returns; meanwhile 64 MiB more are held. `through`: a group of the same ranks that nothing else uses
/// while these GPUs are joined. Collective.
/// Errors:  those of link_of_gpus(), make_peers(), make_nccl(), of any rank; bad_config for ranks with different links; does_not_fit.
Result<std::unique_ptr<DeviceCollectives>> join_gpus(Communicator& control, Communicator& through,
                                                     std::shared_ptr<device::Gpu> gpu);

/// Bytes go through host memory and `group`, which must outlive the result; ranks may share a GPU. 4 MiB of pinned memory a
/// rank of the group. A call returns when it is done.
/// Errors:  io with the driver's words.
Result<std::unique_ptr<DeviceCollectives>> make_through_host(Communicator& group,
                                                             std::shared_ptr<device::Gpu> gpu);

/// For ranks that are threads of this process. Copies run on the GPUs' copy engines, beside kernels; events order them. A
/// call waits until all ranks have queued theirs; nothing waits for a GPU. Collective.
/// Errors:  io with the driver's words, where a GPU cannot reach another's memory too.
Result<std::unique_ptr<DeviceCollectives>> make_peers(Communicator& control,
                                                      std::shared_ptr<device::Gpu> gpu);

/// Joins the GPUs that the ranks of `control` have chosen on their calling threads, one each. Collective.
/// The library is loaded now: the file that UNDERKEEL_NCCL names, else libnccl.so.2 where the loader finds it.
/// Errors:  unsupported, saying what is missing: CUDA in this build, the library; io with the library's words.
Result<std::unique_ptr<DeviceCollectives>> make_nccl(Communicator& control);

}  // namespace underkeel::comm
