#pragma once
// What a rank trains on: its GPU, and its end of the GPUs' group.

#include <memory>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/device_collectives.h"
#include "device/gpu.h"

namespace underkeel::train {

struct RankDevice {
  std::shared_ptr<device::Gpu> gpu;                      // null: the CPU
  std::unique_ptr<comm::DeviceCollectives> collectives;  // null: one rank, or the CPU
};

/// On the rank's own thread. `first`: the GPU of the process's first rank, null for the CPU; `ranks_in_process`
/// ranks are threads, each with the GPU of its number. Collective.
/// Errors:  those of device::open_gpu() and comm::join_gpus().
Result<RankDevice> take_rank_device(std::shared_ptr<device::Gpu> first, int ranks_in_process,
                                    comm::Communicator& control);

}  // namespace underkeel::train
