#pragma once
// What of a plan of ours is there for collectives.

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/finding.h"
#include "plan/plan.h"

namespace underkeel::doctor {

/// The most that buffers of a kind hold in a space at once, in bytes; at whatever moment.
std::int64_t most_bytes(const plan::Plan& plan, plan::BufferKind kind, plan::MemorySpace space);

/// Staging of reductions and gathered parameters on a rank's device, at most and at the plan's fullest moment. None on one
/// rank, which sends nothing. `file` is what the finding stands beside.
std::optional<Finding> tell_communication(const plan::Plan& plan, const std::string& file);

}  // namespace underkeel::doctor
