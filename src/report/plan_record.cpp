#include "report/plan_record.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plan/lifetimes.h"
#include "plan/op_text.h"
#include "plan/uses.h"
#include "report/page_json.h"

namespace underkeel::report {

namespace {

using Json = nlohmann::ordered_json;
using plan::BufferId;

constexpr std::size_t most_holders = 12;  // named at the peak; the rest is summed up

// What an operation is for, as lanes are coloured.
enum class Work : std::uint8_t { compute, exchange, update, storage, input, memory };
constexpr const char* work_names[] = {"compute",     "exchange between ranks", "update",
                                      "read, write", "inputs and results",     "memory"};

Work work_of(const plan::Op& op) {
  return std::visit(
      [](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, plan::Acquire> || std::is_same_v<Body, plan::Release>)
          return Work::memory;
        if constexpr (std::is_same_v<Body, plan::Gather> ||
                      std::is_same_v<Body, plan::ReduceScatter> ||
                      std::is_same_v<Body, plan::AllReduce> ||
                      std::is_same_v<Body, plan::GatherValues>)
          return Work::exchange;
        if constexpr (std::is_same_v<Body, plan::Update> ||
                      std::is_same_v<Body, plan::Accumulate> ||
                      std::is_same_v<Body, plan::SumSquares>)
          return Work::update;
        if constexpr (std::is_same_v<Body, plan::CopyOut> || std::is_same_v<Body, plan::Save> ||
                      std::is_same_v<Body, plan::Load> || std::is_same_v<Body, plan::CopyIn>)
          return Work::storage;
        if constexpr (std::is_same_v<Body, plan::Feed> || std::is_same_v<Body, plan::Publish>)
          return Work::input;
        return Work::compute;
      },
      op.body);
}

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

template <class Values>
std::string column(const Values& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

Json kinds_json(const std::array<std::int64_t, plan::buffer_kind_count>& by_kind) {
  return Json(by_kind);
}

/// Buffers of a space that are alike but for the numbers in their names: "layers.*.x".
struct Holder {
  std::string name;
  plan::BufferKind kind{};
  bool persistent = false;
  std::int64_t count = 0;
  std::int64_t size_bytes = 0;  // of all
};

/// "layers.12.x" -> "layers.*.x".
std::string without_numbers(std::string_view name) {
  std::string common;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) {
      common += c;
    } else if (common.empty() || common.back() != '*') {
      common += '*';
    }
  }
  return common;
}

/// What has bytes in the space while `op` runs, largest first.
std::vector<Holder> holders_at(const plan::Schedule& schedule, const plan::Segment& segment,
                               plan::MemorySpace space, std::size_t op) {
  std::map<std::pair<std::string, int>, Holder> groups;
  const auto add = [&](const plan::Buffer& buffer) {
    if (buffer.space != space) return;
    std::string common = without_numbers(buffer.name);
    Holder& holder = groups[{common, static_cast<int>(buffer.kind) * 2 + buffer.persistent}];
    holder.name = holder.count == 0 ? buffer.name : std::move(common);
    holder.kind = buffer.kind;
    holder.persistent = buffer.persistent;
    holder.count += 1;
    holder.size_bytes += buffer.size_bytes;
  };
  for (const plan::Buffer& buffer : schedule.buffers)
    if (buffer.persistent) add(buffer);
  for (const plan::Lifetime& life : plan::lifetimes_of(segment))
    if (life.begin <= op && op < life.end) add(schedule.buffer(life.buffer));
  std::vector<Holder> holders;
  for (auto& [key, holder] : groups) holders.push_back(std::move(holder));
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.size_bytes > b.size_bytes; });
  return holders;
}

class Writer {
 public:
  explicit Writer(const PlanRecord& record)
      : record_(record), plan_(record.plan), text_(record.plan.schedule) {}

