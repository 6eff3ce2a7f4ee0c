#include "plan/listing.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/listing_parts.h"
#include "plan/op_text.h"
#include "plan/uses.h"

namespace underkeel::plan {

namespace {

using parts::Out;

void write_units(Out out, const Schedule& schedule) {
  fmt::format_to(out, "\n{}\n", parts::units_title());
  for (const Unit& unit : schedule.units)
    fmt::format_to(out, "  {:20}{}\n", unit.name, parts::unit_row(schedule, unit));
}

void write_persistent(Out out, const Plan& plan) {
  fmt::format_to(out, "\nlives for the whole run\n");
  for (std::size_t i = 0; i < plan.schedule.buffers.size(); ++i) {
    const Buffer& buffer = plan.schedule.buffers[i];
    if (!buffer.persistent) continue;
    fmt::format_to(out, "  {:30} {:11} {:5} {:12} {:>10}", buffer.name, name_of(buffer.space),
                   name_of(buffer.type), name_of(buffer.kind), format_bytes(buffer.size_bytes));
    if (i < plan.layout.offset_bytes.size())
      fmt::format_to(out, " at {}", format_count(plan.layout.offset_bytes[i]));
    fmt::format_to(out, "\n");
  }
}

void write_segment(Out out, const Schedule& schedule, const Segment& segment, const OpText& text) {
  fmt::format_to(out, "\n{}\n", parts::segment_title(segment));
  std::size_t lane_width = 0;
  std::size_t label_width = 0;
  for (const Op& op : segment.ops) {
    lane_width = std::max(lane_width, schedule.lanes[index(op.lane)].name.size());
    label_width = std::max(label_width, text.label(op).size());
  }
  for (std::size_t i = 0; i < segment.ops.size(); ++i) {
    const Op& op = segment.ops[i];
    const std::string what = text.of(op);
    fmt::format_to(out, "{:04} {:{}}  {:{}}{}{}", i, schedule.lanes[index(op.lane)].name,
                   lane_width, text.label(op), what.empty() ? 0 : label_width,
                   what.empty() ? "" : "  ", what);
    for (const std::string& condition : parts::conditions(schedule, segment, op, text))
      fmt::format_to(out, "  | {}", condition);
    fmt::format_to(out, "\n");
  }
}

}  // namespace

std::string listing(const Schedule& schedule, const Segment& segment) {
  std::string result;
  write_segment(std::back_inserter(result), schedule, segment, OpText(schedule));
  return result.substr(1);  // the blank line that parts it from the one before
}

std::string listing(const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  const OpText text(schedule);
  std::string result;
  const Out out = std::back_inserter(result);
  parts::write_summary(out, plan);
  write_units(out, schedule);
  write_persistent(out, plan);
  parts::write_peaks(out, plan, text);
  parts::write_program(out, schedule.program);
  for (const Segment& segment : schedule.segments) write_segment(out, schedule, segment, text);
  return result;
}

}  // namespace underkeel::plan
