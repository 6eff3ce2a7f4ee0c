#pragma once
// Where in a plan an error came up.

#include <cstdint>
#include <string>

#include "plan/plan.h"

namespace underkeel::exec {

/// "segment micro.only, op 12 layers.0 down on A, B, C; plan 00c0ffee00c0ffee": the operation of the segment's list with the
/// buffers that it touches, and the plan's hash as `plan --json` has it.
std::string place_of(const plan::Plan& plan, const plan::Segment& segment, std::size_t position);
/// The same for operations from `first` to `last` that were launched as one.
std::string place_of(const plan::Plan& plan, const plan::Segment& segment, std::size_t first,
                     std::size_t last);
/// The same where no more than the segment is known.
std::string place_of(const plan::Plan& plan, const plan::Segment& segment);

}  // namespace underkeel::exec
