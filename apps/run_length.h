#pragma once
// How long a run is and how often it saves and evaluates, as far as it is known before it starts.

#include <cstdint>
#include <optional>

#include "planned.h"
#include "spec/run_config.h"

namespace underkeel::apps {

struct RunLength {
  std::int64_t steps = 0;                      // of the optimizer, to the end
  std::optional<std::int64_t> steps_of_epoch;  // none where the data are not known
};

/// Of a run whose data have been read; of others where max_steps says so.
std::optional<RunLength> length_of(const spec::RunConfig& run, std::int64_t ranks,
                                   const std::optional<DataFacts>& data);

/// Samples of one evaluation: of data that have been read, or held out by number; none where not known.
std::optional<std::int64_t> evaluation_samples(const spec::RunConfig& run,
                                               const std::optional<DataFacts>& data);

/// Evaluations, and saves (of the best model at most one for each evaluation), the last step's included; none where
/// epochs are asked about and their steps are not known.
std::optional<std::int64_t> evaluation_count(const spec::RunConfig& run, const RunLength& length);
std::optional<std::int64_t> save_count(const spec::RunConfig& run, const RunLength& length);

}  // namespace underkeel::apps
