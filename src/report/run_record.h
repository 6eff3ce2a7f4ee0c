#pragma once
// What a run's folder says of it, as plain data: steps, evaluations, saves, memory, values. Made by
// RunFolder (run_folder.h), shown by to_json().

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace underkeel::report {

/// One optimizer step. What is not known is NaN.
struct StepPoint {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_s = 0;
  double step_s = 0;
};

struct EvaluationPoint {
  std::int64_t step = 0;
  double loss = 0;
};

struct SavePoint {
  std::int64_t step = 0;
  std::string folder;
  std::int64_t size_bytes = 0;
  double elapsed_s = 0;
  double waited_s = 0;
  bool is_complete = false;
};

struct PlannedAndMeasured {
  std::optional<std::int64_t> planned_bytes;
  std::optional<std::int64_t> measured_bytes;
};
struct SpaceMemory {
  PlannedAndMeasured arena;
  std::map<std::string, PlannedAndMeasured> by_segment;
};
struct RankMemory {
  std::int64_t rank = 0;
  std::map<std::string, SpaceMemory> spaces;
  PlannedAndMeasured process;
  std::int64_t ranks_in_process = 1;
};
/// The arena before, during and after a save, an evaluation or a resume.
struct MemoryEvent {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  std::string what;
  std::string space;
  std::int64_t before_bytes = 0;
  std::int64_t during_peak_bytes = 0;
  std::int64_t after_bytes = 0;
};
struct MemoryRecord {
  std::vector<RankMemory> ranks;
  std::vector<MemoryEvent> events;
};

struct UsedValue {
  std::string key;
  std::string value;
  std::string source;
};

enum class RunState { unknown, unfinished, finished, stopped };

struct RunRecord {
  std::string folder;
  RunState state = RunState::unknown;
  std::string stop_reason;
  double last_event_s = 0;  // seconds since 1970; 0: not known
  /// Resident of the process that writes the log, at the last step.
  PlannedAndMeasured process;
  std::optional<std::int64_t> total_steps;
  std::string curve_source;  // the file that the steps come from
  std::vector<StepPoint> steps;
  std::int64_t step_count = 0;  // that were read; more than steps when those were thinned out
  std::vector<EvaluationPoint> evaluations;
  std::vector<SavePoint> saves;
  std::vector<std::string> notices;
  std::optional<MemoryRecord> memory;
  std::vector<UsedValue> values;
  /// Files that are not there or not as they should be, a sentence each.
  std::vector<std::string> remarks;
};

/// One JSON object for the page.
std::string to_json(const RunRecord& record);

}  // namespace underkeel::report
