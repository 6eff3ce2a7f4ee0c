#pragma once
// DeepSpeed's memory, worked out before a run: per rank on the device, per node on the host, by phase. Formulas of its
// ZeRO code as of 0.19; every term has a name. Pure functions of sizes and settings.
// Not here: what the terms mean for a user (memory_rules.cpp).

#include <optional>

#include "doctor/activations.h"
#include "doctor/deepspeed_settings.h"
#include "doctor/forecast.h"
#include "doctor/model_sizes.h"

namespace underkeel::doctor {

struct DeepspeedRun {
  const ModelSizes& sizes;
  DeepspeedSettings settings;
  double ranks = 1;  // of the ZeRO group
  double ranks_on_node = 1;
  double accumulation_steps = 1;
  double quantised_bytes = 0.5;  // of a quantised element, with its scales
  Range activations;             // of forward and backward; zero: of state alone
  Range evaluation;
  bool evaluates = false;
  bool saves = true;
  bool saves_adapters_only = false;
  bool built_sharded = true;  // zero.Init: the model is split as it is built
  bool has_process = true;    // add the context, the allocator's waste and the process on the host
};

/// S: trainable elements of one rank's share, rounded as DeepSpeed rounds them.
double share_of(const DeepspeedRun& run);
/// Elements of parameters that stage 3 keeps gathered (param_persistence_threshold and the cap on their sum).
double persistent_elements(const ModelSizes& sizes, const DeepspeedSettings& settings);
/// The largest sub-group of stage 3, in elements of one rank.
double largest_sub_group(const DeepspeedRun& run);
/// Bytes that gathered parameters may take at once in forward and backward at stage 3.
Range live_bytes(const DeepspeedRun& run);
/// Page-locked blocks are rounded up to powers of two.
double rounded_block(double size_bytes);

/// Weights and optimizer state that stay on the device from the first update on.
double persistent_device_bytes(const DeepspeedRun& run);

/// All phases. Limits are those given; the verdict is left unknown.
Forecast deepspeed_memory(const DeepspeedRun& run);

/// NVMe of a node, in bytes; 0 when nothing lies there.
double nvme_bytes(const DeepspeedRun& run);

}  // namespace underkeel::doctor
