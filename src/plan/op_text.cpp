#include "plan/op_text.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/uses.h"

namespace underkeel::plan {

namespace {

void remove_first(std::string& text, std::string_view part) {
  if (const auto at = text.find(part); at != std::string::npos) text.erase(at, part.size());
}

/// "model.layers.3.self_attn.q_proj.weight" in unit "layers.3" is "q_proj".
std::string short_name(const Unit& unit, const UnitTensor& tensor) {
  std::string text = tensor.name;
  for (const std::string_view part : {"model.", "self_attn.", "mlp.", ".weight"})
    remove_first(text, part);
  if (text.starts_with(unit.name + ".")) text.erase(0, unit.name.size() + 1);
  return text;
}

/// "0:64", or "64" for everything from 0.
std::string range(std::int64_t begin, std::int64_t count, bool whole) {
  return whole ? fmt::format("{}", count) : fmt::format("{}:{}", begin, begin + count);
}

}  // namespace

OpText::OpText(const Schedule& schedule) : schedule_(schedule) {
  for (std::size_t i = 0; i < schedule.units.size(); ++i) {
    const Unit& unit = schedule.units[i];
    const UnitId id{static_cast<std::uint32_t>(i)};
    if (!unit.weights_sharded) unit_of_[unit.weights] = id;
    if (!unit.gradient_sharded) unit_of_[unit.gradient] = id;
  }
  for (const Segment& segment : schedule.segments)
    for (const Op& op : segment.ops) {
      if (const auto* gather = std::get_if<Gather>(&op.body)) unit_of_[gather->full] = gather->unit;
      if (const auto* add = std::get_if<Accumulate>(&op.body)) unit_of_[add->from] = add->unit;
    }
  unit_of_.erase(no_buffer);
}

std::string OpText::tensor(const Operand& operand) const {
  const auto found = unit_of_.find(operand.buffer);
  if (found == unit_of_.end()) return {};
  const Unit& unit = schedule_.unit(found->second);
  const std::int64_t begin = operand.offset_bytes * 8 / bits_of(operand.type);
  const std::int64_t end = begin + operand.rows.count * operand.columns;
  const UnitTensor* first = nullptr;
  const UnitTensor* last = nullptr;
  for (const UnitTensor& one : unit.tensors) {
    if (one.begin + one.element_count <= begin || one.begin >= end) continue;
    if (first == nullptr) first = &one;
    last = &one;
  }
  if (first == nullptr) return {};
  if (first == last) return ":" + short_name(unit, *first);
  return fmt::format(":{}..{}", short_name(unit, *first), short_name(unit, *last));
}

std::string OpText::operand(const Operand& operand) const {
  const std::string part = tensor(operand);
  std::string rows;
  if (operand.rows.last_only) {
    rows = "last, ";
  } else if (operand.rows.of_batch) {
    const Buffer& buffer = schedule_.buffer(operand.buffer);
    // A chunk's own buffer starts at the slice, whatever rows of the batch that is.
    const bool own = operand.offset_bytes < 0;
    const bool whole =
        operand.rows.begin == 0 &&
        (own ||
         bytes_of(operand.type, operand.row_stride * operand.rows.count) >= buffer.size_bytes ||
         operand.row_stride == 0);
    rows = own || !whole
               ? fmt::format("{}:{}, ", operand.rows.begin, operand.rows.begin + operand.rows.count)
               : "T, ";
    if (operand.rows.extra > 0) rows = fmt::format("T+{}, ", operand.rows.extra);
  } else if (operand.rows.count != 1) {
    rows = fmt::format("{}, ", operand.rows.count);
  }
  const bool all_columns = operand.rows.count <= 1 || operand.row_stride == operand.columns;
  const std::int64_t first_column =
      all_columns || operand.row_stride == 0
          ? 0
          : operand.offset_bytes * 8 / bits_of(operand.type) % operand.row_stride;
  return fmt::format("{}{}({}{})", name(operand.buffer), part, rows,
                     range(first_column, operand.columns, all_columns));
}

std::string OpText::compute(const Compute& body) const {
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  for (std::size_t i = 0; i < body.operands.size(); ++i) {
    const Operand& one = body.operands[i];
    if (one.buffer == no_buffer) continue;
    std::string text = operand(one);
    if ((i == 0 && body.transpose_a) || (i == 1 && body.transpose_b)) text += "^T";
    if (one.access == Access::read) reads.push_back(std::move(text));
    if (one.access == Access::write) writes.push_back(std::move(text));
    if (one.access == Access::read_write)
      writes.push_back((body.accumulate || body.accumulate_weight ? "+= " : "in place ") + text);
  }
  std::string text(plan::name_of(body.kernel));
  if (body.inverse) text += " inverse";
  if (!reads.empty()) text += fmt::format(" {}", fmt::join(reads, ", "));
  if (!writes.empty()) text += fmt::format(" -> {}", fmt::join(writes, ", "));
  return text;
}

std::string OpText::piece(const StatePiece& piece) const {
  return fmt::format("{}.{}[{}:{}]", schedule_.unit(piece.unit).name, plan::name_of(piece.part),
                     piece.begin, piece.end);
}

std::string OpText::of(const Op& op) const {
  const auto with_staging = [&](BufferId staging) {
    return staging == no_buffer ? std::string() : " through " + name(staging);
  };
  return std::visit(
      detail::Overload{
          [&](const Acquire& body) {
            const Buffer& buffer = schedule_.buffer(body.buffer);
            return fmt::format("{} {}", plan::name_of(buffer.kind),
                               format_bytes(buffer.size_bytes));
          },
          [&](const Release&) { return std::string(); },
          [&](const Gather& body) {
            if (body.shard == body.full) return "own part -> whole " + name(body.full);
            return fmt::format("{} of all ranks -> {}", name(body.shard), name(body.full));
          },
          [&](const ReduceScatter& body) {
            if (body.into != no_buffer)
              return fmt::format("own part of {}, summed over ranks -> {}{}{}", name(body.full),
                                 body.first ? "" : "+= ", name(body.into),
                                 with_staging(body.staging));
            return fmt::format("sum over ranks -> own part of {}{}", name(body.full),
                               with_staging(body.staging));
          },
          [&](const AllReduce& body) {
            return fmt::format("sum over ranks -> {}{}", name(body.full),
                               with_staging(body.staging));
          },
          [&](const GatherValues& body) {
            return fmt::format("{} ({}) of all ranks -> {}", name(body.own), body.count,
                               name(body.all));
          },
          [&](const Compute& body) { return compute(body); },
          [&](const Accumulate& body) {
            return fmt::format("{}{} -> {}{}", body.whole ? "" : "own part of ", name(body.from),
                               body.first ? "" : "+= ", name(body.into));
          },
          [&](const SumSquares& body) {
            return fmt::format("own part of {} -> {}[{}]{}", name(body.gradient), name(body.sums),
                               body.slot, with_staging(body.scratch));
          },
          [&](const Update& body) {
            return fmt::format("adamw{} {} -> {}",
                               body.rounds_at_random ? ", rounded at random," : "",
                               name(body.gradient), schedule_.unit(body.unit).name);
          },
          [&](const Feed& body) {
            return fmt::format("input {} -> {}{}", plan::name_of(body.input), name(body.into),
                               with_staging(body.pinned));
          },
          [&](const Publish& body) {
            return fmt::format("{} -> output {}{}", name(body.from), plan::name_of(body.output),
                               with_staging(body.pinned));
          },
          [&](const CopyOut& body) {
            return fmt::format("{} -> {}", piece(body.piece), name(body.staging));
          },
          [&](const Save& body) {
            return fmt::format("{} -> disk, {}", name(body.staging), piece(body.piece));
          },
          [&](const Load& body) {
            return fmt::format("disk, {} -> {}", piece(body.piece), name(body.staging));
          },
          [&](const CopyIn& body) {
            return fmt::format("{}{} -> {}", name(body.staging),
                               body.twin == no_buffer ? std::string() : " or " + name(body.twin),
                               piece(body.piece));
          },
      },
      op.body);
}

std::string OpText::label(const Op& op) const {
  if (const BufferId id = acquired_by(op); id != no_buffer) return "+ " + name(id);
  if (const BufferId id = released_by(op); id != no_buffer) return "- " + name(id);
  return op.label;
}

std::string OpText::name_of(const Op& op) const {
  if (const BufferId id = acquired_by(op); id != no_buffer) return "acquire " + name(id);
  if (const BufferId id = released_by(op); id != no_buffer) return "release " + name(id);
  return op.label;
}

}  // namespace underkeel::plan
