#pragma once
// underkeel plan --fit: the fastest settings that fit, as a table or as JSON.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "planner/fit.h"

namespace underkeel::apps {

struct RunLength {
  std::int64_t steps = 0;                      // of the optimizer, to the end
  std::optional<std::int64_t> steps_of_epoch;  // none where the data are not known
};

struct FitWords {
  bool json = false;
  std::optional<std::int64_t> nvme_bytes;  // asked about; nothing of a run lies there
  /// Of a run; none where the data are not known.
  std::function<std::optional<RunLength>(const spec::RunConfig&)> length;
  std::optional<std::int64_t> evaluation_samples;  // of one evaluation; none where not known
};

/// Prints what was found.
/// Errors:  does_not_fit with the smallest peak that was reached.
Result<void> show_best_fit(const planner::FitQuestion& question, const FitWords& words);

}  // namespace underkeel::apps
