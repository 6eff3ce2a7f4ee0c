#pragma once
// What buffers hold when they are read, in list order: something at all, the whole or only the
// rank's own part, this rank's sum or that of all ranks.

#include <cstdint>
#include <optional>
#include <span>

#include "verify/report.h"

namespace underkeel::verify {

/// A transient buffer is written in its life before it is read, a persistent one on every way through
/// the program that leads to its reader; a write under a flag or on some ranks counts for readers
/// under the same condition. With several ranks, what a rank brings up to date only in its own part
/// (a reduction, an update of sharded state, a loaded shard) is gathered before it is read whole, and
/// gradients are summed over ranks, once, before they are added to their home.
/// A value that is changed in place, other than by adding to it, has not been read before.
/// Without `world_size` there are several ranks where any unit is cut.
void check_content(const plan::Schedule& schedule, std::optional<std::int64_t> world_size,
                   Report& report);

/// Of one list alone, whatever comes before it and before the passes that add collectives; `given`
/// counts as written.
void check_content(const plan::Schedule& schedule, const plan::Segment& segment,
                   std::span<const plan::BufferId> given, Report& report);

}  // namespace underkeel::verify
