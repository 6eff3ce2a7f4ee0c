#pragma once
// Compiles (model x run x machines) into a Plan, pass by pass. See docs/planner.md for the passes.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::planner {

/// Everything that a plan depends on.
struct Request {
  spec::ModelSpec model;
  bool on_gpu = false;  // `device` is a GPU's memory
  std::int64_t world_size = 1;
  int stage = 0;
  DType weight_type = DType::f32;      // what kernels read and what is exported
  DType accumulate_type = DType::f32;  // of the gradient's home
  bool keeps_masters = true;  // f32 masters and moments; false: all is in weight_type, bf16
  std::uint64_t seed = 0;     // of the roundings without masters
  spec::Recompute recompute = spec::Recompute::block;
  std::int64_t max_rows = 0;             // tokens of the largest micro-batch
  std::int64_t max_sequence_rows = 0;    // of its longest sequence, for costs; 0: all of it
  std::int64_t max_evaluation_rows = 0;  // 0: no evaluation
  std::int64_t mean_rows = 0;  // of the micro-batches, for forecasts of time; 0: not known
  std::int64_t mean_evaluation_rows = 0;  // likewise
  std::int64_t max_generation_rows = 0;   // 0: no generation
  std::int64_t cache_rows = 0;  // positions whose keys and values generation keeps; 0: none
  std::int64_t accumulation_steps = 1;
  bool train = true;
  bool save = true;
  bool guards_buffers = false;  // lay buffers out apart, with room behind each that nothing writes
  bool reloads = false;         // weights are loaded again after the last update: the best model's
  spec::OptimizerConfig optimizer;
  spec::ZeroConfig bounds;
  std::int64_t overhead_bytes = 0;        // of the process, measured or from a table
  std::vector<plan::Decision> decisions;  // made on the way from the run to this request
};

/// Whether f32 copies stand beside narrower weights.
bool has_masters(const Request& request);
DType moment_type(const Request& request);

/// The request of a run file on `world_size` ranks.
Request request_of(const spec::ModelSpec& model, const spec::RunConfig& run,
                   std::int64_t world_size);

/// The plan, verified after every pass and as a whole; whether it fits a budget is another question
/// (fit.h).
plan::Plan make_plan(const Request& request);

}  // namespace underkeel::planner
