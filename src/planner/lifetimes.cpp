// Writes Acquire before the first and Release after the last use of every transient buffer.
// Needs: operations on their lanes. Gives: lives as short as list order allows. An Acquire runs on the
// lane of the first use, a Release on the lane of the last.

#include <unordered_map>

#include "base/check.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

void place_lifetimes(const plan::Schedule& schedule, plan::Segment& segment) {
  struct Span {
    std::size_t first = 0;
    std::size_t last = 0;
    bool begun = false;
  };
  std::unordered_map<BufferId, Span> spans;
  for (std::size_t i = 0; i < segment.ops.size(); ++i)
    plan::for_each_use(schedule, segment.ops[i], [&](BufferId id, plan::Access access) {
      if (schedule.buffer(id).persistent) return;
      const auto [entry, is_new] = spans.try_emplace(id, Span{.first = i, .last = i});
      entry->second.last = i;
      UK_CHECK(!is_new || plan::writes(access),
               "buffer is read before it is written: " + schedule.buffer(id).name);
    });
  std::vector<std::vector<BufferId>> begins(segment.ops.size());
  std::vector<std::vector<BufferId>> ends(segment.ops.size());
  for (std::size_t i = 0; i < segment.ops.size(); ++i)
    plan::for_each_use(schedule, segment.ops[i], [&](BufferId id, plan::Access) {
      const auto span = spans.find(id);
      if (span == spans.end()) return;
      if (!span->second.begun) begins[i].push_back(id);
      span->second.begun = true;
      if (span->second.last == i) ends[i].push_back(id);
      if (span->second.last == i) spans.erase(span);  // one use may name a buffer twice
    });

  std::vector<Op> merged;
  merged.reserve(segment.ops.size() * 2);
  const auto push = [&](plan::OpBody body, const Op& neighbour) {
    Op op;
    op.lane = neighbour.lane;
    op.body = std::move(body);
    op.layer = neighbour.layer;
    merged.push_back(std::move(op));
  };
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    const plan::LaneId lane = segment.ops[i].lane;
    for (const BufferId id : begins[i]) push(plan::Acquire{id}, segment.ops[i]);
    merged.push_back(std::move(segment.ops[i]));
    Op neighbour;
    neighbour.lane = lane;
    neighbour.layer = merged.back().layer;
    for (const BufferId id : ends[i]) push(plan::Release{id}, neighbour);
  }
  segment.ops = std::move(merged);
}

}  // namespace underkeel::planner
