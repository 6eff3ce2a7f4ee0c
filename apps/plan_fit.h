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

struct FitWords {
  bool json = false;
  std::optional<std::int64_t> nvme_bytes;  // asked about; nothing of a run lies there
  /// Optimizer steps of a run; none where the data are not known.
  std::function<std::optional<std::int64_t>(const spec::RunConfig&)> total_steps;
};

/// Prints what was found.
/// Errors:  does_not_fit with the smallest peak that was reached.
Result<void> show_best_fit(const planner::FitQuestion& question, const FitWords& words);

}  // namespace underkeel::apps
