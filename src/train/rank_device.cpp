#include "train/rank_device.h"

#include <utility>

namespace underkeel::train {

Result<RankDevice> take_rank_device(std::shared_ptr<device::Gpu> first, int ranks_in_process,
                                    comm::Communicator& control) {
  RankDevice device;
  if (!first) return device;
  if (ranks_in_process > 1 && control.rank() > 0) {
    UK_TRY(own, device::open_gpu(control.rank()));
    device.gpu = std::move(own);
  } else {
    device.gpu = std::move(first);
    UK_TRY_VOID(device.gpu->use());
  }
  if (control.world_size() == 1) return device;
  UK_TRY(joined, comm::join_gpus(control, device.gpu));
  device.collectives = std::move(joined);
  return device;
}

}  // namespace underkeel::train
