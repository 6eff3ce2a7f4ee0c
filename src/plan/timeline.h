#pragma once
// When operations ran, or will run. One type, predicted or measured.

#include <array>
#include <cstdint>
#include <vector>

#include "plan/schedule.h"

namespace underkeel::plan {

struct Span {
  SegmentKind segment = SegmentKind::load;
  OpIndex op{};
  LaneId lane{};
  double begin_s = 0;  // from the start of the timeline
  double end_s = 0;
};

/// In order of the segments that ran, and of their lists.
struct Timeline {
  std::vector<Span> spans;
};

/// Bytes living in one space from `time_s` to the next moment.
struct Moment {
  double time_s = 0;
  std::int64_t size_bytes = 0;
  std::array<std::int64_t, buffer_kind_count> by_kind{};
};

/// A buffer lives from the end of its Acquire to the end of its Release; persistent ones always.
/// Starts at time 0. Lanes overlap, so this may lie above or below the curve in list order
/// (live_bytes); the arena holds either.
std::vector<Moment> bytes_over_time(const Schedule& schedule, const Timeline& timeline,
                                    MemorySpace space);

}  // namespace underkeel::plan
