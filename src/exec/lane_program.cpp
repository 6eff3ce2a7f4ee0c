#include "exec/lane_program.h"

#include <algorithm>

namespace underkeel::exec {

LaneProgram lane_program(const plan::Segment& segment) {
  LaneProgram program;
  program.place.resize(segment.ops.size());
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    const plan::Op& op = segment.ops[i];
    auto& lane = program.ops[index(op.lane)];
    program.place[i] = static_cast<std::uint32_t>(lane.size());
    lane.push_back(static_cast<std::uint32_t>(i));
    if (op.entry == plan::no_entry) {
      program.joined[index(op.lane)] = lane.size();
      continue;
    }
    const auto known = std::find_if(program.entry_end.begin(), program.entry_end.end(),
                                    [&](const auto& end) { return end.first == index(op.entry); });
    if (known == program.entry_end.end()) {
      program.entry_end.emplace_back(index(op.entry), static_cast<std::uint32_t>(i));
    } else {
      known->second = static_cast<std::uint32_t>(i);
    }
  }
  return program;
}

}  // namespace underkeel::exec
