#pragma once
// When each buffer is alive, derived from the schedule's order. Never stored.

#include <array>
#include <vector>

#include "plan/schedule.h"

namespace underkeel::plan {

/// Positions of a buffer's Acquire and Release in one segment.
struct Lifetime {
  BufferId buffer = no_buffer;
  std::size_t begin = 0;
  std::size_t end = 0;  // the Release; the segment's size when there is none
};

/// In order of `begin`. Persistent buffers are not listed: they live always.
std::vector<Lifetime> lifetimes_of(const Segment& segment);

/// Bytes alive in one space while each operation runs (an Acquire counts, a Release no longer).
/// Includes persistent buffers.
std::vector<std::int64_t> live_bytes(const Schedule& schedule, const Segment& segment,
                                     MemorySpace space);

std::int64_t persistent_bytes(const Schedule& schedule, MemorySpace space);

}  // namespace underkeel::plan
