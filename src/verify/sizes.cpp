#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/uses.h"
#include "verify/structure.h"

namespace underkeel::verify {

namespace {

using plan::BufferId;
using plan::OpIndex;

/// Home of a unit's part.
BufferId home_of(const plan::Unit& unit, plan::StatePart part) {
  switch (part) {
    case plan::StatePart::weights:
      return unit.weights;
    case plan::StatePart::master:
      return unit.master;
    case plan::StatePart::moment1:
      return unit.moment1;
    case plan::StatePart::moment2:
      return unit.moment2;
  }
  return plan::no_buffer;
}

/// What a unit keeps in a buffer.
enum class Home : std::uint8_t { none, weights, gradient, state };

std::vector<Home> homes_of(const plan::Schedule& schedule) {
  std::vector<Home> homes(schedule.buffers.size(), Home::none);
  for (const plan::Unit& unit : schedule.units) {
    for (const BufferId id : {unit.master, unit.moment1, unit.moment2})
      if (id != plan::no_buffer) homes[index(id)] = Home::state;
    if (unit.gradient != plan::no_buffer) homes[index(unit.gradient)] = Home::gradient;
    if (unit.weights != plan::no_buffer) homes[index(unit.weights)] = Home::weights;
  }
  return homes;
}

/// Checks the operations of one segment.
struct Sizes {
  const plan::Schedule& schedule;
  const plan::Segment& segment;
  const std::optional<std::int64_t> world_size;
  const std::vector<Home>& homes;
  Report& report;
  OpIndex at = no_op;

  void holds(BufferId id, std::int64_t needed_bytes) const {
    const plan::Buffer& buffer = schedule.buffer(id);
    if (buffer.size_bytes < needed_bytes)
      report.add(at, id,
                 fmt::format("holds {} bytes, this needs {}", format_count(buffer.size_bytes),
                             format_count(needed_bytes)));
  }
  void has_type(BufferId id, DType type) const {
    const plan::Buffer& buffer = schedule.buffer(id);
    if (buffer.type != type)
      report.add(at, id, fmt::format("holds {}, used as {}", name_of(buffer.type), name_of(type)));
  }
  void is_home(BufferId id, BufferId home, const plan::Unit& unit, std::string_view what) const {
    if (id != home)
      report.add(at, id, fmt::format("is not the home of the {} of {}", what, unit.name));
  }

  void ranks(const plan::Op& op) const {
    if (is_collective(op) && !op.on.empty())
      report.add(at, "a collective that not every rank runs");
    if (!world_size) return;
    for (const int rank : op.on)
      if (rank < 0 || rank >= *world_size)
        report.add(at, fmt::format("runs on rank {} of {}", rank, *world_size));
  }

  void operand(const plan::Operand& operand) const {
    if (operand.buffer == plan::no_buffer) return;
    const plan::Rows& rows = operand.rows;
    if (rows.begin < 0 || rows.count < 0 || rows.extra < 0 || operand.columns < 0 ||
        (rows.count > 1 && operand.row_stride < operand.columns)) {
      report.add(at, operand.buffer, "an operand has a negative size, or rows that overlap");
      return;
    }
    if (rows.of_batch && rows.begin + rows.count > segment.max_rows)
      report.add(at, operand.buffer,
                 fmt::format("rows up to {} of a micro-batch of at most {}",
                             rows.begin + rows.count, segment.max_rows));
    const plan::Buffer& buffer = schedule.buffer(operand.buffer);
    // Scratch is bytes: its users agree on what they put there.
    if (buffer.kind != plan::BufferKind::workspace) has_type(operand.buffer, operand.type);
    const std::int64_t row_count = rows.count + rows.extra;
    if (row_count == 0 || operand.columns == 0) return;
    const std::int64_t begin_bytes =
        operand.offset_bytes + bytes_of(operand.type, rows.begin * operand.row_stride);
    const std::int64_t end_bytes =
        begin_bytes +
        bytes_of(operand.type, (row_count - 1) * operand.row_stride + operand.columns);
    if (begin_bytes < 0 || end_bytes > buffer.size_bytes)
      report.add(at, operand.buffer,
                 fmt::format("an operand spans bytes {} to {} of {}", format_count(begin_bytes),
                             format_count(end_bytes), format_count(buffer.size_bytes)));
  }

