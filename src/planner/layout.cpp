// Assigns every buffer an offset inside the arena of its memory space.
// Persistent buffers lie below, in the order they were made; transient ones above them, laid out for each
// segment on its own over the same bytes. Best fit in order of time, then, where that wastes more than
// 2%, greedy by size; the smaller of the two is kept. In the guard layout, which is for finding wrong accesses, every
// buffer has bytes of its own.
// Not here: choosing the space (units, state), proving the result (verify/).

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/units.h"
#include "plan/lifetimes.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

/// A transient buffer of one space with the half-open span of positions it lives in.
struct Tenant {
  BufferId buffer{};
  std::int64_t size_bytes = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t offset_bytes = 0;
};

std::int64_t top_of(const std::vector<Tenant>& tenants) {
  std::int64_t top = 0;
  for (const Tenant& tenant : tenants) top = std::max(top, tenant.offset_bytes + tenant.size_bytes);
  return top;
}

std::int64_t peak_of(const std::vector<Tenant>& tenants) {
  std::vector<std::pair<std::size_t, std::int64_t>> events;
  for (const Tenant& tenant : tenants) {
    events.emplace_back(tenant.begin, tenant.size_bytes);
    events.emplace_back(tenant.end, -tenant.size_bytes);
  }
  std::sort(events.begin(), events.end());  // at one position a release stands before an acquire
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const auto& [position, change] : events) peak = std::max(peak, live += change);
  return peak;
}

// Walks through time; each newcomer takes the smallest hole that holds it, else the top.
void best_fit(std::vector<Tenant>& tenants) {
  std::vector<std::size_t> order(tenants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tenants[a].begin < tenants[b].begin; });
  std::multimap<std::size_t, std::size_t> leaving;  // end -> tenant
  std::map<std::int64_t, std::int64_t> holes;       // offset -> size; the space above `top` is free
  std::int64_t top = 0;
  const auto free_bytes = [&](std::int64_t offset, std::int64_t size) {
    auto next = holes.lower_bound(offset);
    if (next != holes.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        holes.erase(before);
      }
    }
    if (next != holes.end() && offset + size == next->first) {
      size += next->second;
      holes.erase(next);
    }
    if (offset + size == top) {
      top = offset;
    } else {
      holes[offset] = size;
    }
  };
  for (const std::size_t i : order) {
    Tenant& tenant = tenants[i];
    while (!leaving.empty() && leaving.begin()->first < tenant.begin) {
      const Tenant& gone = tenants[leaving.begin()->second];
      free_bytes(gone.offset_bytes, gone.size_bytes);
      leaving.erase(leaving.begin());
    }
    auto best = holes.end();
    for (auto hole = holes.begin(); hole != holes.end(); ++hole)
      if (hole->second >= tenant.size_bytes && (best == holes.end() || hole->second < best->second))
        best = hole;
    if (best == holes.end()) {
      tenant.offset_bytes = top;
      top += tenant.size_bytes;
    } else {
      const auto [offset, size] = *best;
      tenant.offset_bytes = offset;
      holes.erase(best);
      if (size > tenant.size_bytes) holes[offset + tenant.size_bytes] = size - tenant.size_bytes;
    }
    leaving.emplace(tenant.end, i);
  }
}

// Largest first, each at the lowest offset that no overlapping life occupies.
void greedy_by_size(std::vector<Tenant>& tenants) {
  std::vector<std::size_t> order(tenants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tenants[a].size_bytes > tenants[b].size_bytes;
  });
  std::vector<Tenant> placed;  // by offset; copies, so that the scan reads memory in order
  placed.reserve(tenants.size());
  for (const std::size_t i : order) {
    Tenant& tenant = tenants[i];
    std::int64_t offset = 0;
    for (const Tenant& other : placed) {
      if (other.end <= tenant.begin || tenant.end <= other.begin) continue;
      if (offset + tenant.size_bytes <= other.offset_bytes) break;
      offset = std::max(offset, other.offset_bytes + other.size_bytes);
    }
    tenant.offset_bytes = offset;
    placed.insert(std::lower_bound(
                      placed.begin(), placed.end(), offset,
                      [](const Tenant& a, std::int64_t value) { return a.offset_bytes < value; }),
                  tenant);
  }
}

void place(std::vector<Tenant>& tenants) {
  best_fit(tenants);
  const std::int64_t first_top = top_of(tenants);
  // The second method is quadratic; above this many buffers the first one's result stands.
  constexpr std::size_t most_for_greedy = 6000;
  if (first_top * 50 <= peak_of(tenants) * 51 || tenants.size() > most_for_greedy) return;
  std::vector<Tenant> again = tenants;
  greedy_by_size(again);
  if (top_of(again) < first_top) tenants = std::move(again);
}

}  // namespace

plan::ArenaLayout lay_out_arenas(const plan::Schedule& schedule, std::int64_t alignment_bytes,
                                 std::int64_t room_behind_bytes) {
  plan::ArenaLayout layout;
  layout.alignment_bytes = alignment_bytes;
  layout.guard_bytes = room_behind_bytes;
  layout.offset_bytes.assign(schedule.buffers.size(), -1);
  if (room_behind_bytes > 0) {
    for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
      std::int64_t& end = layout.size_bytes[index(schedule.buffers[i].space)];
      layout.offset_bytes[i] = end;
      end += round_up(schedule.buffers[i].size_bytes + room_behind_bytes, alignment_bytes);
    }
    return layout;
  }
  std::array<std::int64_t, plan::memory_space_count> base{};
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const plan::Buffer& buffer = schedule.buffers[i];
    if (!buffer.persistent) continue;
    std::int64_t& end = base[index(buffer.space)];
    layout.offset_bytes[i] = end;
    end += round_up(buffer.size_bytes, alignment_bytes);
  }
  layout.size_bytes = base;
  for (const plan::Segment& segment : schedule.segments) {
    std::array<std::vector<Tenant>, plan::memory_space_count> tenants;
    for (const plan::Lifetime& life : plan::lifetimes_of(segment)) {
      const plan::Buffer& buffer = schedule.buffer(life.buffer);
      tenants[index(buffer.space)].push_back(
          {.buffer = life.buffer,
           .size_bytes = round_up(buffer.size_bytes, alignment_bytes),
           .begin = life.begin,
           .end = life.end});
    }
    for (std::size_t space = 0; space < tenants.size(); ++space) {
      place(tenants[space]);
      for (const Tenant& tenant : tenants[space]) {
        std::int64_t& offset = layout.offset_bytes[index(tenant.buffer)];
        const std::int64_t here = base[space] + tenant.offset_bytes;
        UK_CHECK(offset == -1 || offset == here, "a transient buffer belongs to one segment");
        offset = here;
        layout.size_bytes[space] = std::max(layout.size_bytes[space], here + tenant.size_bytes);
      }
    }
  }
  return layout;
}

}  // namespace underkeel::planner
