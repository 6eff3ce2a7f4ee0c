#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plan/op_text.h"
#include "render/render.h"

namespace underkeel::render {

namespace {

using Json = nlohmann::ordered_json;

Json spaces_of(const plan::Plan& plan, const Outlook& outlook) {
  Json spaces = Json::object();
  for (int s = 0; s < plan::memory_space_count; ++s) {
    const auto space = static_cast<plan::MemorySpace>(s);
    const std::optional<SpacePeak> peak = peak_of(plan, space);
    if (!peak) continue;
    Json by_segment = Json::object();
    for (const plan::Peak& one : plan.peaks)
      if (one.space == space) by_segment[std::string(name_of(one.segment))] = one.size_bytes;
    Json by_kind = Json::object();
    for (std::size_t kind = 0; kind < peak->by_kind.size(); ++kind)
      by_kind[std::string(name_of(static_cast<plan::BufferKind>(kind)))] = peak->by_kind[kind];
    const auto& budget = outlook.budgets[index(space)];
    spaces[std::string(name_of(space))] = {
        {"peak_bytes", peak->peak_bytes},
        {"budget_bytes", budget ? Json(budget->size_bytes) : Json()},
        {"budget_reason", budget ? Json(budget->reason) : Json()},
        {"peak_segment", name_of(peak->segment)},
        {"by_segment", by_segment},
        {"by_kind", by_kind}};
  }
  return spaces;
}

constexpr std::pair<Phase, const char*> phase_names[] = {{Phase::load, "load"},
                                                         {Phase::first_step, "first_step"},
                                                         {Phase::step, "step"},
                                                         {Phase::update, "update"},
                                                         {Phase::evaluate, "evaluate"},
                                                         {Phase::save, "save"},
                                                         {Phase::after_save, "after_save"},
                                                         {Phase::resume, "resume"}};

Json phases_of(const plan::Plan& plan, Saves saves) {
  Json phases = Json::object();
  for (const auto& [phase, name] : phase_names) {
    Json bytes = Json::object();
    for (int s = 0; s < plan::memory_space_count; ++s) {
      const auto space = static_cast<plan::MemorySpace>(s);
      if (const std::int64_t size = bytes_of_phase(plan, phase, space, saves); size > 0)
        bytes[std::string(name_of(space))] = size;
    }
    phases[name] = bytes;
  }
  return phases;
}

// Of every phase and space: the moment of the peak, and what holds it.
Json moments_of(const plan::Plan& plan, Saves saves) {
  const plan::OpText text(plan.schedule);
  Json phases = Json::object();
  for (const auto& [phase, name] : phase_names) {
    Json spaces = Json::object();
    for (int s = 0; s < plan::memory_space_count; ++s) {
      const auto space = static_cast<plan::MemorySpace>(s);
      const plan::Peak* peak = peak_of_phase(plan, phase, space, saves);
      if (peak == nullptr) continue;
      const plan::Segment& segment = *plan.schedule.find(peak->segment);
      Json by_kind = Json::object();
      for (std::size_t kind = 0; kind < peak->by_kind.size(); ++kind)
        if (peak->by_kind[kind] > 0)
          by_kind[std::string(name_of(static_cast<plan::BufferKind>(kind)))] = peak->by_kind[kind];
      spaces[std::string(name_of(space))] = {
          {"segment", name_of(peak->segment)},
          {"op", index(peak->op)},
          {"at", segment.ops.empty() ? "" : text.name_of(segment.ops[index(peak->op)])},
          {"by_kind", by_kind}};
    }
    phases[name] = spaces;
  }
  return phases;
}

Json decisions_of(const plan::Plan& plan) {
  Json decisions = Json::array();
  for (const plan::Decision& decision : plan.decisions) {
    Json alternatives = Json::array();
    for (const plan::Alternative& alternative : decision.alternatives)
      alternatives.push_back({{"value", alternative.value}, {"effect", alternative.effect}});
    decisions.push_back({{"subject", decision.subject},
                         {"value", decision.value},
                         {"reason", decision.reason},
                         {"alternatives", alternatives}});
  }
  return decisions;
}

Json node_of(const Outlook& outlook) {
  if (!outlook.node) return {};
  const NodeMemory& node = *outlook.node;
  return {{"host_bytes", node.needed_bytes},
          {"outside_bytes", node.outside_bytes},
          {"processes", node.process_count},
          {"budget_bytes", node.budget ? Json(node.budget->size_bytes) : Json()},
          {"budget_reason", node.budget ? Json(node.budget->reason) : Json()}};
}

Json disk_of(const Outlook& outlook) {
  if (!outlook.disk) return {};
  const DiskNeed& disk = *outlook.disk;
  return {{"needed_bytes", disk.needed_bytes},
          {"free_bytes", disk.free_bytes ? Json(*disk.free_bytes) : Json()},
          {"source", disk.free_bytes ? Json(disk.source) : Json()},
          {"checkpoint_bytes", disk.checkpoint_bytes},
          {"checkpoints_at_once", disk.checkpoint_count},
          {"checkpoints_at_end", disk.kept_count},
          {"export_bytes", disk.export_bytes},
          {"is_least", disk.is_least}};
}

}  // namespace

std::string plan_json(const plan::Plan& plan, const Outlook& outlook) {
  Json program = Json::array();
  for (const plan::Program::Step& step : plan.schedule.program.steps)
    program.push_back({{"from", name_of(step.from)}, {"to", name_of(step.to)}});
  Json suggestions = Json::array();
  for (const Suggestion& suggestion : outlook.suggestions) {
    // The first stands by itself: most runs are short of one space.
    Json needs = Json::object();
    for (const SpaceBytes& need : suggestion.needs) needs[need.space] = need.size_bytes;
    suggestions.push_back({{"change", suggestion.change},
                           {"space", suggestion.needs.front().space},
                           {"peak_bytes", suggestion.needs.front().size_bytes},
                           {"needs", needs},
                           {"effect", suggestion.effect}});
  }
  Json shortages = Json::array();
  for (const Lack& lack : outlook.shortages)
    shortages.push_back({{"space", lack.needed.space},
                         {"needed_bytes", lack.needed.size_bytes},
                         {"allowed_bytes", lack.allowed_bytes},
                         {"reason", lack.reason}});
  const bool saves = outlook.saves == Saves::on_the_way;
  Json times;
  if (outlook.times)
    times = {{"step_s", outlook.times->step_s},
             {"micro_step_s", outlook.times->micro_step_s},
             {"update_s", outlook.times->update_s},
             {"save_s", saves ? Json(outlook.times->save_s) : Json()},
             {"save_wait_s", saves ? Json(outlook.times->save_wait_s) : Json()}};
  const Json whole = {{"fits", outlook.fits},
                      {"ranks", plan.world_size},
                      {"stage", plan.stage},
                      {"parameters", plan.parameter_count},
                      {"spaces", spaces_of(plan, outlook)},
                      {"node", node_of(outlook)},
                      {"disk", disk_of(outlook)},
                      {"overhead_bytes", plan.overhead_bytes},
                      {"phases", phases_of(plan, outlook.saves)},
                      {"moments", moments_of(plan, outlook.saves)},
                      {"times", times},
                      {"program", program},
                      {"decisions", decisions_of(plan)},
                      {"shortages", shortages},
                      {"suggestions", suggestions},
                      {"plan_hash", fmt::format("{:016x}", plan.hash)}};
  return whole.dump(2) + "\n";
}

std::string trace_json(const plan::Plan& plan, const plan::Timeline& timeline, int rank) {
  constexpr double microseconds = 1e6;
  const plan::Schedule& schedule = plan.schedule;
  const plan::OpText text(schedule);
  // One event a line, written as they come: a timeline may hold a million of them.
  std::string trace = "{\"traceEvents\":[\n";
  trace += Json{{"ph", "M"},
                {"pid", rank},
                {"name", "process_name"},
                {"args", {{"name", fmt::format("rank {}", rank)}}}}
               .dump();
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane)
    trace += ",\n" + Json{{"ph", "M"},
                          {"pid", rank},
                          {"tid", lane},
                          {"name", "thread_name"},
                          {"args", {{"name", schedule.lanes[lane].name}}}}
                         .dump();
  for (const plan::Span& span : timeline.spans) {
    const plan::Op& op = schedule.find(span.segment)->ops[index(span.op)];
    trace += ",\n" + Json{{"ph", "X"},
                          {"pid", rank},
                          {"tid", index(span.lane)},
                          {"ts", span.begin_s * microseconds},
                          {"dur", (span.end_s - span.begin_s) * microseconds},
                          {"cat", name_of(span.segment)},
                          {"name", text.name_of(op)},
                          {"args", {{"op", index(span.op)}, {"does", text.of(op)}}}}
                         .dump();
  }
  for (int s = 0; s < plan::memory_space_count; ++s) {
    const auto space = static_cast<plan::MemorySpace>(s);
    const auto moments = plan::bytes_over_time(schedule, timeline, space);
    if (moments.size() == 1 && moments[0].size_bytes == 0) continue;
    std::array<bool, plan::buffer_kind_count> is_used{};
    for (const plan::Moment& moment : moments)
      for (std::size_t kind = 0; kind < is_used.size(); ++kind)
        is_used[kind] = is_used[kind] || moment.by_kind[kind] > 0;
    for (const plan::Moment& moment : moments) {
      const auto counter = [&](const char* what, const Json& values) {
        trace += ",\n" + Json{{"ph", "C"},
                              {"pid", rank},
                              {"ts", moment.time_s * microseconds},
                              {"name", fmt::format("{} {}", name_of(space), what)},
                              {"args", values}}
                             .dump();
      };
      counter("bytes", {{"bytes", moment.size_bytes}});
      Json by_kind = Json::object();
      for (std::size_t kind = 0; kind < is_used.size(); ++kind)
        if (is_used[kind])
          by_kind[std::string(name_of(static_cast<plan::BufferKind>(kind)))] = moment.by_kind[kind];
      counter("by holder", by_kind);
    }
  }
  return trace + "\n]}\n";
}

}  // namespace underkeel::render
