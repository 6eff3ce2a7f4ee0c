#include "report/run_record.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "report/page_json.h"

namespace underkeel::report {

namespace {

using Json = nlohmann::ordered_json;

/// One list of numbers for each field; what is not finite is null.
template <class Point, class Field>
Json column(const std::vector<Point>& points, Field Point::*field) {
  Json values = Json::array();
  for (const Point& point : points) values.push_back(point.*field);
  return values;
}

Json figures(const PlannedAndMeasured& both) {
  return {{"planned", both.planned_bytes ? Json(*both.planned_bytes) : Json()},
          {"measured", both.measured_bytes ? Json(*both.measured_bytes) : Json()}};
}

Json memory_json(const MemoryRecord& memory) {
  Json ranks = Json::array();
  for (const RankMemory& rank : memory.ranks) {
    Json spaces = Json::array();
    for (const auto& [name, space] : rank.spaces) {
      Json segments = Json::array();
      for (const auto& [segment, both] : space.by_segment) {
        Json one = figures(both);
        one["segment"] = segment;
        segments.push_back(std::move(one));
      }
      Json one = figures(space.arena);
      one["name"] = name;
      one["by_segment"] = std::move(segments);
      spaces.push_back(std::move(one));
    }
    ranks.push_back({{"rank", rank.rank},
                     {"spaces", spaces},
                     {"process", figures(rank.process)},
                     {"ranks_in_process", rank.ranks_in_process}});
  }
  Json events = Json::array();
  for (const MemoryEvent& event : memory.events)
    events.push_back({{"rank", event.rank},
                      {"step", event.step},
                      {"what", event.what},
                      {"space", event.space},
                      {"before", event.before_bytes},
                      {"during", event.during_peak_bytes},
                      {"after", event.after_bytes}});
  return {{"ranks", ranks}, {"events", events}};
}

const char* name_of(RunState state) {
  switch (state) {
    case RunState::unknown:
      return "unknown";
    case RunState::unfinished:
      return "unfinished";
    case RunState::finished:
      return "finished";
    case RunState::stopped:
      return "stopped";
  }
  return "unknown";
}

}  // namespace

std::string to_json(const RunRecord& record) {
  Json saves = Json::array();
  for (const SavePoint& save : record.saves)
    saves.push_back({{"step", save.step},
                     {"folder", save.folder},
                     {"bytes", save.size_bytes},
                     {"elapsed_s", save.elapsed_s},
                     {"waited_s", save.waited_s},
                     {"complete", save.is_complete}});
  Json values = Json::array();
  for (const UsedValue& value : record.values)
    values.push_back({value.key, value.value, value.source});
  return safe_json({{"folder", record.folder},
                    {"state", name_of(record.state)},
                    {"stop_reason", record.stop_reason},
                    {"last_event_s", record.last_event_s},
                    {"process", figures(record.process)},
                    {"total_steps", record.total_steps ? Json(*record.total_steps) : Json()},
                    {"curve_source", record.curve_source},
                    {"step_count", record.step_count},
                    {"steps",
                     {{"step", column(record.steps, &StepPoint::step)},
                      {"epoch", column(record.steps, &StepPoint::epoch)},
                      {"loss", column(record.steps, &StepPoint::loss)},
                      {"learning_rate", column(record.steps, &StepPoint::learning_rate)},
                      {"gradient_norm", column(record.steps, &StepPoint::gradient_norm)},
                      {"tokens_per_s", column(record.steps, &StepPoint::tokens_per_s)},
                      {"step_s", column(record.steps, &StepPoint::step_s)}}},
                    {"evaluations",
                     {{"step", column(record.evaluations, &EvaluationPoint::step)},
                      {"loss", column(record.evaluations, &EvaluationPoint::loss)}}},
                    {"saves", saves},
                    {"notices", record.notices},
                    {"memory", record.memory ? memory_json(*record.memory) : Json()},
                    {"values", values},
                    {"remarks", record.remarks}});
}

}  // namespace underkeel::report
