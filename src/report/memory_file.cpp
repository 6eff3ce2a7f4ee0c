#include "report/memory_file.h"

#include "report/json_scalars.h"

namespace underkeel::report {

namespace {

void set(PlannedAndMeasured& figures, const std::string& name, const io::JsonScalar& value) {
  if (name == "planned_peak_bytes" || name == "planned_total_bytes")
    figures.planned_bytes = whole_of(value);
  if (name == "measured_peak_bytes" || name == "max_rss_bytes")
    figures.measured_bytes = whole_of(value);
}

/// Path behind ranks[i].
void take_rank(RankMemory& rank, io::JsonPath path, const io::JsonScalar& value) {
  const std::string& first = path[0].key;
  if (path.size() == 1 && first == "rank") {
    rank.rank = whole_of(value).value_or(0);
  } else if (path.size() == 2 && first == "process") {
    set(rank.process, path[1].key, value);
    if (path[1].key == "ranks_in_process") rank.ranks_in_process = whole_of(value).value_or(1);
  } else if (path.size() == 3 && first == "spaces") {
    set(rank.spaces[path[1].key].arena, path[2].key, value);
  } else if (path.size() == 5 && first == "spaces" && path[2].key == "by_segment") {
    set(rank.spaces[path[1].key].by_segment[path[3].key], path[4].key, value);
  }
}

void take_event(MemoryEvent& event, const std::string& name, const io::JsonScalar& value) {
  if (name == "what") event.what = text_of(value).value_or("");
  if (name == "space") event.space = text_of(value).value_or("");
  const std::int64_t whole = whole_of(value).value_or(0);
  if (name == "rank") event.rank = whole;
  if (name == "step") event.step = whole;
  if (name == "before_bytes") event.before_bytes = whole;
  if (name == "during_peak_bytes") event.during_peak_bytes = whole;
  if (name == "after_bytes") event.after_bytes = whole;
}

/// Elements of a list as they come; one that holds nothing of interest takes no room.
template <class Element>
struct Elements {
  std::vector<Element> list{};
  std::int64_t position = -1;

  Element& at(io::JsonPath path) {
    if (path[1].index != position) list.emplace_back();
    position = path[1].index;
    return list.back();
  }
};

}  // namespace

Result<MemoryRecord> read_memory_file(std::string_view text) {
  Elements<RankMemory> ranks;
  Elements<MemoryEvent> events;
  UK_TRY_VOID(
      for_each_scalar(text, "memory.json", [&](io::JsonPath path, const io::JsonScalar& value) {
        if (path.size() < 3 || path[1].index < 0) return;
        if (path[0].key == "ranks") take_rank(ranks.at(path), path.subspan(2), value);
        if (path[0].key == "events" && path.size() == 3)
          take_event(events.at(path), path[2].key, value);
      }));
  if (ranks.list.empty()) return fail(ErrorCode::bad_file, "it has no `ranks`", "memory.json");
  return MemoryRecord{std::move(ranks.list), std::move(events.list)};
}

}  // namespace underkeel::report
