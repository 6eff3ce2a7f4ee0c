#pragma once
// Lanes on a GPU: a queue for every lane whose operations are queued, and events where lanes wait for one
// another. A lane's thread runs ahead of its queue; it waits itself only on behalf of a lane that is not
// queued (files) and where a segment joins.

#include <memory>
#include <vector>

#include "base/result.h"
#include "device/gpu.h"
#include "plan/schedule.h"

namespace underkeel::exec {

class GpuLanes {
 public:
  /// Makes all queues and events that running `schedule` needs. `gpu` and `schedule` must outlive it.
  static Result<std::unique_ptr<GpuLanes>> make(device::Gpu& gpu, const plan::Schedule& schedule);

  device::Gpu& gpu() const { return gpu_; }
  device::Queue& queue(std::size_t lane) { return queues_[lane]; }

  /// Whether anyone waits for this operation of the segment.
  bool is_waited_for(std::size_t segment, std::size_t position) const {
    return events_[segment][position] != no_event;
  }
  /// `lane` goes on after an operation of the segment that has been given to its own lane's queue.
  Result<void> wait_for(std::size_t segment, std::size_t position, std::size_t lane);
  Result<void> wait_for_entry(plan::EntryId entry, std::size_t lane);
  /// To be called once an operation has been given to its lane's queue: reports what its launches have to
  /// report, and marks the place for those who wait for it.
  Result<void> mark(std::size_t segment, std::size_t position);
  /// Returns when all of the segment but its entries has ended.
  Result<void> join(std::size_t segment);
  /// Returns when nothing is queued any more.
  Result<void> drain();

 private:
  static constexpr device::EventId no_event{0xffffffff};

  GpuLanes(device::Gpu& gpu, const plan::Schedule& schedule) : gpu_(gpu), schedule_(schedule) {}
  Result<void> make_queues();
  Result<void> make_events();
  Result<void> wait(device::EventId event, std::size_t lane);

  device::Gpu& gpu_;
  const plan::Schedule& schedule_;
  std::vector<device::Queue> queues_;                 // by lane
  std::vector<std::vector<device::EventId>> events_;  // by segment and list position
  std::vector<std::vector<device::EventId>> joins_;   // by segment
  std::vector<device::EventId> entry_events_;         // by entry: its last operation
};

}  // namespace underkeel::exec