  std::string write() {
    Json head = {{"model", record_.model},
                 {"fits", record_.outlook.fits},
                 {"refusal", record_.refusal},
                 {"ranks", plan_.world_size},
                 {"stage", plan_.stage},
                 {"parameters", plan_.parameter_count},
                 {"overhead_bytes", plan_.overhead_bytes},
                 {"hash", fmt::format("{:016x}", plan_.hash)},
                 {"on_gpu", plan_.on_gpu}};
    for (const char* list :
         {"facts", "values", "notes", "decisions", "suggestions", "kinds", "works", "lanes"})
      head[list] = Json::array();
    for (const auto& [name, value] : record_.facts) head["facts"].push_back({name, value});
    for (const spec::Provenance& entry : record_.values)
      head["values"].push_back({entry.key, entry.value, entry.source});
    head["notes"] = record_.notes;
    if (record_.shown.shown_micro_steps < record_.shown.micro_steps)
      head["left_out"] = fmt::format(
          "Of the {} micro-steps of a step {} are drawn; those left out, behind the "
          "first, are like the middle ones, and a save has their time too.",
          record_.shown.micro_steps, record_.shown.shown_micro_steps);
    for (int kind = 0; kind < plan::buffer_kind_count; ++kind)
      head["kinds"].push_back(name_of(static_cast<plan::BufferKind>(kind)));
    for (const char* name : work_names) head["works"].push_back(name);
    for (const plan::Lane& lane : plan_.schedule.lanes) head["lanes"].push_back(lane.name);
    write_choices(head);
    if (const auto& node = record_.outlook.node)
      head["node"] = {{"bytes", node->needed_bytes},
                      {"outside_bytes", node->outside_bytes},
                      {"budget_bytes", node->budget ? Json(node->budget->size_bytes) : Json()}};
    if (const auto& disk = record_.outlook.disk)
      head["disk"] = {{"bytes", disk->needed_bytes},
                      {"free_bytes", disk->free_bytes ? Json(*disk->free_bytes) : Json()}};
    if (const auto& times = record_.outlook.times)
      head["times"] = {{"step_s", times->step_s},
                       {"micro_step_s", times->micro_step_s},
                       {"update_s", times->update_s},
                       {"save_s", saves_on_the_way() ? Json(times->save_s) : Json()},
                       {"save_wait_s", saves_on_the_way() ? Json(times->save_wait_s) : Json()}};
    std::string text = safe_json(head);
    text.pop_back();  // the closing brace: columns follow, written without a tree
    // One after another: segments() refers to what lists() has numbered.
    text += ",\"buffers\":" + buffers();
    text += ",\"lists\":" + lists();
    text += ",\"segments\":" + segments();
    text += ",\"spans\":" + spans();
    text += ",\"spaces\":[";
    bool is_first = true;
    for (int s = 0; s < plan::memory_space_count; ++s) {
      const auto space = static_cast<plan::MemorySpace>(s);
      const auto peak = render::peak_of(plan_, space);
      if (!peak) continue;
      text += (is_first ? "" : ",") + space_json(space, *peak);
      is_first = false;
    }
    return text + "]}";
  }

 private:
  bool saves_on_the_way() const { return record_.outlook.saves == render::Saves::on_the_way; }

  void write_choices(Json& head) const {
    for (const plan::Decision& decision : plan_.decisions) {
      Json alternatives = Json::array();
      for (const plan::Alternative& other : decision.alternatives)
        alternatives.push_back({other.value, other.effect});
      head["decisions"].push_back({{"subject", decision.subject},
                                   {"value", decision.value},
                                   {"reason", decision.reason},
                                   {"alternatives", alternatives}});
    }
    for (const render::Suggestion& suggestion : record_.outlook.suggestions) {
      Json needs = Json::array();
      for (const render::SpaceBytes& need : suggestion.needs)
        needs.push_back({need.space, need.size_bytes});
      head["suggestions"].push_back(
          {{"change", suggestion.change}, {"needs", needs}, {"effect", suggestion.effect}});
    }
  }

