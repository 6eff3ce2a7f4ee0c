#pragma once
// What each lane does in a segment: the operations of the list that are its own.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/schedule.h"

namespace underkeel::exec {

/// A segment's operations sorted by lane, made once.
struct LaneProgram {
  std::array<std::vector<std::uint32_t>, plan::lanes::count> ops;  // list positions, by lane
  std::vector<std::uint32_t> place;  // position in its lane, by list position
  std::array<std::uint64_t, plan::lanes::count>
      joined{};  // operations of the lane before its entries
  std::vector<std::pair<std::size_t, std::uint32_t>>
      entry_end;  // entry, list position of its last operation
};

LaneProgram lane_program(const plan::Segment& segment);

}  // namespace underkeel::exec
