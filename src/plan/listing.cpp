#include "plan/listing.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/op_text.h"
#include "plan/uses.h"

namespace underkeel::plan {

namespace {

using Out = std::back_insert_iterator<std::string>;

std::string home_text(const Schedule& schedule, BufferId id, bool sharded) {
  if (id == no_buffer) return "-";
  return fmt::format("{} {}", name_of(schedule.buffer(id).type), sharded ? "shard" : "whole");
}

void write_units(Out out, const Schedule& schedule) {
  fmt::format_to(out, "\nunits{:17}{:>14}{:>14}  {:11}{:11}{:11}{:11}{}\n", "", "elements", "shard",
                 "weights", "gradient", "master", "moments", "decays");
  for (const Unit& unit : schedule.units)
    fmt::format_to(out, "  {:20}{:>14}{:>14}  {:11}{:11}{:11}{:11}{}\n", unit.name,
                   format_count(unit.element_count), format_count(unit.shard_elements),
                   home_text(schedule, unit.weights, unit.weights_sharded),
                   home_text(schedule, unit.gradient, unit.gradient_sharded),
                   home_text(schedule, unit.master, unit.optimizer_sharded),
                   home_text(schedule, unit.moment1, unit.optimizer_sharded),
                   unit.weight_decay ? "yes" : "no");
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

void write_peaks(Out out, const Plan& plan, const OpText& text) {
  if (plan.peaks.empty()) return;
  fmt::format_to(out, "\npeaks\n");
  for (const Peak& peak : plan.peaks) {
    fmt::format_to(out, "  {:13} {:11} {:>10}", name_of(peak.segment), name_of(peak.space),
                   format_bytes(peak.size_bytes));
    const Segment* segment = plan.schedule.find(peak.segment);
    if (segment != nullptr && index(peak.op) < segment->ops.size())
      fmt::format_to(out, " at {:04} {}", index(peak.op),
                     text.name_of(segment->ops[index(peak.op)]));
    const char* separator = ": ";
    for (std::size_t kind = 0; kind < peak.by_kind.size(); ++kind) {
      if (peak.by_kind[kind] == 0) continue;
      fmt::format_to(out, "{}{} {}", separator, name_of(static_cast<BufferKind>(kind)),
                     format_bytes(peak.by_kind[kind]));
      separator = ", ";
    }
    fmt::format_to(out, "\n");
  }
}

void write_program(Out out, const Program& program) {
  if (program.steps.empty()) return;
  fmt::format_to(out, "\nprogram\n");
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Program::Step& step = program.steps[i];
    const bool continues = i > 0 && program.steps[i - 1].from == step.from;
    if (continues) {
      fmt::format_to(out, ", {}", name_of(step.to));
    } else {
      fmt::format_to(out, "{}  {} -> {}", i == 0 ? "" : "\n", name_of(step.from), name_of(step.to));
    }
  }
  fmt::format_to(out, "\n");
}

void write_segment(Out out, const Schedule& schedule, const Segment& segment, const OpText& text) {
  fmt::format_to(out, "\nsegment {}", name_of(segment.kind));
  for (const SegmentKind kind : segment.also) fmt::format_to(out, " and {}", name_of(kind));
  if (segment.max_rows > 0) fmt::format_to(out, ", T up to {} rows", segment.max_rows);
  fmt::format_to(out, ", {} operations\n", segment.ops.size());
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
    const char* separator = "  | after ";
    for (const OpIndex before : op.after) {
      fmt::format_to(out, "{}{:04} {}", separator, index(before),
                     text.name_of(segment.ops[index(before)]));
      separator = ", ";
    }
    separator = "  | after entry ";
    for (const EntryId entry : op.after_entry) {
      fmt::format_to(out, "{}`{}`", separator, schedule.entries[index(entry)].name);
      separator = ", ";
    }
    if (op.entry != no_entry)
      fmt::format_to(out, "  | entry `{}`", schedule.entries[index(op.entry)].name);
    if (op.when != no_buffer) fmt::format_to(out, "  | when {}", schedule.buffer(op.when).name);
    if (!op.on.empty()) fmt::format_to(out, "  | on ranks {}", fmt::join(op.on, ", "));
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
  fmt::format_to(out, "plan: ZeRO stage {}, {} rank{}, {} micro-step{} a window, {} parameters\n",
                 plan.stage, plan.world_size, plan.world_size == 1 ? "" : "s",
                 plan.accumulation_steps, plan.accumulation_steps == 1 ? "" : "s",
                 format_count(plan.parameter_count));
  const char* separator = "lanes: ";
  for (const Lane& lane : schedule.lanes) {
    fmt::format_to(out, "{}{}", separator, lane.name);
    separator = ", ";
  }
  if (!schedule.shape_classes.empty())
    fmt::format_to(out, "\nshape classes: {} rows", fmt::join(schedule.shape_classes, ", "));
  fmt::format_to(out, "\n");
  write_units(out, schedule);
  write_persistent(out, plan);
  write_peaks(out, plan, text);
  write_program(out, schedule.program);
  for (const Segment& segment : schedule.segments) write_segment(out, schedule, segment, text);
  return result;
}

}  // namespace underkeel::plan
