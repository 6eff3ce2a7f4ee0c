// Writes Acquire before the first and Release after the last use of every transient buffer.
// Needs: operations on their lanes. Gives: lives as short as list order allows. An Acquire runs on the
// lane of the first use, a Release on the lane of the last.

#include <limits>

#include "base/check.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

void place_lifetimes(const plan::Schedule& schedule, plan::Segment& segment) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> last_use(schedule.buffers.size(), none);
  std::size_t lives = 0;
  for (std::size_t i = 0; i < segment.ops.size(); ++i)
    plan::for_each_use(schedule, segment.ops[i], [&](BufferId id, plan::Access access) {
      if (schedule.buffer(id).persistent) return;
      std::size_t& last = last_use[index(id)];
      if (last == none) {
        ++lives;
        UK_CHECK(plan::writes(access),
                 "buffer is read before it is written: " + schedule.buffer(id).name);
      }
      last = i;
    });

  std::vector<bool> is_begun(schedule.buffers.size());
  std::vector<Op> merged;
  merged.reserve(segment.ops.size() + 2 * lives);
  std::vector<BufferId> ends;
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    const plan::LaneId lane = segment.ops[i].lane;
    const std::int32_t layer = segment.ops[i].layer;
    const auto push = [&](plan::OpBody body) {
      Op& op = merged.emplace_back();
      op.lane = lane;
      op.body = std::move(body);
      op.layer = layer;
    };
    ends.clear();
    plan::for_each_use(schedule, segment.ops[i], [&](BufferId id, plan::Access) {
      if (last_use[index(id)] == none) return;
      if (!is_begun[index(id)]) push(plan::Acquire{id});
      is_begun[index(id)] = true;
      if (last_use[index(id)] != i) return;
      ends.push_back(id);
      last_use[index(id)] = none;  // one use may name a buffer twice
    });
    merged.push_back(std::move(segment.ops[i]));
    for (const BufferId id : ends) push(plan::Release{id});
  }
  segment.ops = std::move(merged);
}

}  // namespace underkeel::planner
