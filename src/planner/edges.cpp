// Moves operations to their lanes and turns list order into the `after` edges that the lanes need.
// Needs: a list that is right when run from top to bottom, and the arena layout. Gives: for every use an
// edge from the last conflicting use on another lane, and for every new tenant of bytes an edge from the
// old one's release; edges that others imply are left out. Work of earlier segments that may still run
// is waited for through entries.

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

using plan::LaneId;
using plan::OpIndex;
namespace lanes = plan::lanes;

LaneId lane_of(const Op& op, bool overlap) {
  return std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        constexpr bool is_collective =
            std::is_same_v<Body, plan::Gather> || std::is_same_v<Body, plan::ReduceScatter> ||
            std::is_same_v<Body, plan::AllReduce> || std::is_same_v<Body, plan::GatherValues>;
        if constexpr (is_collective) return overlap ? lanes::collective : lanes::compute;
        if constexpr (std::is_same_v<Body, plan::CopyOut>) return lanes::save_copy;
        if constexpr (std::is_same_v<Body, plan::Save> || std::is_same_v<Body, plan::Load>)
          return lanes::save_disk;
        return lanes::compute;
      },
      op.body);
}

using Clock = std::array<std::uint32_t, lanes::count>;

/// How an entry uses a buffer, and on which lane.
struct EntryUse {
  plan::EntryId entry{};
  plan::Access access{};
  LaneId lane{};
  bool operator==(const EntryUse&) const = default;
};
using EntryUses = std::unordered_map<BufferId, std::vector<EntryUse>>;

/// Adds the edges of one segment.
class Edges {
 public:
  Edges(const plan::Schedule& schedule, const plan::ArenaLayout& layout,
        const EntryUses& entry_uses)
      : schedule_(schedule),
        layout_(layout),
        entry_uses_(entry_uses),
        states_(schedule.buffers.size()),
        released_(schedule.buffers.size(), -1) {}

  void add_to(plan::Segment& segment) {
    clocks_.resize(segment.ops.size());
    std::array<std::int64_t, lanes::count> last_on_lane;
    last_on_lane.fill(-1);
    for (std::size_t i = 0; i < segment.ops.size(); ++i) {
      Op& op = segment.ops[i];
      collect_dependencies(segment, i);
      const auto lane = index(op.lane);
      Clock clock{};
      if (last_on_lane[lane] >= 0) clock = clocks_[static_cast<std::size_t>(last_on_lane[lane])];
      // Latest first: it tends to imply the others.
      std::sort(dependencies_.begin(), dependencies_.end(), std::greater<>());
      for (const std::size_t dependency : dependencies_) {
        const auto other = index(segment.ops[dependency].lane);
        if (other == lane || clock[other] > dependency) continue;
        op.after.push_back(OpIndex{static_cast<std::uint32_t>(dependency)});
        for (std::size_t l = 0; l < clock.size(); ++l)
          clock[l] = std::max(clock[l], clocks_[dependency][l]);
      }
      // A lane's clock holds one more than the position of the latest operation known to have ended.
      clock[lane] = static_cast<std::uint32_t>(i + 1);
      clocks_[i] = clock;
      last_on_lane[lane] = static_cast<std::int64_t>(i);
      wait_for_entries(op);
      remember(segment, i);
    }
  }

 private:
  struct BufferState {
    std::int64_t last_write = -1;
    std::array<std::int64_t, lanes::count> last_read;
    BufferState() { last_read.fill(-1); }
  };
  struct Tenancy {
    std::int64_t end_bytes = 0;
    BufferId buffer{};
  };

  void depend(std::int64_t position) {
    if (position >= 0) dependencies_.push_back(static_cast<std::size_t>(position));
  }
  void depend_on_all_uses(const BufferState& state) {
    depend(state.last_write);
    for (const std::int64_t read : state.last_read) depend(read);
  }

  void collect_dependencies(const plan::Segment& segment, std::size_t i) {
    dependencies_.clear();
    const Op& op = segment.ops[i];
    if (const BufferId id = plan::acquired_by(op); id != plan::no_buffer) return take_bytes(id);
    if (const BufferId id = plan::released_by(op); id != plan::no_buffer)
      return depend_on_all_uses(states_[index(id)]);
    plan::for_each_use(schedule_, op, [&](BufferId id, plan::Access access) {
      const BufferState& state = states_[index(id)];
      depend(state.last_write);
      if (plan::writes(access)) depend_on_all_uses(state);
    });
  }

