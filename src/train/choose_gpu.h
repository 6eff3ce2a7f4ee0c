#pragma once
// Which device a run trains on.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/gpu.h"
#include "spec/hardware_spec.h"
#include "spec/run_config.h"

namespace underkeel::train {

/// The GPU that `run` asks for with underkeel.device; null: the CPU. `auto` takes the first GPU where there
/// is one and the run has one rank; a GPU that is passed over is told in `notes`.
/// Errors:  unsupported: `cuda` without CUDA, driver or GPU, or with several ranks.
Result<std::shared_ptr<device::Gpu>> choose_gpu(const spec::RunConfig& run, int world_size,
                                                std::vector<std::string>& notes);

/// This machine as the run that choose_gpu() answers for sees it, without starting a GPU.
Result<spec::HardwareSpec> machine_for(const spec::RunConfig& run, int world_size);

/// `machine` with the GPU's memory: what is free on it now counts, since others may hold some.
Result<spec::HardwareSpec> with_gpu(spec::HardwareSpec machine, device::Gpu& gpu);

}  // namespace underkeel::train
