#include "exec/gpu_lanes.h"

#include <array>

namespace underkeel::exec {

namespace {

namespace lanes = plan::lanes;

/// Whether the lane's operations end in its thread: nothing of them is queued.
bool is_on_host(std::size_t lane) {
  return lane == index(lanes::save_disk);
}

}  // namespace

Result<std::unique_ptr<GpuLanes>> GpuLanes::make(device::Gpu& gpu, const plan::Schedule& schedule) {
  std::unique_ptr<GpuLanes> made(new GpuLanes(gpu, schedule));
  UK_TRY_VOID(made->make_queues());
  UK_TRY_VOID(made->make_events());
  return made;
}

Result<void> GpuLanes::make_queues() {
  for (int lane = 0; lane < lanes::count; ++lane) {
    UK_TRY(queue, gpu_.make_queue());
    queues_.push_back(queue);
  }
  return {};
}

Result<void> GpuLanes::make_events() {
  entry_events_.assign(schedule_.entries.size(), no_event);
  for (const plan::Segment& segment : schedule_.segments) {
    std::vector<bool> is_waited_for(segment.ops.size());
    std::array<std::int64_t, lanes::count> last_joined;
    last_joined.fill(-1);
    std::vector<std::int64_t> last_of_entry(schedule_.entries.size(), -1);
    for (std::size_t i = 0; i < segment.ops.size(); ++i) {
      const plan::Op& op = segment.ops[i];
      for (const plan::OpIndex after : op.after) is_waited_for[index(after)] = true;
      if (op.entry == plan::no_entry) {
        last_joined[index(op.lane)] = static_cast<std::int64_t>(i);
      } else {
        last_of_entry[index(op.entry)] = static_cast<std::int64_t>(i);
      }
    }
    const auto mark = [&](std::int64_t position) {
      if (position >= 0) is_waited_for[static_cast<std::size_t>(position)] = true;
    };
    for (const std::int64_t position : last_of_entry) mark(position);
    for (const std::int64_t position : last_joined) mark(position);

    std::vector<device::EventId> events(segment.ops.size(), no_event);
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!is_waited_for[i] || is_on_host(index(segment.ops[i].lane))) continue;
      UK_TRY(event, gpu_.make_event());
      events[i] = event;
    }
    std::vector<device::EventId> joins;
    for (const std::int64_t position : last_joined)
      if (position >= 0 && events[static_cast<std::size_t>(position)] != no_event)
        joins.push_back(events[static_cast<std::size_t>(position)]);
    for (std::size_t entry = 0; entry < last_of_entry.size(); ++entry)
      if (last_of_entry[entry] >= 0)
        entry_events_[entry] = events[static_cast<std::size_t>(last_of_entry[entry])];
    events_.push_back(std::move(events));
    joins_.push_back(std::move(joins));
  }
  return {};
}

Result<void> GpuLanes::wait(device::EventId event, std::size_t lane) {
  if (event == no_event) return {};
  return is_on_host(lane) ? gpu_.wait_on_host(event) : gpu_.wait(event, queues_[lane]);
}

Result<void> GpuLanes::wait_for(std::size_t segment, std::size_t position, std::size_t lane) {
  return wait(events_[segment][position], lane);
}

Result<void> GpuLanes::wait_for_entry(plan::EntryId entry, std::size_t lane) {
  return wait(entry_events_[index(entry)], lane);
}

Result<void> GpuLanes::mark(std::size_t segment, std::size_t position) {
  UK_TRY_VOID(gpu_.check_launches());
  const device::EventId event = events_[segment][position];
  if (event == no_event) return {};
  return gpu_.record(event, queues_[index(schedule_.segments[segment].ops[position].lane)]);
}

Result<void> GpuLanes::join(std::size_t segment) {
  for (const device::EventId event : joins_[segment]) UK_TRY_VOID(gpu_.wait_on_host(event));
  return {};
}

Result<void> GpuLanes::drain() {
  for (const device::Queue& queue : queues_) UK_TRY_VOID(gpu_.synchronize(queue));
  return {};
}

}  // namespace underkeel::exec
