#pragma once
// When operations ran, or will run. One type, predicted or measured.

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

}  // namespace underkeel::plan
