#pragma once
// How long a run is and how much it evaluates, as far as it is known before it starts.

#include <cstdint>
#include <optional>

#include "planned.h"
#include "spec/run_config.h"
#include "train/run_length.h"

namespace underkeel::apps {

/// Of a run whose data have been read; of others where max_steps says so.
std::optional<train::RunLength> length_of(const spec::RunConfig& run, std::int64_t ranks,
                                          const std::optional<DataFacts>& data);

/// Samples of one evaluation: of data that have been read, or held out by number; none where not known.
std::optional<std::int64_t> evaluation_samples(const spec::RunConfig& run,
                                               const std::optional<DataFacts>& data);

}  // namespace underkeel::apps
