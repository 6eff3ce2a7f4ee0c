#include "plan/listing_parts.h"

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::plan::parts {

namespace {

std::string home_text(const Schedule& schedule, BufferId id, bool sharded) {
  if (id == no_buffer) return "-";
  return fmt::format("{} {}", name_of(schedule.buffer(id).type), sharded ? "shard" : "whole");
}

}  // namespace

void write_summary(Out out, const Plan& plan) {
  const Schedule& schedule = plan.schedule;
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
}

std::string units_title() {
  return fmt::format("units{:17}{:>14}{:>14}  {:12}{:12}{:12}{:12}{}", "", "elements", "shard",
                     "weights", "gradient", "master", "moments", "decays");
}

std::string unit_row(const Schedule& schedule, const Unit& unit) {
  return fmt::format(
      "{:>14}{:>14}  {:12}{:12}{:12}{:12}{}", format_count(unit.element_count),
      format_count(unit.shard_elements), home_text(schedule, unit.weights, unit.weights_sharded),
      home_text(schedule, unit.gradient, unit.gradient_sharded),
      home_text(schedule, unit.master, unit.optimizer_sharded),
      home_text(schedule, unit.moment1, unit.optimizer_sharded), unit.weight_decay ? "yes" : "no");
}

std::string peak_moment(const Plan& plan, const Peak& peak, const OpText& text) {
  const Segment* segment = plan.schedule.find(peak.segment);
  if (segment == nullptr || index(peak.op) >= segment->ops.size()) return "";
  return fmt::format(" at {:04} {}", index(peak.op), text.name_of(segment->ops[index(peak.op)]));
}

std::string kinds_text(const Peak& peak) {
  std::vector<std::string> kinds;
  for (std::size_t kind = 0; kind < peak.by_kind.size(); ++kind)
    if (peak.by_kind[kind] != 0)
      kinds.push_back(fmt::format("{} {}", name_of(static_cast<BufferKind>(kind)),
                                  format_bytes(peak.by_kind[kind])));
  return kinds.empty() ? "" : fmt::format(": {}", fmt::join(kinds, ", "));
}

void write_peaks(Out out, const Plan& plan, const OpText& text) {
  if (plan.peaks.empty()) return;
  fmt::format_to(out, "\npeaks\n");
  for (const Peak& peak : plan.peaks)
    fmt::format_to(out, "  {:13} {:11} {:>10}{}{}\n", name_of(peak.segment), name_of(peak.space),
                   format_bytes(peak.size_bytes), peak_moment(plan, peak, text), kinds_text(peak));
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

std::string segment_title(const Segment& segment) {
  std::string text = fmt::format("segment {}", name_of(segment.kind));
  for (const SegmentKind kind : segment.also) text += fmt::format(" and {}", name_of(kind));
  if (segment.max_rows > 0) text += fmt::format(", T up to {} rows", segment.max_rows);
  return text +
         fmt::format(", {} operation{}", segment.ops.size(), segment.ops.size() == 1 ? "" : "s");
}

std::vector<std::string> conditions(const Schedule& schedule, const Segment& segment, const Op& op,
                                    const OpText& text, std::string_view mark) {
  std::vector<std::string> said;
  std::vector<std::string> names;
  for (const OpIndex before : op.after)
    names.push_back(
        fmt::format("{}{:04} {}", mark, index(before), text.name_of(segment.ops[index(before)])));
  if (!names.empty()) said.push_back(fmt::format("after {}", fmt::join(names, ", ")));
  names.clear();
  for (const EntryId entry : op.after_entry)
    names.push_back(fmt::format("`{}`", schedule.entries[index(entry)].name));
  if (!names.empty()) said.push_back(fmt::format("after entry {}", fmt::join(names, ", ")));
  if (op.entry != no_entry)
    said.push_back(fmt::format("entry `{}`", schedule.entries[index(op.entry)].name));
  if (op.when != no_buffer) said.push_back(fmt::format("when {}", schedule.buffer(op.when).name));
  if (!op.on.empty()) said.push_back(fmt::format("on ranks {}", fmt::join(op.on, ", ")));
  return said;
}

}  // namespace underkeel::plan::parts
