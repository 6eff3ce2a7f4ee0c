#pragma once
// Runs plans in tests the way `train` does, one thread a rank.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "planner/planner.h"
#include "support/golden.h"

namespace underkeel::test {

/// One rank of a running plan.
struct Rank {
  const plan::Plan& plan;
  exec::Executor& executor;
  comm::Communicator& control;
  int rank = 0;
};

struct EngineOptions {
  const kernels::KernelTable* kernels = nullptr;  // none: the reference kernels
  exec::ExecutorOptions executor;
  bool on_gpus =
      false;  // each rank on the GPU of its number; the plan and the kernels are for GPUs
};

/// Calls body(rank) on a thread for every rank of the plan and returns when all have ended. A rank that
/// throws ends the others.
void run_ranks(const plan::Plan& plan, const EngineOptions& options,
               const std::function<void(Rank&)>& body);

/// The inputs of a micro-step on `batch`, scaled for `window_targets` trained tokens.
exec::Inputs inputs_of(const FlatBatch& batch, std::int64_t window_targets);

/// Loads the weights of a model folder into the rank's homes.
void load_weights(Rank& rank, const std::filesystem::path& model_folder);

/// A parameter's values out of its unit's home (what == gradient, weights, ...), whole, f32; for plans whose
/// home is whole on the rank.
std::vector<float> whole_values(const Rank& rank, const std::string& parameter,
                                plan::BufferId plan::Unit::*what);

/// A request for a tiny run on one rank: f32, stage 0, no recompute, evaluation off.
planner::Request request_for(const spec::ModelSpec& model, std::int64_t max_rows);

}  // namespace underkeel::test
