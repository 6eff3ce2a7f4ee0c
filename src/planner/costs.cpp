// Fills in what every operation costs at the largest micro-batch: floating-point operations, bytes
// moved in its own space, bytes from other ranks, bytes from or to disk.

#include "kernels/facts/facts.h"
#include "plan/uses.h"
#include "planner/builder.h"

namespace underkeel::planner {

namespace {

std::int64_t rows_of(const plan::Operand& operand) {
  return operand.rows.last_only ? 1 : operand.rows.count;
}

/// Of attention over `rows` in sequences of at most `longest`: as few as there can be.
template <class F>
double flops_of_sequences(std::int64_t rows, std::int64_t longest, F&& flops) {
  if (longest <= 0 || longest >= rows) return static_cast<double>(flops(rows));
  return static_cast<double>(rows / longest * flops(longest) + flops(rows % longest));
}

double flops_of(const plan::Compute& body, std::int64_t longest_sequence) {
  const auto& operands = body.operands;
  switch (body.kernel) {
    case plan::Kernel::matmul: {
      const std::int64_t m = body.transpose_a ? operands[0].columns : rows_of(operands[0]);
      const std::int64_t k = body.transpose_a ? rows_of(operands[0]) : operands[0].columns;
      const std::int64_t n = body.transpose_b ? rows_of(operands[1]) : operands[1].columns;
      return static_cast<double>(kernels::matmul_flops(m, n, k));
    }
    case plan::Kernel::attention_forward:
      return flops_of_sequences(rows_of(operands[0]), longest_sequence, [&](std::int64_t rows) {
        return kernels::attention_forward_flops(rows, body.query_heads, body.head_width,
                                                body.window);
      });
    case plan::Kernel::attention_cached:
      // Every row may see all that the cache has room for.
      return 4.0 * static_cast<double>(rows_of(operands[0]) * rows_of(operands[4]) *
                                       body.query_heads * body.head_width);
    case plan::Kernel::attention_backward:
      return flops_of_sequences(rows_of(operands[0]), longest_sequence, [&](std::int64_t rows) {
        return kernels::attention_backward_flops(rows, body.query_heads, body.head_width,
                                                 body.window);
      });
    default:
      return 0;  // bound by memory
  }
}

/// Bytes that a kernel may use and mostly does not.
bool is_room(const plan::Compute& body, const plan::Operand& operand) {
  constexpr std::size_t workspace_operand = 4;
  return body.kernel == plan::Kernel::matmul && body.operands.size() > workspace_operand &&
         &operand == &body.operands[workspace_operand];
}

double bytes_of_operands(const plan::Compute& body) {
  double bytes = 0;
  for (const plan::Operand& operand : body.operands) {
    if (operand.buffer == plan::no_buffer) continue;
    if (is_room(body, operand)) continue;
    const double size =
        static_cast<double>(bytes_of(operand.type, rows_of(operand) * operand.columns));
    bytes += operand.access == plan::Access::read_write ? 2 * size : size;
  }
  return bytes;
}

}  // namespace

void estimate_costs(plan::Schedule& schedule, const Request& request) {
  const std::int64_t world_size = request.world_size;
  const double others = static_cast<double>(world_size - 1) / static_cast<double>(world_size);
  const auto unit_bytes = [&](UnitId id, DType type) {
    return static_cast<double>(bytes_of(type, schedule.unit(id).element_count));
  };
  const auto piece_bytes = [&](const plan::StatePiece& piece, DType type) {
    return static_cast<double>(bytes_of(type, piece.end - piece.begin));
  };
  for (plan::Segment& segment : schedule.segments)
    for (Op& op : segment.ops)
      std::visit(
          plan::detail::Overload{
              [&](const plan::Gather& body) {
                op.cost.link_bytes = unit_bytes(body.unit, body.type) * others;
              },
              [&](const plan::ReduceScatter& body) {
                op.cost.link_bytes = unit_bytes(body.unit, body.type) * others;
                op.cost.memory_bytes = unit_bytes(body.unit, body.type);
                if (body.into != plan::no_buffer)
                  op.cost.memory_bytes +=
                      2 * (1 - others) * unit_bytes(body.unit, schedule.buffer(body.into).type);
              },
              [&](const plan::AllReduce& body) {
                op.cost.link_bytes = 2 * unit_bytes(body.unit, body.type) * others;
                op.cost.memory_bytes = unit_bytes(body.unit, body.type);
              },
              [&](const plan::GatherValues& body) {
                op.cost.link_bytes = static_cast<double>(8 * body.count * (world_size - 1));
              },
              [&](const plan::Compute& body) {
                op.cost.flops = flops_of(body, request.max_sequence_rows);
                op.cost.memory_bytes = bytes_of_operands(body);
                op.cost.per_row = segment.max_rows > 0;
              },
              [&](const plan::Accumulate& body) {
                const double share = body.whole ? 1.0 : 1.0 / static_cast<double>(world_size);
                op.cost.memory_bytes =
                    share * (unit_bytes(body.unit, schedule.buffer(body.from).type) +
                             2 * unit_bytes(body.unit, schedule.buffer(body.into).type));
              },
              [&](const plan::SumSquares& body) {
                op.cost.memory_bytes = unit_bytes(body.unit, schedule.buffer(body.gradient).type) /
                                       static_cast<double>(world_size);
              },
              [&](const plan::Update& body) {
                const plan::Unit& unit = schedule.unit(body.unit);
                const double elements = static_cast<double>(
                    unit.optimizer_sharded ? unit.shard_elements : unit.element_count);
                op.cost.memory_bytes = elements * (body.rounds_at_random ? 3 * 4 + 2 : 3 * 8 + 4);
              },
              [&](const plan::CopyOut& body) {
                op.cost.memory_bytes =
                    2 * piece_bytes(body.piece, schedule.buffer(body.state).type);
              },
              [&](const plan::CopyIn& body) {
                op.cost.memory_bytes = 2 * piece_bytes(body.piece, DType::f32);
              },
              [&](const plan::Save& body) {
                op.cost.disk_bytes = piece_bytes(body.piece, DType::f32);
              },
              [&](const plan::Load& body) {
                op.cost.disk_bytes = piece_bytes(body.piece, DType::f32);
              },
              [](const auto&) {}},
          op.body);
}

}  // namespace underkeel::planner