  std::string buffers() const {
    Json names = Json::array();
    std::vector<int> kinds;
    std::vector<std::int64_t> sizes;
    for (const plan::Buffer& buffer : plan_.schedule.buffers) {
      names.push_back(buffer.name);
      kinds.push_back(static_cast<int>(buffer.kind));
      sizes.push_back(buffer.size_bytes);
    }
    return fmt::format("{{\"name\":{},\"kind\":{},\"bytes\":{}}}", safe_json(names), column(kinds),
                       column(sizes));
  }

  /// The operations of every segment that is drawn, once.
  std::string lists() {
    std::string text = "[";
    for (const ShownSegment& shown : record_.shown.segments) {
      const plan::Segment* segment = plan_.schedule.find(shown.kind);
      if (list_of_.contains(segment)) continue;
      const std::size_t position = list_of_.size();
      list_of_[segment] = position;
      Json names = Json::array();
      Json does = Json::array();
      std::vector<int> lanes;
      std::vector<int> works;
      for (const plan::Op& op : segment->ops) {
        names.push_back(text_.name_of(op));
        does.push_back(text_.of(op));
        lanes.push_back(static_cast<int>(op.lane));
        works.push_back(static_cast<int>(work_of(op)));
      }
      text += fmt::format("{}{{\"name\":{},\"does\":{},\"lane\":{},\"work\":{}}}",
                          position == 0 ? "" : ",", safe_json(names), safe_json(does),
                          column(lanes), column(works));
    }
    return text + "]";
  }

  std::string segments() const {
    Json all = Json::array();
    for (const ShownSegment& shown : record_.shown.segments)
      all.push_back({{"kind", name_of(shown.kind)},
                     {"part", shown.part},
                     {"name", shown.name},
                     {"list", list_of_.at(plan_.schedule.find(shown.kind))},
                     {"first", shown.first_span},
                     {"count", shown.span_count},
                     {"begin", nanoseconds(shown.begin_s)},
                     {"end", nanoseconds(shown.end_s)}});
    return safe_json(all);
  }

  std::string spans() const {
    std::vector<std::int64_t> begins;
    std::vector<std::int64_t> ends;
    for (const plan::Span& span : record_.shown.timeline.spans) {
      begins.push_back(nanoseconds(span.begin_s));
      ends.push_back(nanoseconds(span.end_s));
    }
    return fmt::format("{{\"begin\":{},\"end\":{}}}", column(begins), column(ends));
  }

  const plan::Op& op_of(const plan::Span& span) const {
    return plan_.schedule.find(span.segment)->ops[index(span.op)];
  }

