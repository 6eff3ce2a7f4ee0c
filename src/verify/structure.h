#pragma once
// Rules that one operation can break on its own: identities, edges, sizes.

#include <cstdint>
#include <optional>

#include "verify/report.h"

namespace underkeel::verify {

/// Every lane, buffer, unit, entry and edge exists; edges point back, to other lanes; entries are
/// the tails of their lanes; segment kinds are unique and the program knows them. The later rules
/// may index freely only when this reports nothing.
void check_identities(const plan::Schedule& schedule, Report& report);
/// Of one list alone.
void check_identities(const plan::Schedule& schedule, const plan::Segment& segment, Report& report);

/// Operands lie inside their buffers at the largest micro-batch, collectives and state operations
/// fit their units, collectives are for all ranks, shape classes ascend. With `world_size` also that
/// ranks exist and that values of all ranks fit.
void check_sizes(const plan::Schedule& schedule, std::optional<std::int64_t> world_size,
                 Report& report);
/// Of the operations of one list alone.
void check_sizes(const plan::Schedule& schedule, const plan::Segment& segment, Report& report);

bool is_collective(const plan::Op& op);

}  // namespace underkeel::verify
