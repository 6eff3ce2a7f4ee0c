#pragma once
// How many tokens the micro-batches of a run have at most: what buffers are sized for.

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "spec/run_config.h"

namespace underkeel::planner {

/// Tokens of the largest micro-batch of `sequences`: the largest that the run meets once its data have been read, until
/// then as many of the cut-off.
std::int64_t training_rows(const spec::RunConfig& run, std::int64_t sequences);
/// The same of evaluations; 0 where there are none.
std::int64_t evaluation_rows(const spec::RunConfig& run, std::int64_t sequences);

/// Both numbers once the data are known: the largest micro-batch, and as many of the longest sample.
std::vector<plan::Decision> decisions_on_rows(const spec::RunConfig& run);

}  // namespace underkeel::planner
