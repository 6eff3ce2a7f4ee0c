#pragma once
// Memory of the host under DeepSpeed: optimizer state that is kept there, page-locked buffers, loading and saving.

#include "doctor/deepspeed_sizes.h"
#include "doctor/forecast.h"

namespace underkeel::doctor {

/// Resident in a Python process with torch and CUDA.
inline constexpr Range process_bytes = {1.0e9, 3.0e9};

/// Adds what one node holds on the host and on NVMe to each phase. Bytes.
void add_host_memory(const DeepspeedRun& run, Forecast& forecast);

}  // namespace underkeel::doctor
