#pragma once
// The rows of an answer: which of two runs stands before the other, and which makes the other needless.

#include <array>
#include <cstdint>
#include <vector>

#include "planner/best_fit.h"

namespace underkeel::planner {

/// Whether the first takes no more of any space than the second.
bool needs_no_more(const std::array<std::int64_t, plan::memory_space_count>& one,
                   const std::array<std::int64_t, plan::memory_space_count>& other);

/// Puts a run where it belongs among `rows`, fastest first and at most most_fitting_runs. A run that is no faster than
/// another, in steps, evaluations and saves, and needs no less of any memory or of the free disk (by 1% at least) does not
/// stand beside it; saves count where some are made. Of two with the same figures the one with the fewest words does.
void insert_run(FittingRun run, std::vector<FittingRun>& rows);

}  // namespace underkeel::planner
