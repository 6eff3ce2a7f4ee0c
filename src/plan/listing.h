#pragma once
// A plan as text: the same characters for the same plan, so that a change of the planner is reviewed
// as a difference of listings.

#include <string>

#include "plan/plan.h"

namespace underkeel::plan {

/// Head (ranks, units, what lives for the whole run, peaks, what follows what) and every segment.
std::string listing(const Plan& plan);

/// The same on a few screens, from which every line of the other one follows: a buffer's beginning and end stand
/// behind the operation that they belong to, and what is like something above, but for its layer, says so.
std::string folded_listing(const Plan& plan);

/// One operation a line: position, lane, label, what it reads -> writes, what it waits for.
std::string listing(const Schedule& schedule, const Segment& segment);

}  // namespace underkeel::plan
