#pragma once
// underkeel plan --fit: the fastest settings that fit, as a table or as JSON.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint_space.h"
#include "planned.h"
#include "planner/fit.h"
#include "run_arguments.h"

namespace underkeel::apps {

/// The disk of the output folder.
struct FitDisk {
  std::int64_t free_bytes = 0;
  std::string source;  // of that figure
  std::function<io::SpaceNeed(const spec::RunConfig&)> need;
};

struct FitWords {
  bool json = false;
  std::vector<SpaceBudget> budgets;        // of --fit
  std::optional<std::int64_t> nvme_bytes;  // asked about; nothing of a run lies there
  std::optional<DataFacts> data;           // when they were read
  std::optional<FitDisk> disk;             // where it is known
};

/// Prints what was found.
/// Errors:  does_not_fit with the smallest peak that was reached, or with what the disk lacks.
Result<void> show_best_fit(const planner::FitQuestion& question, const FitWords& words);

}  // namespace underkeel::apps