  /// Where buffers of the space begin (+number) and end (-number), counted from 1, in the order of the
  /// lists; and the same in the order of time.
  std::string changes(plan::MemorySpace space) const {
    const std::vector<plan::Span>& spans = record_.shown.timeline.spans;
    std::vector<std::size_t> at;
    std::vector<std::int64_t> change;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const BufferId born = plan::acquired_by(op_of(spans[i]));
      const BufferId gone = plan::released_by(op_of(spans[i]));
      const BufferId id = born != plan::no_buffer ? born : gone;
      if (id == plan::no_buffer || plan_.schedule.buffer(id).space != space) continue;
      const auto number = static_cast<std::int64_t>(index(id)) + 1;
      at.push_back(i);
      change.push_back(born != plan::no_buffer ? number : -number);
    }
    std::vector<std::size_t> by_time(at.size());
    std::iota(by_time.begin(), by_time.end(), std::size_t{0});
    std::stable_sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
      return spans[at[a]].end_s < spans[at[b]].end_s;
    });
    return fmt::format("\"at\":{},\"change\":{},\"by_time\":{}", column(at), column(change),
                       column(by_time));
  }

  /// The operation of the plan at which the space's peak is reached, and its place in what is drawn.
  Json peak_json(plan::MemorySpace space) const {
    const plan::Peak* largest = render::largest_peak(plan_, space);
    const plan::Segment& segment = *plan_.schedule.find(largest->segment);
    const std::size_t op = index(largest->op);
    Json peak = {{"bytes", largest->size_bytes},
                 {"segment", name_of(largest->segment)},
                 {"op", op},
                 {"name", op < segment.ops.size() ? text_.name_of(segment.ops[op]) : ""},
                 {"by_kind", kinds_json(largest->by_kind)},
                 {"span", nullptr},
                 {"holders", Json::array()}};
    for (const ShownSegment& shown : record_.shown.segments) {
      // The steady state is drawn last: of two steps the one under a save holds as much.
      if (plan_.schedule.find(shown.kind) != &segment || op >= shown.span_count) continue;
      peak["span"] = shown.first_span + op;
      break;
    }
    std::vector<Holder> holders = holders_at(plan_.schedule, segment, space, op);
    std::int64_t rest_count = 0;
    std::int64_t rest_bytes = 0;
    for (std::size_t i = most_holders; i < holders.size(); ++i) {
      rest_count += holders[i].count;
      rest_bytes += holders[i].size_bytes;
    }
    if (holders.size() > most_holders) holders.resize(most_holders);
    for (const Holder& holder : holders)
      peak["holders"].push_back({{"name", holder.name},
                                 {"kind", static_cast<int>(holder.kind)},
                                 {"always", holder.persistent},
                                 {"count", holder.count},
                                 {"bytes", holder.size_bytes}});
    peak["rest_count"] = rest_count;
    peak["rest_bytes"] = rest_bytes;
    return peak;
  }

  std::string space_json(plan::MemorySpace space, const render::SpacePeak& peak) const {
    const auto& budget = record_.outlook.budgets[index(space)];
    Json head = {{"name", name_of(space)},
                 {"arena_bytes", peak.peak_bytes},
                 {"budget_bytes", budget ? Json(budget->size_bytes) : Json()},
                 {"budget_reason", budget ? Json(budget->reason) : Json()},
                 {"peak", peak_json(space)},
                 {"by_phase", Json::array()},
                 {"always", Json::array()}};
    for (const render::PhaseRow& row : render::phase_rows(plan_, space, record_.outlook.saves)) {
      const auto& ops = plan_.schedule.find(row.peak->segment)->ops;
      const std::size_t op = index(row.peak->op);
      Json segments = Json::array();
      for (const plan::SegmentKind kind : row.segments) segments.push_back(name_of(kind));
      head["by_phase"].push_back({{"phase", row.name},
                                  {"bytes", row.peak->size_bytes},
                                  {"by_kind", kinds_json(row.peak->by_kind)},
                                  {"segment", name_of(row.peak->segment)},
                                  {"op", op},
                                  {"name", op < ops.size() ? text_.name_of(ops[op]) : ""},
                                  {"segments", std::move(segments)}});
    }
    for (std::size_t i = 0; i < plan_.schedule.buffers.size(); ++i)
      if (plan_.schedule.buffers[i].persistent && plan_.schedule.buffers[i].space == space)
        head["always"].push_back(i);
    const auto moments = plan::bytes_over_time(plan_.schedule, record_.shown.timeline, space);
    const auto most = std::max_element(
        moments.begin(), moments.end(),
        [](const plan::Moment& a, const plan::Moment& b) { return a.size_bytes < b.size_bytes; });
    head["most_in_time"] = {{"bytes", most->size_bytes}, {"at", nanoseconds(most->time_s)}};
    std::string text = safe_json(head);
    text.pop_back();
    return text + "," + changes(space) + "}";
  }

  const PlanRecord& record_;
  const plan::Plan& plan_;
  const plan::OpText text_;
  std::map<const plan::Segment*, std::size_t> list_of_;
};

}  // namespace

std::string to_json(const PlanRecord& record) {
  return Writer(record).write();
}

}  // namespace underkeel::report
