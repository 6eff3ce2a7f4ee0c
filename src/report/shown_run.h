#pragma once
// The stretch of a run that the report draws: loading, a step, a step under which a save is written, an
// evaluation, one after another as the program allows it, with forecast times.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/timeline.h"
#include "spec/hardware_spec.h"

namespace underkeel::report {

/// One segment of the timeline.
struct ShownSegment {
  plan::SegmentKind kind = plan::SegmentKind::load;
  std::string part;  // "load", "a step", "a step while a save is written", "evaluation"
  std::string name;  // "micro-step 3 of 8", counted with those that are left out
  std::size_t first_span = 0;
  std::size_t span_count = 0;
  double begin_s = 0;  // when its first operation begins
  double end_s = 0;    // when its last one ends, entries in flight included
};

struct ShownRun {
  plan::Timeline timeline;
  std::vector<ShownSegment> segments;
  std::int64_t micro_steps = 0;        // of a step
  std::int64_t shown_micro_steps = 0;  // fewer when there are more operations than are drawn
};

/// Middle micro-steps are alike: of a step with more than `most_spans` operations, some are left out.
ShownRun shown_run(const plan::Plan& plan, const spec::HardwareSpec& machine,
                   std::size_t most_spans = 150'000);

}  // namespace underkeel::report
