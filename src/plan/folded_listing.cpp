// The listing that a person reads: each layer's operations once.

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/fold.h"
#include "plan/listing.h"
#include "plan/listing_parts.h"
#include "plan/op_text.h"
#include "plan/uses.h"

namespace underkeel::plan {

namespace {

using parts::Out;

bool is_of_all_segments(const Buffer& buffer) {
  return buffer.kind == BufferKind::weights || buffer.kind == BufferKind::gathered;
}

/// What stands before the names of exactly those buffers of a segment that are neither weights nor gathered; empty where
/// nothing does, or names would be no names without it.
std::string own_prefix(const Schedule& schedule, const Segment& segment) {
  std::set<BufferId> used;
  for (const Op& op : segment.ops) {
    for (const BufferId id : {acquired_by(op), released_by(op)})
      if (id != no_buffer) used.insert(id);
    for_each_use(schedule, op, [&](BufferId id, Access) { used.insert(id); });
  }
  std::optional<std::string> prefix;
  for (const BufferId id : used) {
    const std::string& name = schedule.buffer(id).name;
    if (is_of_all_segments(schedule.buffer(id))) continue;
    if (!prefix) prefix = name.substr(0, name.rfind('.') + 1);
    while (!prefix->empty() && !name.starts_with(*prefix))
      prefix = prefix->substr(0, prefix->rfind('.', prefix->size() - 2) + 1);
  }
  if (!prefix || prefix->empty()) return "";
  std::set<std::string> names;
  for (const BufferId id : used) {
    const std::string& name = schedule.buffer(id).name;
    const bool is_shared = is_of_all_segments(schedule.buffer(id));
    if (name.starts_with(*prefix) == is_shared) return "";
    if (!names.insert(is_shared ? name : name.substr(prefix->size())).second) return "";
  }
  return *prefix;
}

/// A line: one operation with the beginnings of buffers before it and the ends behind it, in one lane.
struct Line {
  std::size_t first_op = 0;
  std::size_t op_count = 0;
  std::string lane, label, what;

