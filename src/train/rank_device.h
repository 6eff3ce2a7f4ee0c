#pragma once
// What ranks train on: their GPUs, joined into one group before the plan is made, so that it sees what is left.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "comm/device_collectives.h"
#include "device/gpu.h"
#include "spec/hardware_spec.h"
#include "spec/run_config.h"
#include "train/choose_gpu.h"

namespace underkeel::train {

struct RankDevice {
  std::shared_ptr<device::Gpu> gpu;                      // null: the CPU
  std::unique_ptr<comm::DeviceCollectives> collectives;  // null: one rank, or the CPU
};

/// The devices of this process's ranks, and what all ranks of the run have left on theirs.
struct RankDevices {
  std::vector<RankDevice> ranks;   // at least one; all on GPUs or none
  std::int64_t free_bytes = 0;     // for each rank on the fullest card of the run, after joining
  std::int64_t joining_bytes = 0;  // that joining took, of the card that lost most
  std::vector<std::string> notes;  // for the user

  bool are_gpus() const { return ranks.front().gpu != nullptr; }
  /// Ends what is queued between GPUs: where a rank is lost, taking the group down would wait for it.
  void abort();
};

/// Starts the device of each rank of this process that `run` asks for and joins the GPUs of all ranks. Whatever joining
/// ever takes of a card is taken when this returns. `place`: of the process's first rank; `controls` and `links`: one for each
/// rank of this process; nothing else uses the links. Collective.
/// Errors:  those of choose_gpu() and comm::join_gpus(), of any rank; unsupported where some ranks have GPUs and others none.
Result<RankDevices> start_devices(const spec::RunConfig& run, PlaceOnNode place,
                                  std::span<const std::unique_ptr<comm::Communicator>> controls,
                                  std::span<const std::unique_ptr<comm::Communicator>> links);

/// `machine` with the memory that the run's cards have left; without GPUs, `machine` itself.
spec::HardwareSpec with_gpus(spec::HardwareSpec machine, const RankDevices& devices,
                             int ranks_on_node);

}  // namespace underkeel::train
