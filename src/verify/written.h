#pragma once
// Which persistent buffers hold something when a segment starts, whatever came before.

#include <vector>

#include "plan/schedule.h"

namespace underkeel::verify {

/// By segment, then by buffer: written on every legal way to that segment. Empty when the schedule
/// has no program yet. A write that only some ranks do, or that depends on a flag, does not count.
std::vector<std::vector<bool>> written_before(const plan::Schedule& schedule);

/// Whether some ranks, or some steps, leave the operation out.
inline bool is_conditional(const plan::Op& op) {
  return op.when != plan::no_buffer || !op.on.empty();
}

/// Operations that fill a buffer piece by piece and so begin its content, though they keep the rest.
inline bool fills_by_pieces(const plan::Op& op) {
  return std::holds_alternative<plan::SumSquares>(op.body) ||
         std::holds_alternative<plan::CopyIn>(op.body);
}

}  // namespace underkeel::verify
