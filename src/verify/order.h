#pragma once
// Order within each segment, by vector clocks over lanes, and against what earlier segments left
// in flight.

#include <vector>

#include "plan/plan.h"
#include "verify/report.h"

namespace underkeel::verify {

/// Checks every segment. With `layout` also that a buffer acquires bytes only after their last
/// tenant has released them. Returns for every buffer whether any segment acquires it.
std::vector<bool> check_order(const plan::Schedule& schedule, const plan::ArenaLayout* layout,
                              Report& report);

}  // namespace underkeel::verify
