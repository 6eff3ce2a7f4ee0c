#pragma once
// A second opinion on a plan, by brute force: which operations collide, and whether the order between
// them follows from lanes and edges by transitive closure. Shares no code with the verifier.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "plan/plan.h"
#include "plan/uses.h"

namespace underkeel::test {

/// Everything that comes before each operation of a segment: lane order and edges, closed.
class Closure {
 public:
  explicit Closure(const plan::Segment& segment)
      : words_((segment.ops.size() + 63) / 64), before_(segment.ops.size() * words_) {
    std::vector<std::int64_t> last_of_lane(256, -1);
    for (std::size_t i = 0; i < segment.ops.size(); ++i) {
      const plan::Op& op = segment.ops[i];
      std::int64_t& last = last_of_lane[plan::index(op.lane)];
      if (last >= 0) follow(i, static_cast<std::size_t>(last));
      for (const plan::OpIndex before : op.after)
        if (plan::index(before) < i) follow(i, plan::index(before));
      last = static_cast<std::int64_t>(i);
    }
  }
  bool precedes(std::size_t a, std::size_t b) const {
    return (before_[b * words_ + a / 64] >> (a % 64) & 1) != 0;
  }

 private:
  void follow(std::size_t i, std::size_t before) {
    for (std::size_t w = 0; w < words_; ++w)
      before_[i * words_ + w] |= before_[before * words_ + w];
    before_[i * words_ + before / 64] |= std::uint64_t{1} << (before % 64);
  }

  std::size_t words_;
  std::vector<std::uint64_t> before_;
};

/// Pairs (earlier, later) of a segment's list that must stay in that order: two uses of a buffer of
/// which one writes (a life's begin and end count as writes); a release and the acquire of another
/// buffer over the same bytes; two collectives.
inline std::vector<std::pair<std::size_t, std::size_t>> colliding_pairs(
    const plan::Plan& plan, const plan::Segment& segment) {
  struct Touch {
    std::size_t at;
    bool writes;
  };
  const plan::Schedule& schedule = plan.schedule;
  std::vector<std::vector<Touch>> touches(schedule.buffers.size() + 1);
  std::vector<std::pair<std::size_t, plan::BufferId>> acquires;
  std::vector<std::pair<std::size_t, plan::BufferId>> releases;
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    const plan::Op& op = segment.ops[i];
    if (const auto* acquire = std::get_if<plan::Acquire>(&op.body)) {
      touches[plan::index(acquire->buffer)].push_back({i, true});
      acquires.emplace_back(i, acquire->buffer);
    }
    if (const auto* release = std::get_if<plan::Release>(&op.body)) {
      touches[plan::index(release->buffer)].push_back({i, true});
      releases.emplace_back(i, release->buffer);
    }
    for (const plan::Use& use : plan::uses(schedule, op))
      touches[plan::index(use.buffer)].push_back({i, use.access != plan::Access::read});
    const std::size_t kind = op.body.index();
    constexpr std::size_t first_collective = 2;  // Gather, ReduceScatter, AllReduce, GatherValues
    if (kind >= first_collective && kind < first_collective + 4)
      touches.back().push_back({i, true});
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& list : touches)
    for (std::size_t b = 0; b < list.size(); ++b)
      for (std::size_t a = 0; a < b; ++a)
        if ((list[a].writes || list[b].writes) && list[a].at != list[b].at)
          pairs.emplace_back(list[a].at, list[b].at);
  const auto range = [&](plan::BufferId id) {
    const std::int64_t begin = plan.layout.offset_bytes[plan::index(id)];
    return std::pair(begin, begin + schedule.buffer(id).size_bytes);
  };
  for (const auto& [released, old] : releases)
    for (const auto& [acquired, tenant] : acquires) {
      if (old == tenant || acquired < released) continue;
      if (schedule.buffer(old).space != schedule.buffer(tenant).space) continue;
      const auto [a_begin, a_end] = range(old);
      const auto [b_begin, b_end] = range(tenant);
      if (a_begin < b_end && b_begin < a_end) pairs.emplace_back(released, acquired);
    }
  return pairs;
}

/// Whether two operations that collide over a buffer touch the same bytes of it. Columns of one
/// matrix lie apart, and so do slots of a list of sums.
inline bool touch_same_bytes(const plan::Op& a, const plan::Op& b) {
  const auto* a_sums = std::get_if<plan::SumSquares>(&a.body);
  const auto* b_sums = std::get_if<plan::SumSquares>(&b.body);
  if (a_sums != nullptr && b_sums != nullptr) return a_sums->slot == b_sums->slot;
  const auto* a_compute = std::get_if<plan::Compute>(&a.body);
  const auto* b_compute = std::get_if<plan::Compute>(&b.body);
  if (a_compute == nullptr || b_compute == nullptr) return true;
  for (const plan::Operand& x : a_compute->operands)
    for (const plan::Operand& y : b_compute->operands) {
      if (x.buffer == plan::no_buffer || x.buffer != y.buffer) continue;
      if (x.access == plan::Access::read && y.access == plan::Access::read) continue;
      if (x.row_stride != y.row_stride || x.type != y.type) return true;
      const std::int64_t size = bits_of(x.type) / 8;
      const std::int64_t x_column = x.offset_bytes / size % x.row_stride;
      const std::int64_t y_column = y.offset_bytes / size % y.row_stride;
      if (x_column < y_column + y.columns && y_column < x_column + x.columns) return true;
    }
  return false;
}

/// Whether lanes and edges keep every colliding pair of the segment in list order.
inline bool is_ordered(const plan::Plan& plan, const plan::Segment& segment) {
  const Closure closure(segment);
  for (const auto& [earlier, later] : colliding_pairs(plan, segment))
    if (!closure.precedes(earlier, later)) return false;
  return true;
}

