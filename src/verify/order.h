#pragma once
// Order within each segment, by vector clocks over lanes, and against what earlier segments left
// in flight.

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "verify/report.h"

namespace underkeel::verify {

/// Bytes by memory space.
using SpaceBytes = std::array<std::int64_t, plan::memory_space_count>;

/// What the walk has seen.
struct Seen {
  std::vector<bool> acquired;     // by buffer: by any segment
  std::vector<SpaceBytes> peaks;  // by segment: the most that lives in it, in list order
};

/// Checks every segment. With `layout` also that a buffer acquires bytes only after their last
/// tenant has released them.
Seen check_order(const plan::Schedule& schedule, const plan::ArenaLayout* layout, Report& report);

}  // namespace underkeel::verify
