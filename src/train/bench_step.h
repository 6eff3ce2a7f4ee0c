#pragma once
// Times optimizer steps of a shape: random weights, synthetic tokens, through the executor that trains.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::train {

struct BenchStepRequest {
  spec::ModelSpec model;
  spec::RunConfig run;  // device, precision, recompute, optimizer and budgets count
  std::int64_t sequence_tokens = 2048;
  std::int64_t sequences_per_micro_batch = 4;
  std::int64_t accumulation_steps = 8;
  std::int64_t steps = 5;       // timed, after one that is not
  int ranks = 1;                // threads, each with a GPU of its own where there are GPUs
  double matmul_timing_s = 30;  // on a GPU: at most so long to choose algorithms of products
  std::string hardware;  // a hardware.yaml to predict the step's time from; empty: no prediction
  bool graphs = true;    // on a GPU: short launches as graphs; else one by one
  double floor_s = 10;   // one rank on a GPU: how long the floor is measured; 0: not at all
};

struct BenchStepReport {
  std::string device;
  std::vector<double> step_s;
  std::int64_t skipped_steps = 0;  // whose gradients were not finite: nothing was updated
  std::vector<double> losses;      // a mean over the tokens of each step, the untimed one first
  double median_step_s = 0;
  double tokens_per_s = 0;  // of all ranks
  double flops_per_s = 0;   // of one rank: of products and attention, recomputation included
  /// One rank on a GPU: what the micro-steps' products and attentions alone take, in their order and back to back. The
  /// share of the step's time that they are is floor_step_s / median_step_s. 0: not measured.
  double floor_step_s = 0;
  int floor_pieces = 0;  // of a micro-step, with fresh numbers for each
  bool floor_overflowed =
      false;  // its numbers did: such products need less power, and the figure is dropped
  double predicted_step_s = 0;           // from the rates of BenchStepRequest::hardware
  std::int64_t tokens_per_step = 0;      // of all ranks
  std::int64_t device_bytes = 0;         // of the arena
  std::int64_t driver_bytes = 0;         // on a GPU: what the card has less, arena included
  std::int64_t driver_growth_bytes = 0;  // of it between the seal and the end
  std::size_t graph_count = 0;           // graphs that short launches were captured into
  double start_s = 0;                    // from nothing to weights loaded
};

/// Errors:  does_not_fit with changes that fit; those of the executor.
Result<BenchStepReport> bench_step(const BenchStepRequest& request);

/// Names that shape_of() knows.
std::vector<std::string> shape_names();
/// config.json of a well-known shape.
/// Errors:  bad_config naming the nearest one.
Result<spec::ModelSpec> shape_of(const std::string& name);

}  // namespace underkeel::train