  /// State belongs to the operations made for it: a computation reads weights, writes gradients and touches
  /// no other.
  void home(const plan::Operand& operand) const {
    const Home home = homes[index(operand.buffer)];
    if (home == Home::state || (home == Home::weights && operand.access != plan::Access::read) ||
        (home == Home::gradient && operand.access == plan::Access::read))
      report.add(at, operand.buffer, "is a home that a computation may not touch so");
  }

  /// A collective over all elements of a unit.
  void whole_unit(plan::UnitId unit_id, BufferId full, DType type) const {
    has_type(full, type);
    holds(full, bytes_of(type, schedule.unit(unit_id).element_count));
  }

  void reduction(plan::UnitId unit, BufferId full, BufferId staging, DType type) const {
    whole_unit(unit, full, type);
    if (staging == full) report.add(at, full, "is its own staging buffer");
  }

  void piece(const plan::StatePiece& state_piece, BufferId staging) const {
    const plan::Unit& unit = schedule.unit(state_piece.unit);
    const BufferId home = home_of(unit, state_piece.part);
    if (home == plan::no_buffer) {
      report.add(at, fmt::format("{} has no {}", unit.name, name_of(state_piece.part)));
      return;
    }
    if (state_piece.begin < 0 || state_piece.begin > state_piece.end ||
        state_piece.end > unit.shard_elements)
      report.add(at,
                 fmt::format("elements {} to {} of a shard of {} elements of {}", state_piece.begin,
                             state_piece.end, unit.shard_elements, unit.name));
    holds(staging, bytes_of(schedule.buffer(home).type, state_piece.end - state_piece.begin));
  }

  void home_piece(const plan::StatePiece& state_piece, BufferId staging, BufferId state) const {
    piece(state_piece, staging);
    const plan::Unit& unit = schedule.unit(state_piece.unit);
    is_home(state, home_of(unit, state_piece.part), unit, name_of(state_piece.part));
  }