/// Whether the list, run from top to bottom, keeps every buffer's life: acquired, written before it
/// is read, released once; and no byte has two living buffers.
inline bool keeps_lives(const plan::Plan& plan, const plan::Segment& segment) {
  enum class Life { none, empty, written };
  const plan::Schedule& schedule = plan.schedule;
  std::vector<Life> life(schedule.buffers.size(), Life::none);
  std::set<plan::BufferId> living;
  for (const plan::Op& op : segment.ops) {
    if (const auto* acquire = std::get_if<plan::Acquire>(&op.body)) {
      const plan::Buffer& buffer = schedule.buffer(acquire->buffer);
      if (buffer.persistent || !living.insert(acquire->buffer).second) return false;
      life[plan::index(acquire->buffer)] = Life::empty;
      const std::int64_t begin = plan.layout.offset_bytes[plan::index(acquire->buffer)];
      for (const plan::BufferId other : living) {
        const std::int64_t other_begin = plan.layout.offset_bytes[plan::index(other)];
        if (other != acquire->buffer && schedule.buffer(other).space == buffer.space &&
            begin < other_begin + schedule.buffer(other).size_bytes &&
            other_begin < begin + buffer.size_bytes)
          return false;
      }
      continue;
    }
    if (const auto* release = std::get_if<plan::Release>(&op.body)) {
      if (living.erase(release->buffer) == 0) return false;
      life[plan::index(release->buffer)] = Life::none;
      continue;
    }
    const bool by_pieces = std::holds_alternative<plan::SumSquares>(op.body) ||
                           std::holds_alternative<plan::CopyIn>(op.body);
    const std::vector<plan::Use> uses = plan::uses(schedule, op);
    for (const plan::Use& use : uses) {
      if (schedule.buffer(use.buffer).persistent) continue;
      const Life state = life[plan::index(use.buffer)];
      if (state == Life::none) return false;
      if (state == Life::empty && use.access != plan::Access::write && !by_pieces) return false;
    }
    for (const plan::Use& use : uses)
      if (use.access != plan::Access::read) life[plan::index(use.buffer)] = Life::written;
  }
  return living.empty();
}

/// Whether every use of what an entry in flight touches waits for it, on every way through the
/// program: all reachable states (segment, work in flight) are visited one by one.
inline bool waits_for_entries(const plan::Plan& plan) {
  using Part = std::pair<plan::EntryId, plan::LaneId>;
  using State = std::pair<std::size_t, std::set<Part>>;
  const plan::Schedule& schedule = plan.schedule;
  const auto position = [&](plan::SegmentKind kind) {
    return static_cast<std::size_t>(schedule.find(kind) - schedule.segments.data());
  };
  std::map<Part, std::vector<plan::Use>> touched;
  std::vector<Closure> closures;
  for (const plan::Segment& segment : schedule.segments) {
    closures.emplace_back(segment);
    for (const plan::Op& op : segment.ops)
      if (op.entry != plan::no_entry)
        for (const plan::Use& use : plan::uses(schedule, op))
          touched[{op.entry, op.lane}].push_back(use);
  }
  // Whether the operation comes after the part by itself.
  const auto waits = [&](const plan::Op& op, const Part& part) {
    return op.lane == part.second || std::find(op.after_entry.begin(), op.after_entry.end(),
                                               part.first) != op.after_entry.end();
  };
  const auto comes_after = [&](std::size_t s, std::size_t i, const Part& part) {
    const auto& ops = schedule.segments[s].ops;
    if (waits(ops[i], part)) return true;
    for (std::size_t j = 0; j < i; ++j)
      if (closures[s].precedes(j, i) && waits(ops[j], part)) return true;
    return false;
  };
  struct Answer {
    bool is_sound = true;
    bool is_finished = false;  // when the segment is joined
  };
  // Does not depend on the way: answered once for each segment and part.
  std::map<std::pair<std::size_t, Part>, Answer> answers;
  const auto answer = [&](std::size_t s, const Part& part) {
    const auto [found, is_new] = answers.try_emplace({s, part});
    if (!is_new) return found->second;
    const auto& ops = schedule.segments[s].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      bool collides = false;
      for (const plan::Use& use : plan::uses(schedule, ops[i]))
        for (const plan::Use& other : touched[part])
          collides = collides ||
                     (use.buffer == other.buffer &&
                      (use.access != plan::Access::read || other.access != plan::Access::read));
      const bool is_after = comes_after(s, i, part);
      if (collides && !is_after) found->second.is_sound = false;
      if (is_after && ops[i].entry == plan::no_entry) found->second.is_finished = true;
    }
    return found->second;
  };

  std::set<std::size_t> followers;
  for (const auto& step : schedule.program.steps) followers.insert(position(step.to));
  std::vector<State> open;
  for (std::size_t s = 0; s < schedule.segments.size(); ++s)
    if (!followers.contains(s)) open.push_back({s, {}});
  std::set<State> seen(open.begin(), open.end());
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    std::set<Part> left;
    for (const Part& part : state.second) {
      const Answer found = answer(state.first, part);
      if (!found.is_sound) return false;
      if (!found.is_finished) left.insert(part);
    }
    for (const plan::Op& op : schedule.segments[state.first].ops)
      if (op.entry != plan::no_entry) left.insert({op.entry, op.lane});
    for (const auto& step : schedule.program.steps) {
      if (position(step.from) != state.first) continue;
      State next{position(step.to), left};
      if (seen.insert(next).second) open.push_back(std::move(next));
    }
  }
  return true;
}

}  // namespace underkeel::test
