#include "verify/in_flight.h"

#include <algorithm>
#include <map>

namespace underkeel::verify {

namespace {

constexpr std::size_t word_bits = 64;

void insert(PartWords& set, std::size_t part) {
  set[part / word_bits] |= std::uint64_t{1} << (part % word_bits);
}

/// Everything but the sets at the segments' starts. Fills `begun` by segment.
InFlight parts_of(const plan::Schedule& schedule, std::vector<PartWords>& begun) {
  InFlight in_flight;
  if (schedule.entries.empty()) {
    in_flight.at_start.resize(schedule.segments.size());
    return in_flight;
  }
  std::map<std::pair<plan::EntryId, plan::LaneId>, std::size_t> found;
  for (const plan::Segment& segment : schedule.segments)
    for (const plan::Op& op : segment.ops)
      if (op.entry != plan::no_entry && found.try_emplace({op.entry, op.lane}, found.size()).second)
        in_flight.parts.push_back({op.entry, op.lane});
  in_flight.word_count = (in_flight.parts.size() + word_bits - 1) / word_bits;
  const PartWords empty(in_flight.word_count);
  begun.assign(schedule.segments.size(), empty);
  in_flight.at_start = begun;
  if (in_flight.word_count == 0) return in_flight;

  in_flight.of_lane.assign(schedule.lanes.size(), empty);
  in_flight.of_entry.assign(schedule.entries.size(), empty);
  for (std::size_t part = 0; part < in_flight.parts.size(); ++part) {
    insert(in_flight.of_lane[index(in_flight.parts[part].lane)], part);
    insert(in_flight.of_entry[index(in_flight.parts[part].entry)], part);
  }
  in_flight.slot.assign(schedule.buffers.size() + 1, -1);
  for (std::size_t s = 0; s < schedule.segments.size(); ++s)
    for (const plan::Op& op : schedule.segments[s].ops) {
      if (op.entry == plan::no_entry) continue;
      const std::size_t part = found.at({op.entry, op.lane});
      insert(begun[s], part);
      for_each_conflict_use(schedule, op, [&](plan::BufferId id, plan::Access access) {
        std::int32_t& slot = in_flight.slot[index(id)];
        if (slot < 0) {
          slot = static_cast<std::int32_t>(in_flight.readers.size());
          in_flight.readers.push_back(empty);
          in_flight.writers.push_back(empty);
        }
        if (plan::reads(access)) insert(in_flight.readers[static_cast<std::size_t>(slot)], part);
        if (plan::writes(access)) insert(in_flight.writers[static_cast<std::size_t>(slot)], part);
      });
    }
  return in_flight;
}

/// Parts that are finished once everything that the segment joins is.
PartWords known_at_end(const InFlight& in_flight, const plan::Segment& segment,
                       std::size_t lane_count) {
  PartWords known(in_flight.word_count);
  Knowledge knowledge(in_flight, segment, lane_count);
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    knowledge.advance(i);
    if (segment.ops[i].entry != plan::no_entry) continue;
    for (std::size_t word = 0; word < known.size(); ++word) known[word] |= knowledge.known()[word];
  }
  return known;
}

}  // namespace

InFlight in_flight_of(const plan::Schedule& schedule) {
  std::vector<PartWords> begun;
  InFlight in_flight = parts_of(schedule, begun);
  if (in_flight.word_count == 0) return in_flight;

  std::vector<PartWords> finished;
  for (const plan::Segment& segment : schedule.segments)
    finished.push_back(known_at_end(in_flight, segment, schedule.lanes.size()));
  const auto position = [&](plan::SegmentKind kind) {
    return static_cast<std::size_t>(schedule.find(kind) - schedule.segments.data());
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const plan::Program::Step& step : schedule.program.steps) {
      const std::size_t from = position(step.from);
      const std::size_t to = position(step.to);
      for (std::size_t word = 0; word < in_flight.word_count; ++word) {
        const std::uint64_t left =
            begun[from][word] | (in_flight.at_start[from][word] & ~finished[from][word]);
        const std::uint64_t united = in_flight.at_start[to][word] | left;
        changed = changed || united != in_flight.at_start[to][word];
        in_flight.at_start[to][word] = united;
      }
    }
  }
  return in_flight;
}

Knowledge::Knowledge(const InFlight& in_flight, const plan::Segment& segment,
                     std::size_t lane_count)
    : in_flight_(in_flight), segment_(segment) {
  if (in_flight.word_count == 0) return;
  of_op_.resize(segment.ops.size());
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    of_lane_.push_back(static_cast<SetIndex>(lane));
    sets_.insert(sets_.end(), in_flight.of_lane[lane].begin(), in_flight.of_lane[lane].end());
  }
}

void Knowledge::unite(std::span<const std::uint64_t> other) {
  const auto known = set_of(current_);
  const bool is_new = !std::equal(known.begin(), known.end(), other.begin(),
                                  [](std::uint64_t a, std::uint64_t b) { return (b & ~a) == 0; });
  if (!is_new) return;
  PartWords united(known.begin(), known.end());
  for (std::size_t word = 0; word < united.size(); ++word) united[word] |= other[word];
  current_ = static_cast<SetIndex>(sets_.size() / in_flight_.word_count);
  sets_.insert(sets_.end(), united.begin(), united.end());
}

void Knowledge::advance(std::size_t i) {
  if (in_flight_.word_count == 0) return;
  const plan::Op& op = segment_.ops[i];
  op_ = i;
  current_ = of_lane_[index(op.lane)];
  for (const plan::EntryId entry : op.after_entry) unite(in_flight_.of_entry[index(entry)]);
  for (const plan::OpIndex before : op.after)
    if (of_op_[index(before)] != current_) unite(set_of(of_op_[index(before)]));
  of_op_[i] = of_lane_[index(op.lane)] = current_;
}

void Knowledge::learn(plan::EntryId entry) {
  unite(in_flight_.of_entry[index(entry)]);
  of_op_[op_] = of_lane_[index(segment_.ops[op_].lane)] = current_;
}

}  // namespace underkeel::verify
