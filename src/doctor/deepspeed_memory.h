#pragma once
// DeepSpeed's memory, worked out before a run: per rank on the device, per node on the host, by phase. Formulas of its
// ZeRO code as of 0.19; every term has a name. Pure functions of sizes and settings.
// Not here: what the terms mean for a user (memory_rules.cpp).

#include "doctor/deepspeed_sizes.h"
#include "doctor/forecast.h"

namespace underkeel::doctor {

/// Weights and optimizer state that stay on the device from the first update on.
double persistent_device_bytes(const DeepspeedRun& run);

/// All phases. Limits are those given; the verdict is left unknown.
Forecast deepspeed_memory(const DeepspeedRun& run);

/// What torch's allocator loses to pieces too small, where its cache is given back because memory is short.
inline constexpr double allocator_waste = 0.06;
/// What a rank holds on its device with its context, and what the allocator may lose; as it is where no process is asked about.
Holding with_process(const DeepspeedRun& run, Holding holding);

/// Device memory of a rank as torch's allocator has it, in bytes, without the context: the highest peak of what is
/// allocated, and the most that is reserved where memory is plenty. The cache keeps blocks that came and went and may have
/// no use for them.
struct Reserved {
  Range peak;
  double most = 0;
};
Reserved reserved_bytes(const Forecast& forecast);

}  // namespace underkeel::doctor