  // The new tenant's Acquire follows the Release of everyone who had any of its bytes.
  void take_bytes(BufferId id) {
    const plan::Buffer& buffer = schedule_.buffer(id);
    const std::int64_t begin = layout_.offset_bytes[index(id)];
    const std::int64_t end = begin + std::max<std::int64_t>(buffer.size_bytes, 1);
    auto& tenants = tenants_[index(buffer.space)];
    auto tenant = tenants.lower_bound(begin);
    if (tenant != tenants.begin() && std::prev(tenant)->second.end_bytes > begin) --tenant;
    while (tenant != tenants.end() && tenant->first < end) {
      depend(released_[index(tenant->second.buffer)]);
      const auto [old_begin, old] = *tenant;
      tenant = tenants.erase(tenant);
      if (old_begin < begin) tenants[old_begin] = {begin, old.buffer};
      if (old.end_bytes > end) tenants[end] = {old.end_bytes, old.buffer};
    }
    tenants[begin] = {end, id};
  }

  void remember(const plan::Segment& segment, std::size_t i) {
    const Op& op = segment.ops[i];
    const auto position = static_cast<std::int64_t>(i);
    if (const BufferId id = plan::acquired_by(op); id != plan::no_buffer) {
      states_[index(id)] = BufferState();
      states_[index(id)].last_write = position;
      return;
    }
    if (const BufferId id = plan::released_by(op); id != plan::no_buffer) {
      released_[index(id)] = position;
      return;
    }
    plan::for_each_use(schedule_, op, [&](BufferId id, plan::Access access) {
      BufferState& state = states_[index(id)];
      if (plan::reads(access)) state.last_read[index(op.lane)] = position;
      if (plan::writes(access)) {
        state = BufferState();
        state.last_write = position;
      }
    });
  }

  void wait_for_entries(Op& op) {
    plan::for_each_use(schedule_, op, [&](BufferId id, plan::Access access) {
      const auto found = entry_uses_.find(id);
      if (found == entry_uses_.end()) return;
      for (const EntryUse& use : found->second) {
        if (!plan::writes(access) && !plan::writes(use.access)) continue;
        if (op.entry == use.entry || use.lane == op.lane) continue;
        if (!waited_[index(op.lane)].insert(use.entry).second) continue;
        op.after_entry.push_back(use.entry);
      }
    });
  }

  const plan::Schedule& schedule_;
  const plan::ArenaLayout& layout_;
  const EntryUses& entry_uses_;
  std::vector<Clock> clocks_;
  std::vector<std::size_t> dependencies_;
  std::vector<BufferState> states_;     // by buffer
  std::vector<std::int64_t> released_;  // by buffer: list position of its Release
  std::array<std::map<std::int64_t, Tenancy>, plan::memory_space_count> tenants_;
  std::array<std::unordered_set<plan::EntryId>, lanes::count> waited_;
};

/// Which segments may run, at any distance, after one that leaves an entry in flight.
std::array<bool, plan::segment_kind_count> reachable_from(const plan::Program& program,
                                                          const plan::Segment& origin) {
  std::array<bool, plan::segment_kind_count> reached{};
  for (bool grown = true; grown;) {
    grown = false;
    for (const plan::Program::Step& step : program.steps) {
      if (reached[index(step.to)] || !(origin.is(step.from) || reached[index(step.from)])) continue;
      reached[index(step.to)] = grown = true;
    }
  }
  return reached;
}

/// Appends the uses that the entries of one segment make of each buffer, each once.
void collect_entry_uses(const plan::Schedule& schedule, const plan::Segment& segment,
                        EntryUses& uses) {
  for (const Op& op : segment.ops) {
    if (op.entry == plan::no_entry) continue;
    plan::for_each_use(schedule, op, [&](BufferId id, plan::Access access) {
      auto& known = uses[id];
      const EntryUse use{op.entry, access, op.lane};
      if (std::find(known.rbegin(), known.rend(), use) == known.rend()) known.push_back(use);
    });
  }
}

}  // namespace

void assign_lanes(plan::Segment& segment, bool overlap) {
  for (Op& op : segment.ops) op.lane = lane_of(op, overlap);
}

void add_edges(plan::Schedule& schedule, const plan::ArenaLayout& layout) {
  for (plan::Segment& segment : schedule.segments) {
    EntryUses uses;
    for (const plan::Segment& earlier : schedule.segments) {
      const auto reached = reachable_from(schedule.program, earlier);
      bool may_follow = reached[index(segment.kind)];
      for (const plan::SegmentKind kind : segment.also) may_follow |= reached[index(kind)];
      if (may_follow) collect_entry_uses(schedule, earlier, uses);
    }
    Edges(schedule, layout, uses).add_to(segment);
  }
}

}  // namespace underkeel::planner
