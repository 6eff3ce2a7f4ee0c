#pragma once
// What would cure it, for our own engine: each row was planned, so it is accepted when it is given back.

#include <vector>

#include "doctor/forecast.h"
#include "planner/fit.h"

namespace underkeel::doctor {

/// Stages, recomputation and micro-batches at the same global batch, the smallest change first. At most `most_plans`
/// are planned; a row whose model state alone is beyond the budget fails without a plan.
std::vector<Alternative> own_alternatives(const planner::FitQuestion& question);

/// Bytes of weights, gradients and optimizer on one rank: less than any plan takes.
double least_state_bytes(const planner::FitQuestion& question, int stage);
/// What a rank may take of the memory that holds model state: the GPU's, or its share of the node's. Infinity when nobody
/// said.
double state_limit(const planner::FitQuestion& question);

}  // namespace underkeel::doctor