  void op(const plan::Op& op) const {
    using namespace plan;
    constexpr std::int64_t value_bytes = 8;  // of an f64
    ranks(op);
    std::visit(
        plan::detail::Overload{
            [&](const Acquire& body) {
              if (schedule.buffer(body.buffer).persistent)
                report.add(at, body.buffer, "is persistent and cannot be acquired");
            },
            [&](const Release& body) {
              if (schedule.buffer(body.buffer).persistent)
                report.add(at, body.buffer, "is persistent and cannot be released");
            },
            [&](const Gather& body) {
              whole_unit(body.unit, body.full, body.type);
              has_type(body.shard, body.type);
              if (body.shard != body.full)
                holds(body.shard, bytes_of(body.type, schedule.unit(body.unit).shard_elements));
            },
            [&](const ReduceScatter& body) {
              reduction(body.unit, body.full, body.staging, body.type);
              const Unit& unit = schedule.unit(body.unit);
              if (body.into != no_buffer) is_home(body.into, unit.gradient, unit, "gradient");
            },
            [&](const AllReduce& body) {
              reduction(body.unit, body.full, body.staging, body.type);
            },
            [&](const GatherValues& body) {
              has_type(body.own, DType::f64);
              has_type(body.all, DType::f64);
              holds(body.own, body.count * value_bytes);
              holds(body.all, world_size.value_or(1) * body.count * value_bytes);
            },
            [&](const Compute& body) {
              bool changes = false;
              for (const Operand& one : body.operands) {
                operand(one);
                if (one.buffer != no_buffer && body.kernel != Kernel::fill) home(one);
                changes = changes || one.access == Access::read_write;
              }
              if ((body.accumulate || body.accumulate_weight) && !changes)
                report.add(at, "adds to an output, but no operand is both read and written");
            },
            [&](const Accumulate& body) {
              const Unit& unit = schedule.unit(body.unit);
              holds(body.from, bytes_of(schedule.buffer(body.from).type, unit.element_count));
              is_home(body.into, unit.gradient, unit, "gradient");
            },
            [&](const SumSquares& body) {
              const Unit& unit = schedule.unit(body.unit);
              is_home(body.gradient, unit.gradient, unit, "gradient");
              has_type(body.sums, DType::f64);
              if (body.slot < 0) report.add(at, body.sums, "a negative slot");
              holds(body.sums, (body.slot + 1) * value_bytes);
            },
            [&](const Update& body) {
              const Unit& unit = schedule.unit(body.unit);
              is_home(body.gradient, unit.gradient, unit, "gradient");
            },
            // The caller's size is known only when it runs; a twin holds what it is the twin of.
            [&](const Feed& body) {
              if (body.pinned != no_buffer)
                holds(body.pinned, schedule.buffer(body.into).size_bytes);
            },
            [&](const Publish& body) {
              if (body.pinned != no_buffer)
                holds(body.pinned, schedule.buffer(body.from).size_bytes);
            },
            [&](const CopyOut& body) { home_piece(body.piece, body.staging, body.state); },
            [&](const Save& body) { piece(body.piece, body.staging); },
            [&](const Load& body) { piece(body.piece, body.staging); },
            [&](const CopyIn& body) { home_piece(body.piece, body.staging, body.state); },
        },
        op.body);
  }
};

void check_homes(const plan::Schedule& schedule, Report& report) {
  for (const plan::Unit& unit : schedule.units) {
    const auto home = [&](BufferId id, bool sharded) {
      if (id == plan::no_buffer) return;
      const plan::Buffer& buffer = schedule.buffer(id);
      const std::int64_t elements = sharded ? unit.shard_elements : unit.element_count;
      if (!buffer.persistent) report.add(no_op, id, "is a home and not persistent");
      if (buffer.size_bytes < bytes_of(buffer.type, elements))
        report.add(no_op, id,
                   fmt::format("holds {} bytes, {} elements of {} need {}",
                               format_count(buffer.size_bytes), format_count(elements), unit.name,
                               format_count(bytes_of(buffer.type, elements))));
    };
    home(unit.weights, unit.weights_sharded);
    home(unit.master, unit.optimizer_sharded);
    home(unit.moment1, unit.optimizer_sharded);
    home(unit.moment2, unit.optimizer_sharded);
    home(unit.gradient, unit.gradient_sharded);
  }
}

void check_segment(const plan::Schedule& schedule, const plan::Segment& segment,
                   std::optional<std::int64_t> world_size, const std::vector<Home>& homes,
                   Report& report) {
  report.start(segment.kind);
  Sizes sizes{schedule, segment, world_size, homes, report};
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    sizes.at = OpIndex{static_cast<std::uint32_t>(i)};
    sizes.op(segment.ops[i]);
  }
}

}  // namespace

bool is_collective(const plan::Op& op) {
  return std::holds_alternative<plan::Gather>(op.body) ||
         std::holds_alternative<plan::ReduceScatter>(op.body) ||
         std::holds_alternative<plan::AllReduce>(op.body) ||
         std::holds_alternative<plan::GatherValues>(op.body);
}

void check_sizes(const plan::Schedule& schedule, std::optional<std::int64_t> world_size,
                 Report& report) {
  const auto& classes = schedule.shape_classes;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] <= (i == 0 ? 0 : classes[i - 1]))
      report.add(no_op, fmt::format("shape class {} has {} rows, no more than the one before", i,
                                    classes[i]));
  check_homes(schedule, report);
  const std::vector<Home> homes = homes_of(schedule);
  for (const plan::Segment& segment : schedule.segments)
    check_segment(schedule, segment, world_size, homes, report);
}

void check_sizes(const plan::Schedule& schedule, const plan::Segment& segment, Report& report) {
  check_segment(schedule, segment, std::nullopt, homes_of(schedule), report);
}

}  // namespace underkeel::verify
