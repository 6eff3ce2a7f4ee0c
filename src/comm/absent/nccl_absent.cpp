// A build without CUDA has no collectives on GPUs.

#include "comm/device_collectives.h"

namespace underkeel::comm {

Result<std::unique_ptr<DeviceCollectives>> make_nccl(Communicator& /*control*/) {
  return fail(ErrorCode::unsupported, "this build has no CUDA backend", "underkeel.device",
              "set it to cpu, or build with -DUNDERKEEL_CUDA=ON");
}

}  // namespace underkeel::comm
