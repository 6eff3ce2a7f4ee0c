#pragma once
// A GPU: its memory, copies, queues and events. One implementation in `cuda/`; a build without CUDA has
// `absent/`, where open_gpu() says so. Nothing above this layer sees a CUDA header.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/queue.h"

namespace underkeel::device {

/// What the driver says of one GPU.
struct GpuFacts {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessor_count = 0;
  std::int64_t total_bytes = 0;
};

/// A point in a queue that others can wait for. Made and owned by its Gpu.
enum class EventId : std::uint32_t {};

/// Work of a queue that was kept to be run as one. Made and owned by its Gpu.
enum class GraphId : std::uint32_t {};

/// One GPU and what was made on it; everything ends with it. Calls may come from any thread once
/// use() was called on that thread. Queued work is in order within a queue.
/// Errors:  unsupported or io with the driver's words; a fault of an earlier kernel shows up in whichever
///          call comes next.
class Gpu {
 public:
  virtual ~Gpu() = default;

  virtual const GpuFacts& facts() const = 0;
  /// Makes this GPU the one that the calling thread's launches go to.
  virtual Result<void> use() = 0;
  /// What the driver has free on the card now, whoever holds the rest.
  virtual Result<std::int64_t> free_bytes() = 0;

  /// Errors:  does_not_fit with what is free.
  virtual Result<void*> allocate(std::int64_t size_bytes) = 0;
  virtual void release(void* data) = 0;
  /// Locks pages of host memory so that the GPU reads and writes them itself, at the same address.
  virtual Result<void> pin(void* begin, std::int64_t size_bytes) = 0;
  virtual void unpin(void* begin) = 0;

  virtual Result<Queue> make_queue() = 0;
  virtual Result<EventId> make_event() = 0;
  virtual Result<void> record(EventId event, const Queue& queue) = 0;
  /// What is queued later waits for the event's last record; the caller does not. An event that was never
  /// recorded is not waited for.
  virtual Result<void> wait(EventId event, const Queue& queue) = 0;
  /// The same for an event of another GPU of this process.
  virtual Result<void> wait(const Gpu& other, EventId event, const Queue& queue) = 0;
  virtual Result<void> wait_on_host(EventId event) = 0;
  virtual Result<void> synchronize(const Queue& queue) = 0;

  /// Lets copies and kernels of this GPU into the memory of `other`.
  virtual Result<void> reach(const Gpu& other) = 0;

  /// Queues a copy between any two of device memory, pinned memory and the device memory of a GPU within reach.
  virtual Result<void> copy(void* to, const void* from, std::int64_t size_bytes,
                            const Queue& queue) = 0;
  /// Every byte gets `value`.
  virtual Result<void> fill(void* begin, std::int64_t size_bytes, std::uint8_t value,
                            const Queue& queue) = 0;
  Result<void> clear(void* begin, std::int64_t size_bytes, const Queue& queue) {
    return fill(begin, size_bytes, 0, queue);
  }
  /// Until end_capture(), what this thread queues there is kept instead of run. Nothing may wait for the host meanwhile.
  virtual Result<void> begin_capture(const Queue& queue) = 0;
  /// What was kept since, with all that it needs on the GPU. Addresses and numbers in it stay as they were.
  virtual Result<GraphId> end_capture(const Queue& queue) = 0;
  virtual Result<void> launch(GraphId graph, const Queue& queue) = 0;
  /// What launches on this thread since the last call have to report.
  virtual Result<void> check_launches() = 0;
};

/// Bytes that every buffer of device memory is aligned to: what the matrix library assumes by default.
constexpr std::int64_t gpu_alignment_bytes = 256;

/// The GPUs of this machine that the driver shows to this process.
/// Errors:  unsupported, saying what is missing: CUDA in this build, a driver, a GPU.
Result<std::vector<GpuFacts>> find_gpus();
/// Whether each of the first `count` can be let into the memory of all the others.
/// Errors:  as find_gpus().
Result<bool> gpus_reach_one_another(int count);
/// Errors:  as find_gpus(); unsupported, by name, for a GPU older than this build's code.
Result<std::unique_ptr<Gpu>> open_gpu(int ordinal);

}  // namespace underkeel::device
