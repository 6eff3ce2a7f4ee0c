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

/// The GPU of this rank that `run` asks for with underkeel.device, the one of its place on the node; null: the
/// CPU. `auto` takes GPUs where there is one for each rank of the node; GPUs that are passed over are told in
/// `notes`.
/// Errors:  unsupported: `cuda` without CUDA, driver, or a GPU for each rank of the node.
struct PlaceOnNode {
  int rank = 0;  // among the ranks of the node
  int rank_count = 1;
};
Result<std::shared_ptr<device::Gpu>> choose_gpu(const spec::RunConfig& run, PlaceOnNode place,
                                                std::vector<std::string>& notes);

/// This machine as the run that choose_gpu() answers for sees it, without starting a GPU.
Result<spec::HardwareSpec> machine_for(const spec::RunConfig& run, int ranks_on_node);

}  // namespace underkeel::train
