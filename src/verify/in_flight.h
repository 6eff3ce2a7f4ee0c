#pragma once
// What may still be running when a segment starts, and what each operation knows to be finished.

#include <cstdint>
#include <span>
#include <vector>

#include "plan/schedule.h"
#include "plan/uses.h"
#include "verify/structure.h"

namespace underkeel::verify {

/// A set of parts, one bit each.
using PartWords = std::vector<std::uint64_t>;

/// The collectives' order is checked as if each of them wrote one more buffer, the last.
inline plan::BufferId collective_order(const plan::Schedule& schedule) {
  return plan::BufferId{static_cast<std::uint32_t>(schedule.buffers.size())};
}

/// As plan::for_each_use, and the order of collectives.
template <class Visit>
void for_each_conflict_use(const plan::Schedule& schedule, const plan::Op& op, Visit&& visit) {
  plan::for_each_use(schedule, op, visit);
  if (is_collective(op)) visit(collective_order(schedule), plan::Access::write);
}

/// Work in flight is known by parts: what one entry does on one lane. Lanes stay in order across
/// segments, so an operation knows the parts of its own lane; a wait for an entry gives all of that
/// entry's parts; both pass along lanes and edges.
struct InFlight {
  struct Part {
    plan::EntryId entry;
    plan::LaneId lane;
  };
  std::vector<Part> parts;
  std::size_t word_count = 0;       // of a set of parts; 0 when there are no entries
  std::vector<PartWords> of_lane;   // by lane
  std::vector<PartWords> of_entry;  // by entry
  std::vector<std::int32_t> slot;   // by buffer (and the collectives' order): -1 or an index
  std::vector<PartWords> readers;   // by slot
  std::vector<PartWords> writers;   // by slot
  std::vector<PartWords> at_start;  // by segment: parts that may be running when it starts
};

/// Parts of all entries, and for every segment the union over its legal predecessors of what they
/// begin and of what was running before them and they did not wait for: a fixpoint over the program,
/// loops included.
InFlight in_flight_of(const plan::Schedule& schedule);

/// Parts known to be finished before each operation of a segment. Few operations learn anything new,
/// so sets are kept once and shared by all operations that know the same.
class Knowledge {
 public:
  Knowledge(const InFlight& in_flight, const plan::Segment& segment, std::size_t lane_count);

  /// Goes on to operation `i`; call for each, in order.
  void advance(std::size_t i);
  /// What is known before the current operation.
  std::span<const std::uint64_t> known() const { return set_of(current_); }
  /// From the current operation on, the entry is finished.
  void learn(plan::EntryId entry);

 private:
  using SetIndex = std::uint32_t;

  std::span<const std::uint64_t> set_of(SetIndex set) const {
    return {sets_.data() + set * in_flight_.word_count, in_flight_.word_count};
  }
  void unite(std::span<const std::uint64_t> other);

  const InFlight& in_flight_;
  const plan::Segment& segment_;
  std::vector<std::uint64_t> sets_;
  std::vector<SetIndex> of_op_;
  std::vector<SetIndex> of_lane_;  // after its latest operation
  SetIndex current_ = 0;
  std::size_t op_ = 0;
};

}  // namespace underkeel::verify
