#pragma once
// The settings that a search for the fastest run looks at (best_fit.h): what may change without changing the result.

#include <cstdint>
#include <vector>

#include "planner/fit.h"
#include "planner/settings.h"

namespace underkeel::planner {

/// Micro-batches at the same global batch: divisors of what a rank takes in a step. Of many those that lie apart by about the
/// same factor, the run's own, the smallest and the largest among them.
struct MicroBatches {
  std::vector<std::int64_t> tried;  // ascending
  std::int64_t passed_over = 0;     // how many lie between those
};
MicroBatches micro_batches_to_search(const FitQuestion& question);

/// The grid that is searched, evaluation batches left as they are.
std::vector<Settings> settings_to_search(const FitQuestion& question);
/// Evaluation batches that are tried where the run's own does not fit: it and its divisors, largest first.
std::vector<std::int64_t> evaluation_batches_to_search(const FitQuestion& question);

}  // namespace underkeel::planner
