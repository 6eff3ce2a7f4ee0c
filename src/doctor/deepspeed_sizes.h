#pragma once
// How DeepSpeed cuts a model: what a rank owns, what it gathers, in elements and bytes. Pure functions of sizes and
// settings; deepspeed_memory.h adds them up.

#include <optional>

#include "doctor/activations.h"
#include "doctor/deepspeed_settings.h"
#include "doctor/model_sizes.h"

namespace underkeel::doctor {

/// Context, library workspaces and NCCL's buffers of a rank: 1.2 to 1.4 GB on a H200, 1.80 GB in and after a save
/// (bench/results/2026-11-deepspeed-gpu-peaks.md); less on smaller cards, by general experience.
inline constexpr Range context_bytes = {0.4e9, 1.81e9};

struct DeepspeedRun {
  const ModelSizes& sizes;
  DeepspeedSettings settings;
  double ranks = 1;  // of the ZeRO group
  double ranks_on_node = 1;
  double accumulation_steps = 1;
  double quantised_bytes = 0.5;     // of a quantised element, with its scales
  BackwardActivations activations;  // zero: of state alone
  Range evaluation;
  bool evaluates = false;
  bool saves = true;
  bool saves_adapters_only = false;
  bool built_sharded = true;  // zero.Init: the model is split as it is built
  bool has_process = true;    // add the context, the allocator's waste and the process on the host
  std::optional<double> device_limit;  // of a rank, in bytes, where it is known
};

/// S: trainable elements of one rank's share, rounded as DeepSpeed rounds them.
double share_of(const DeepspeedRun& run);
/// Elements of parameters that stage 3 keeps gathered (param_persistence_threshold and the cap on their sum).
double persistent_elements(const ModelSizes& sizes, const DeepspeedSettings& settings);
/// The largest sub-group of stage 3, in elements of one rank.
double largest_sub_group(const DeepspeedRun& run);
/// Elements of the parameters that a rank owns a part of at stages 1 and 2, each counted whole: of the rank with most.
double owned_elements(const DeepspeedRun& run);
/// Whether stages 1 and 2 make the weights one flat tensor beside themselves on the device. Where there is no room for
/// both, DeepSpeed takes them through the host.
bool flattens_on_device(const DeepspeedRun& run);
/// Adapters that rank 0 collects in a save at stage 3: in 16 bit as DeepSpeed holds them, or in f32 as PEFT makes them.
Range adapters_on_rank_0(const ModelSizes& sizes);
/// Page-locked blocks are rounded up to powers of two.
double rounded_block(double size_bytes);

}  // namespace underkeel::doctor
