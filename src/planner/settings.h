#pragma once
// What may be set differently in a run without another global batch or another result: as values, and as the words
// that ask for them on the same command line.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/fit.h"
#include "spec/run_config.h"

namespace underkeel::planner {

struct Settings {
  spec::Recompute recompute = spec::Recompute::block;
  std::int64_t micro_batch = 1;  // sequences
  std::int64_t accumulation = 1;
  int stage = 0;
  std::optional<std::int64_t> prefetch_elements;  // of stage 3; none: the planner's own choice
  std::int64_t evaluation_batch = 1;

  bool operator==(const Settings&) const = default;
};

/// Those of a run.
Settings settings_of(const spec::RunConfig& run);
/// "auto", "none", "cheap", "block".
std::string_view name_of(spec::Recompute level);
/// The words that turn `run` into one of these settings; those that it has already need none. A stage brings a
/// DeepSpeed config; where there was none the sums over micro-steps stay f32.
std::vector<std::string> words_for(const spec::RunConfig& run, const Settings& settings);

/// The run as it would be read with these settings, for estimates.
spec::RunConfig with_settings(spec::RunConfig run, const Settings& settings);

/// A run read again from its file, with more words behind its own.
struct ChangedRun {
  spec::RunConfig run;
  std::vector<std::string> words;  // those that were added
};
/// With `words`, and with what must follow where a DeepSpeed config repeats a number. None when it cannot be read.
std::optional<ChangedRun> read_changed(const spec::RunConfig& run,
                                       const std::vector<std::string>& words,
                                       std::int64_t world_size);

/// All divisors of a positive number, ascending.
std::vector<std::int64_t> divisors_of(std::int64_t value);

}  // namespace underkeel::planner
