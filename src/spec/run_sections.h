#pragma once
// Shared by the parts of the run file's reader. Private to spec.

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "spec/fields.h"
#include "spec/run_config.h"

namespace underkeel::spec {

/// The merged top level of a run file while it is being read.
struct RunReading {
  Fields& fields;
  Problems& problems;
  RunConfig& run;
  const Value& root;
  std::string file_name;  // "train.yaml"

  /// The value that was read, or `fallback`; notes where it came from.
  template <class T>
  T keep(std::string_view key, std::optional<T> value, T fallback) {
    const T kept = value.value_or(fallback);
    note_source(key, fmt::format("{}", kept), value.has_value());
    return kept;
  }
  void note_source(std::string_view key, std::string value, bool is_given) {
    const Value* given = is_given ? root.find(key) : nullptr;
    run.provenance.push_back({std::string(key), std::move(value),
                              given == nullptr    ? "default"
                              : given->overridden ? "command line"
                                                  : file_name});
  }
};

/// The source that was noted for `key`; "default" when none was.
std::string source_of(const RunConfig& run, std::string_view key);

constexpr std::int64_t most_sequences = 1 << 24;
constexpr std::int64_t most_steps = std::int64_t{1} << 40;

// The parts of a run file, in the order in which they are read: later ones look at what earlier
// ones found.
void read_stage(RunReading& reading);
void read_model(RunReading& reading);
void read_precision(RunReading& reading);
void read_recomputation(RunReading& reading);
void read_data(RunReading& reading);
void read_optimizer(RunReading& reading);
void read_schedule(RunReading& reading);  // of the learning rate
void read_steps(RunReading& reading);
void read_events(RunReading& reading);
void read_time_limit(RunReading& reading);
/// Keys that exclude each other, whatever becomes of each of them.
void check_conflicts(RunReading& reading);
/// `underkeel:`, the mapping of what neither LLaMA-Factory nor DeepSpeed has.
void read_underkeel(RunReading& reading);

/// A DeepSpeed config, already parsed, held against the run file's values.
struct DeepspeedSource {
  Value root;
  std::string name;  // "ds_config.json", or the run file's when it is inline
};
void read_deepspeed(const DeepspeedSource& source, const std::optional<WorldSize>& world,
                    Problems& problems, RunConfig& run);

/// The batch equation's problem, if there is one.
std::optional<Problem> batch_problem(const RunConfig& run, const WorldSize& world);

}  // namespace underkeel::spec
