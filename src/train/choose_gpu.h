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
/// CPU. `auto` takes GPUs where there is one for each rank of the node, or the host links ranks that share them; GPUs
/// that are passed over are told in `notes`.
/// Errors:  unsupported: `cuda` without CUDA, driver, or a GPU for each rank of the node.
struct PlaceOnNode {
  int rank = 0;  // among the ranks of the node
  int rank_count = 1;
};
Result<std::shared_ptr<device::Gpu>> choose_gpu(const spec::RunConfig& run, PlaceOnNode place,
                                                std::vector<std::string>& notes);

/// The GPU of the rank in this place among those of the node: ranks beyond the number of GPUs begin anew, where the host links
/// them (comm::GpuLink).
/// Errors:  those of device::open_gpu().
Result<std::shared_ptr<device::Gpu>> open_gpu_of(int rank_on_node);

/// Ranks that a GPU of this node has at most, of `ranks_on_node`; 1 without GPUs.
int most_ranks_on_card(int ranks_on_node);

/// This machine as the run that choose_gpu() answers for sees it, without starting a GPU.
Result<spec::HardwareSpec> machine_for(const spec::RunConfig& run, int ranks_on_node);

}  // namespace underkeel::train
