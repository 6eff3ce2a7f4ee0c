#pragma once
// Memory of the host under DeepSpeed: optimizer state that is kept there, page-locked buffers, loading and saving.

#include "doctor/deepspeed_sizes.h"
#include "doctor/forecast.h"

namespace underkeel::doctor {

/// Adds what one node holds on the host and on NVMe to each phase. Bytes.
void add_host_memory(const DeepspeedRun& run, Forecast& forecast);

}  // namespace underkeel::doctor
