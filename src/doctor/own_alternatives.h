#pragma once
// What would cure it, for our own engine: each row was planned, so it is accepted when it is given back.

#include <string>
#include <vector>

#include "doctor/forecast.h"
#include "planner/fit.h"
#include "spec/value.h"

namespace underkeel::doctor {

/// An offload of the config, which has to be switched off where it acts.
struct AskedOffload {
  std::string words;  // that switch it off
  bool acts_at_stage_3_only = false;
};
/// What a DeepSpeed config says that a row has to change besides.
struct ConfigWords {
  std::vector<AskedOffload> offloads;
  std::vector<std::string> free_batch;  // words that leave its sizes of the batch to the run file
};
ConfigWords config_words(const spec::Value& config);

/// Stages, recomputation and micro-batches at the same global batch, without offload; the smallest change first. At most
/// `most_plans` are planned; a row whose model state alone is beyond the budget fails without a plan.
std::vector<Alternative> own_alternatives(const planner::FitQuestion& question,
                                          const ConfigWords& config);

/// Bytes of weights, gradients and optimizer on one rank: less than any plan takes.
double least_state_bytes(const planner::FitQuestion& question, int stage);
/// What a rank may take of the memory that holds model state: the GPU's, or its share of the node's. Infinity when nobody
/// said.
double state_limit(const planner::FitQuestion& question);

}  // namespace underkeel::doctor
