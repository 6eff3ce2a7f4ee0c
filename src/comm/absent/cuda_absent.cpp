// A build without CUDA has no collectives on GPUs.

#include "comm/device_collectives.h"

namespace underkeel::comm {

namespace {

tl::unexpected<Error> no_cuda() {
  return fail(ErrorCode::unsupported, "this build has no CUDA backend", "underkeel.device",
              "set it to cpu, or build with -DUNDERKEEL_CUDA=ON");
}

}  // namespace

Result<GpuLink> link_of_gpus(bool /*ranks_are_threads*/, int /*rank_count*/) {
  return no_cuda();
}

Result<std::unique_ptr<DeviceCollectives>> join_gpus(Communicator& /*control*/,
                                                     Communicator& /*through*/,
                                                     std::shared_ptr<device::Gpu> /*gpu*/) {
  return no_cuda();
}

Result<std::unique_ptr<DeviceCollectives>> make_peers(Communicator& /*control*/,
                                                      std::shared_ptr<device::Gpu> /*gpu*/) {
  return no_cuda();
}

Result<std::unique_ptr<DeviceCollectives>> make_nccl(Communicator& /*control*/) {
  return no_cuda();
}

}  // namespace underkeel::comm
