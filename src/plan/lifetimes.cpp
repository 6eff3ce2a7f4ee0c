#include "plan/lifetimes.h"

#include <algorithm>
#include <unordered_map>

#include "plan/uses.h"

namespace underkeel::plan {

std::vector<Lifetime> lifetimes_of(const Segment& segment) {
  std::vector<Lifetime> lifetimes;
  std::unordered_map<BufferId, std::size_t> open;  // buffer -> position in lifetimes
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    if (const BufferId id = acquired_by(segment.ops[i]); id != no_buffer) {
      open[id] = lifetimes.size();
      lifetimes.push_back({id, i, segment.ops.size()});
    } else if (const BufferId gone = released_by(segment.ops[i]); gone != no_buffer) {
      if (const auto found = open.find(gone); found != open.end()) {
        lifetimes[found->second].end = i;
        open.erase(found);
      }
    }
  }
  return lifetimes;
}

std::int64_t persistent_bytes(const Schedule& schedule, MemorySpace space) {
  std::int64_t sum = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent && buffer.space == space) sum += buffer.size_bytes;
  return sum;
}

std::vector<std::int64_t> live_bytes(const Schedule& schedule, const Segment& segment,
                                     MemorySpace space) {
  std::vector<std::int64_t> bytes(segment.ops.size());
  std::int64_t live = persistent_bytes(schedule, space);
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    if (const BufferId id = acquired_by(segment.ops[i]); id != no_buffer) {
      if (schedule.buffer(id).space == space) live += schedule.buffer(id).size_bytes;
    } else if (const BufferId gone = released_by(segment.ops[i]); gone != no_buffer) {
      if (schedule.buffer(gone).space == space) live -= schedule.buffer(gone).size_bytes;
    }
    bytes[i] = live;
  }
  return bytes;
}

}  // namespace underkeel::plan
