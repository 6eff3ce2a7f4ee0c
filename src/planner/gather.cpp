// Stage 3: gathers a unit's weights before its first use, and lets go of them after the last.
// Needs: operations that read whole units. Gives: Gather operations, each into a buffer of its own
// region of uses. Bounds (elements): two uses share a region when no more than the reuse distance is
// gathered between them; a gather is issued ahead while what is ahead stays within the prefetch bound
// and everything gathered within the live bound.

#include <algorithm>

#include <fmt/format.h>

#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

/// Consecutive uses of one unit that share one gather.
struct Region {
  UnitId unit{};
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t elements = 0;
  std::vector<std::size_t> uses;
};

struct Touch {
  std::size_t position = 0;
  UnitId unit{};
};

std::vector<Touch> touches_of_gathered_units(const Builder& builder, const std::vector<Op>& ops) {
  std::unordered_map<BufferId, UnitId> unit_of;
  for (std::size_t i = 0; i < builder.schedule.units.size(); ++i)
    if (builder.schedule.units[i].weights_sharded)
      unit_of[builder.unit_buffers[i].full] = UnitId{static_cast<std::uint32_t>(i)};
  std::vector<Touch> touches;
  for (std::size_t i = 0; i < ops.size(); ++i)
    plan::for_each_use(builder.schedule, ops[i], [&](BufferId id, plan::Access) {
      const auto found = unit_of.find(id);
      if (found == unit_of.end()) return;
      if (!touches.empty() && touches.back().position == i && touches.back().unit == found->second)
        return;
      touches.push_back({i, found->second});
    });
  return touches;
}

std::vector<Region> regions_of(const Builder& builder, const std::vector<Touch>& touches) {
  const spec::ZeroConfig& bounds = builder.request.bounds;
  // Planner's choice: keep only what is used again before anything else is gathered.
  const std::int64_t reuse = bounds.max_reuse_distance_elements.value_or(0);
  std::vector<Region> regions;
  std::unordered_map<UnitId, std::size_t> open;            // unit -> region
  std::unordered_map<UnitId, std::int64_t> gathered_then;  // elements gathered at its last use
  std::int64_t gathered = 0;                               // elements of regions begun so far
  UnitId previous{0xffffffff};
  for (const Touch& touch : touches) {
    const std::int64_t elements = builder.schedule.unit(touch.unit).element_count;
    const auto found = open.find(touch.unit);
    const bool adjacent = previous == touch.unit;
    bool keep = false;
    if (found != open.end()) {
      const std::int64_t distance = gathered - gathered_then[touch.unit];
      keep = adjacent || (distance <= reuse && (!bounds.max_live_elements ||
                                                elements + distance <= *bounds.max_live_elements));
    }
    if (!keep) {
      open[touch.unit] = regions.size();
      regions.push_back({.unit = touch.unit, .first = touch.position, .elements = elements});
      gathered += elements;
    }
    Region& region = regions[open[touch.unit]];
    region.last = touch.position;
    region.uses.push_back(touch.position);
    gathered_then[touch.unit] = gathered;
    previous = touch.unit;
  }
  return regions;
}

/// For each region the region at whose first use its gather is issued (itself: not ahead).
std::vector<std::size_t> issue_points(const spec::ZeroConfig& bounds,
                                      const std::vector<Region>& regions) {
  std::vector<std::size_t> issue(regions.size());
  for (std::size_t r = 0; r < regions.size(); ++r) {
    issue[r] = r;
    std::int64_t ahead = 0;
    for (std::size_t j = r; j-- > 0;) {
      ahead += regions[j + 1].elements;
      // Planner's choice is one gather ahead: a second one costs a unit and hides nothing once a unit
      // computes longer than it gathers.
      if (bounds.prefetch_bucket_elements ? ahead > *bounds.prefetch_bucket_elements : r - j > 1)
        break;
      if (bounds.max_live_elements) {
        std::int64_t live = ahead;
        for (std::size_t i = 0; i <= j; ++i)
          if (regions[i].last >= regions[j].first) live += regions[i].elements;
        if (live > *bounds.max_live_elements) break;
      }
      issue[r] = j;
    }
    // Gathers stay in order of use, so that every rank meets them in one order.
    if (r > 0) issue[r] = std::max(issue[r], issue[r - 1]);
  }
  return issue;
}

}  // namespace

void gather_weights(Builder& builder, std::vector<Op>& ops) {
  const std::vector<Region> regions = regions_of(builder, touches_of_gathered_units(builder, ops));
  if (regions.empty()) return;
  const std::vector<std::size_t> issue = issue_points(builder.request.bounds, regions);

  std::vector<std::pair<std::size_t, Op>> gathers;  // position it is written before, operation
  std::unordered_map<UnitId, int> region_count;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const Region& region = regions[r];
    const plan::Unit& unit = builder.schedule.unit(region.unit);
    const BufferId original = builder.unit_buffers[index(region.unit)].full;
    BufferId full = original;
    const int number = ++region_count[region.unit];
    if (number > 1) {
      plan::Buffer buffer = builder.schedule.buffer(original);
      buffer.name += fmt::format(".{}", number);
      full = builder.add_buffer(std::move(buffer));
      for (const std::size_t use : region.uses)
        for (plan::Operand& operand : std::get<plan::Compute>(ops[use].body).operands)
          if (operand.buffer == original) operand.buffer = full;
    }
    Op gather;
    gather.body = plan::Gather{
        .unit = region.unit, .shard = unit.weights, .full = full, .type = builder.type()};
    gather.label = fmt::format("gather {}", unit.name);
    // The first gather need not wait for anything of this segment.
    gathers.emplace_back(issue[r] == 0 ? 0 : regions[issue[r]].first, std::move(gather));
  }

  std::vector<Op> merged;
  merged.reserve(ops.size() + gathers.size());
  auto next = gathers.begin();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (; next != gathers.end() && next->first <= i; ++next)
      merged.push_back(std::move(next->second));
    merged.push_back(std::move(ops[i]));
  }
  ops = std::move(merged);
}

}  // namespace underkeel::planner
