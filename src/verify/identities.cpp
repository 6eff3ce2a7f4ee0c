#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plan/uses.h"
#include "verify/structure.h"

namespace underkeel::verify {

namespace {

using plan::BufferId;
using plan::OpIndex;

/// Checks the identities of one schedule; `ok` answers whether an identity may be used as an index.
struct Identities {
  const plan::Schedule& schedule;
  Report& report;

  bool is_buffer(BufferId id) const { return index(id) < schedule.buffers.size(); }
  bool is_unit(plan::UnitId id) const { return index(id) < schedule.units.size(); }

  void buffer(OpIndex at, BufferId id, const char* role) const {
    if (!is_buffer(id)) report.add(at, fmt::format("{} is not a buffer: {}", role, index(id)));
  }
  void buffer_or_none(OpIndex at, BufferId id, const char* role) const {
    if (id != plan::no_buffer) buffer(at, id, role);
  }
  void unit(OpIndex at, plan::UnitId id) const {
    if (!is_unit(id)) report.add(at, fmt::format("there is no unit {}", index(id)));
  }

  void body(OpIndex at, const plan::OpBody& op_body) const {
    using namespace plan;
    std::visit(plan::detail::Overload{
                   [&](const Acquire& op) { buffer(at, op.buffer, "what is acquired"); },
                   [&](const Release& op) { buffer(at, op.buffer, "what is released"); },
                   [&](const Gather& op) {
                     unit(at, op.unit);
                     buffer(at, op.shard, "the shard");
                     buffer(at, op.full, "the full tensor");
                   },
                   [&](const ReduceScatter& op) {
                     unit(at, op.unit);
                     buffer(at, op.full, "the full tensor");
                     buffer_or_none(at, op.staging, "the staging buffer");
                     buffer_or_none(at, op.into, "the gradient's home");
                   },
                   [&](const AllReduce& op) {
                     unit(at, op.unit);
                     buffer(at, op.full, "the full tensor");
                     buffer_or_none(at, op.staging, "the staging buffer");
                   },
                   [&](const GatherValues& op) {
                     buffer(at, op.own, "the rank's own values");
                     buffer(at, op.all, "the values of all ranks");
                   },
                   [&](const Compute& op) {
                     for (const Operand& operand : op.operands)
                       buffer_or_none(at, operand.buffer, "an operand");
                   },
                   [&](const Accumulate& op) {
                     unit(at, op.unit);
                     buffer(at, op.from, "the micro-step's gradient");
                     buffer(at, op.into, "the gradient's home");
                   },
                   [&](const SumSquares& op) {
                     unit(at, op.unit);
                     buffer(at, op.gradient, "the gradient");
                     buffer(at, op.sums, "the sums");
                     buffer_or_none(at, op.scratch, "scratch");
                   },
                   [&](const Update& op) {
                     unit(at, op.unit);
                     buffer(at, op.gradient, "the gradient");
                     buffer(at, op.step_values, "the step's values");
                     buffer_or_none(at, op.clip, "the clip factor");
                   },
                   [&](const Feed& op) {
                     buffer(at, op.into, "where the input goes");
                     buffer_or_none(at, op.pinned, "where the copy starts");
                   },
                   [&](const Publish& op) {
                     buffer(at, op.from, "what is published");
                     buffer_or_none(at, op.pinned, "where the copy ends");
                   },
                   [&](const CopyOut& op) {
                     unit(at, op.piece.unit);
                     buffer(at, op.state, "the state");
                     buffer(at, op.staging, "the staging buffer");
                   },
                   [&](const Save& op) {
                     unit(at, op.piece.unit);
                     buffer(at, op.staging, "the staging buffer");
                   },
                   [&](const Load& op) {
                     unit(at, op.piece.unit);
                     buffer(at, op.staging, "the staging buffer");
                   },
                   [&](const CopyIn& op) {
                     unit(at, op.piece.unit);
                     buffer(at, op.staging, "the staging buffer");
                     buffer(at, op.state, "the state");
                   },
               },
               op_body);
  }

  void edges(const plan::Segment& segment, std::size_t i) const {
    const plan::Op& op = segment.ops[i];
    const auto at = OpIndex{static_cast<std::uint32_t>(i)};
    for (const OpIndex before : op.after) {
      if (index(before) >= i) {
        report.add(at, fmt::format("waits for op {}, which is not earlier", index(before)));
      } else if (segment.ops[index(before)].lane == op.lane) {
        report.add(at, fmt::format("waits for op {} of its own lane", index(before)));
      }
    }
    for (const plan::EntryId entry : op.after_entry)
      if (index(entry) >= schedule.entries.size())
        report.add(at, fmt::format("waits for entry {}, which there is not", index(entry)));
    if (op.entry != plan::no_entry && index(op.entry) >= schedule.entries.size())
      report.add(at, fmt::format("belongs to entry {}, which there is not", index(op.entry)));
  }

  void segment(const plan::Segment& segment) const {
    report.start(segment.kind);
    constexpr std::size_t lane_limit = 256;  // a LaneId is a byte
    std::array<bool, lane_limit> in_tail{};
    for (std::size_t i = 0; i < segment.ops.size(); ++i) {
      const plan::Op& op = segment.ops[i];
      const auto at = OpIndex{static_cast<std::uint32_t>(i)};
      if (index(op.lane) >= schedule.lanes.size())
        report.add(at, fmt::format("there is no lane {}", index(op.lane)));
      buffer_or_none(at, op.when, "the flag");
      body(at, op.body);
      edges(segment, i);
      bool& tail = in_tail[index(op.lane)];
      if (tail && op.entry == plan::no_entry)
        report.add(at, "follows an entry on its lane without belonging to one");
      tail = tail || op.entry != plan::no_entry;
    }
  }

  void units() const {
    for (const plan::Unit& unit : schedule.units)
      for (const BufferId home :
           {unit.weights, unit.master, unit.moment1, unit.moment2, unit.gradient})
        if (home != plan::no_buffer && !is_buffer(home))
          report.add(no_op, fmt::format("{}: home {} is not a buffer", unit.name, index(home)));
  }

  void program() const {
    for (int i = 0; i < plan::segment_kind_count; ++i) {
      const auto kind = static_cast<plan::SegmentKind>(i);
      const auto count =
          std::count_if(schedule.segments.begin(), schedule.segments.end(),
                        [&](const plan::Segment& segment) { return segment.is(kind); });
      if (count > 1)
        report.add(no_op, fmt::format("there are {} segments {}", count, name_of(kind)));
    }
    for (const plan::Program::Step& step : schedule.program.steps)
      for (const plan::SegmentKind kind : {step.from, step.to})
        if (schedule.find(kind) == nullptr)
          report.add(no_op, fmt::format("the program goes from {} to {}, but there is no {}",
                                        name_of(step.from), name_of(step.to), name_of(kind)));
  }
};

}  // namespace

void check_identities(const plan::Schedule& schedule, const plan::Segment& segment,
                      Report& report) {
  Identities{schedule, report}.segment(segment);
}

void check_identities(const plan::Schedule& schedule, Report& report) {
  const Identities identities{schedule, report};
  identities.units();
  identities.program();
  for (const plan::Segment& segment : schedule.segments) identities.segment(segment);
}

}  // namespace underkeel::verify
