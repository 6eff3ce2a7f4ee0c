#include "verify/written.h"

#include "plan/uses.h"

namespace underkeel::verify {

std::vector<std::vector<bool>> written_before(const plan::Schedule& schedule) {
  if (schedule.program.steps.empty()) return {};
  const std::size_t buffer_count = schedule.buffers.size();
  std::vector<std::vector<bool>> writes(schedule.segments.size(), std::vector<bool>(buffer_count));
  for (std::size_t s = 0; s < schedule.segments.size(); ++s)
    for (const plan::Op& op : schedule.segments[s].ops) {
      if (is_conditional(op)) continue;
      plan::for_each_use(schedule, op, [&](plan::BufferId id, plan::Access access) {
        if (plan::writes(access)) writes[s][index(id)] = true;
      });
    }

  const auto position = [&](plan::SegmentKind kind) {
    return static_cast<std::size_t>(schedule.find(kind) - schedule.segments.data());
  };
  std::vector<bool> has_predecessor(schedule.segments.size());
  for (const plan::Program::Step& step : schedule.program.steps)
    has_predecessor[position(step.to)] = true;
  // From "everything" downwards, so that a loop does not count against itself.
  std::vector<std::vector<bool>> before;
  for (std::size_t s = 0; s < schedule.segments.size(); ++s)
    before.emplace_back(buffer_count, static_cast<bool>(has_predecessor[s]));
  for (bool changed = true; changed;) {
    changed = false;
    for (const plan::Program::Step& step : schedule.program.steps) {
      const std::size_t from = position(step.from);
      const std::size_t to = position(step.to);
      for (std::size_t b = 0; b < buffer_count; ++b) {
        if (!before[to][b] || before[from][b] || writes[from][b]) continue;
        before[to][b] = false;
        changed = true;
      }
    }
  }
  return before;
}

}  // namespace underkeel::verify