  std::string text() const { return fmt::format("{}  {}  {}", lane, label, what); }
};

std::vector<Line> lines_of(const Schedule& schedule, const Segment& segment) {
  const OpText text(schedule);
  const std::vector<Op>& ops = segment.ops;
  const auto conditions = [&](const Op& op) {
    return parts::conditions(schedule, segment, op, text, std::string_view(&position_mark, 1));
  };
  const auto part = [&](const Op& op) {
    std::string said = "  | " + text.label(op);
    if (const BufferId id = acquired_by(op); id != no_buffer) {
      const Buffer& buffer = schedule.buffer(id);
      if (buffer.kind != BufferKind::activations) said += fmt::format(" {}", name_of(buffer.kind));
      said += " " + format_bytes(buffer.size_bytes);
    }
    const std::vector<std::string> when = conditions(op);
    if (!when.empty()) said += fmt::format(" ({})", fmt::join(when, "; "));
    return said;
  };
  std::vector<Line> lines;
  for (std::size_t i = 0; i < ops.size();) {
    const std::size_t first = i;
    const LaneId lane = ops[i].lane;
    std::string before;
    while (i < ops.size() && ops[i].lane == lane && acquired_by(ops[i]) != no_buffer)
      before += part(ops[i++]);
    Line line{.first_op = first, .lane = schedule.lanes[index(lane)].name};
    if (i < ops.size() && ops[i].lane == lane && released_by(ops[i]) == no_buffer) {
      line.label = text.label(ops[i]);
      line.what = text.of(ops[i]);
      for (const std::string& condition : conditions(ops[i])) line.what += "  | " + condition;
      ++i;
    }
    line.what += before;
    while (i < ops.size() && ops[i].lane == lane && released_by(ops[i]) != no_buffer)
      line.what += part(ops[i++]);
    line.op_count = i - first;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string positions(std::size_t first, std::size_t count) {
  if (count == 1) return fmt::format("{:04}", first);
  return fmt::format("{:04}-{:04}", first, first + count - 1);
}

/// ", a layer further" and so on: what a repeat does to numbers.
std::string moves_text(const Repeat& repeat) {
  const auto moved = [&](Counted counts, std::string_view one, std::string_view many) {
    const std::int64_t by = repeat.moves[static_cast<std::size_t>(counts)];
    if (by == 0) return std::string();
    const std::int64_t size = by < 0 ? -by : by;
    return fmt::format(
        ", {} {}", size == 1 ? std::string(one) : fmt::format("{} {}", format_count(size), many),
        by < 0 ? "back" : "further");
  };
  std::string text =
      moved(Counted::layer, "a layer", "layers") + moved(Counted::unit, "a unit", "units") +
      moved(Counted::chunk, "a chunk", "chunks") + moved(Counted::row, "a row", "rows") +
      moved(Counted::element, "an element", "elements") + moved(Counted::slot, "a slot", "slots");
  if (!repeat.stays.empty())
    text += fmt::format("; {} stay{}", fmt::join(repeat.stays, " and "),
                        repeat.stays.size() == 1 ? "s" : "");
  return text;
}

/// "of layers.3..1", by the operations themselves.
std::string layers_text(const Segment& segment, std::size_t first, std::size_t count) {
  const auto begin = segment.ops.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  const auto has_layer = [](const Op& op) { return op.layer >= 0; };
  const auto from = std::find_if(begin, end, has_layer);
  if (from == end) return "";
  const auto to =
      std::find_if(std::make_reverse_iterator(end), std::make_reverse_iterator(begin), has_layer);
  return from->layer == to->layer ? fmt::format(" of layers.{}", from->layer)
                                  : fmt::format(" of layers.{}..{}", from->layer, to->layer);
}

/// Segments in order, each with what it has seen before it.
class FoldedSegments {
 public:
  explicit FoldedSegments(const Schedule& schedule) : schedule_(schedule) {
    for (const Unit& unit : schedule.units)
      units_.push_back({.name = unit.name, .shard_elements = unit.shard_elements});
  }

  void write(Out out, const Segment& segment) {
    const std::string prefix = own_prefix(schedule_, segment);
    fmt::format_to(out, "\n{}\n", parts::segment_title(segment));
    if (!prefix.empty())
      fmt::format_to(
          out, "  with `{}` before the names of buffers that are neither weights nor gathered\n",
          prefix);
    const std::vector<Line> lines =
        prefix.empty() ? lines_of(schedule_, segment) : lines_of(without(prefix), segment);
    // What moves and updates state goes from unit to unit; what computes, from layer to layer.
    const std::span<const FoldUnit> units =
        segment.max_rows == 0 ? std::span<const FoldUnit>(units_) : std::span<const FoldUnit>();
    std::vector<FoldLine> folded;
    for (const Line& line : lines)
      folded.push_back(fold_line(static_cast<std::int64_t>(line.first_op),
                                 static_cast<std::int64_t>(line.op_count), line.text(), units));
    lists_.push_back(std::move(folded));
    segments_.push_back(&segment);
    write_lines(out, segment, lines, find_repeats(lists_));
  }

 private:
  /// The schedule with short names for the buffers that have `prefix`.
  Schedule without(const std::string& prefix) const {
    Schedule named = schedule_;
    for (Buffer& buffer : named.buffers)
      if (buffer.name.starts_with(prefix)) buffer.name.erase(0, prefix.size());
    return named;
  }

  void write_lines(Out out, const Segment& segment, const std::vector<Line>& lines,
                   const std::vector<Repeat>& repeats) const {
    std::size_t position_width = 0, lane_width = 0, label_width = 0;
    const auto for_each_written = [&](auto&& write_line, auto&& write_repeat) {
      std::size_t i = 0;
      for (const Repeat& repeat : repeats) {
        for (; i < repeat.first; ++i) write_line(lines[i]);
        write_repeat(repeat);
        i += repeat.count;
      }
      for (; i < lines.size(); ++i) write_line(lines[i]);
    };
    for_each_written(
        [&](const Line& line) {
          position_width = std::max(position_width, positions(line.first_op, line.op_count).size());
          lane_width = std::max(lane_width, line.lane.size());
          label_width = std::max(label_width, line.label.size());
        },
        [](const Repeat&) {});
    for_each_written(
        [&](const Line& line) {
          std::string text = fmt::format("{:{}} {:{}}  {:{}}  {}",
                                         positions(line.first_op, line.op_count), position_width,
                                         line.lane, lane_width, line.label, label_width, line.what);
          std::erase(text, position_mark);
          fmt::format_to(out, "{}\n", text);
        },
        [&](const Repeat& repeat) {
          fmt::format_to(out, "{}\n", repeat_text(segment, lines, repeat));
        });
  }

  std::string repeat_text(const Segment& segment, const std::vector<Line>& lines,
                          const Repeat& repeat) const {
    const Line& first = lines[repeat.first];
    const Line& last = lines[repeat.first + repeat.count - 1];
    const std::size_t op_count = last.first_op + last.op_count - first.first_op;
    const auto source =
        static_cast<std::size_t>(lists_[repeat.source_list][repeat.source_first].first_op);
    std::string text =
        positions(first.first_op, op_count) + layers_text(segment, first.first_op, op_count);
    if (repeat.source_list + 1 == lists_.size()) {
      const std::size_t distance = first.first_op - source;
      text += distance == 1 ? ": each like the one before it"
                            : fmt::format(": each like the one {} before it", distance);
    } else {
      text += fmt::format(": like {} of {}", positions(source, op_count),
                          name_of(segments_[repeat.source_list]->kind));
    }
    return text + moves_text(repeat);
  }

  const Schedule& schedule_;
  std::vector<FoldUnit> units_;
  std::vector<std::vector<FoldLine>> lists_;
  std::vector<const Segment*> segments_;
};

}  // namespace

std::string folded_listing(const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  std::string result;
  const Out out = std::back_inserter(result);
  parts::write_summary(out, plan);
  parts::write_folded_units(out, schedule);
  parts::write_folded_persistent(out, plan);
  parts::write_folded_peaks(out, plan, OpText(schedule));
  parts::write_folded_program(out, schedule.program);
  fmt::format_to(
      out,
      "\nsegments: position, lane, operation, what it reads -> what it writes  | what it "
      "waits for  | + buffers that begin before it, activations unless said  | - buffers "
      "that end behind it\n");
  FoldedSegments segments(schedule);
  for (const Segment& segment : schedule.segments) segments.write(out, segment);
  return result;
}

}  // namespace underkeel::plan
