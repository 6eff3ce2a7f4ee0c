// A build without CUDA: asking for a GPU is answered with how to get one that has it.

#include "device/gpu.h"

namespace underkeel::device {

namespace {
tl::unexpected<Error> no_cuda() {
  return fail(ErrorCode::unsupported, "this build has no CUDA backend", "underkeel.device",
              "set it to cpu, or build the preset cuda-compile (docs/guide/getting-started.md)");
}
}  // namespace

Result<std::vector<GpuFacts>> find_gpus() {
  return no_cuda();
}

Result<bool> gpus_reach_one_another(int /*count*/) {
  return no_cuda();
}

Result<std::unique_ptr<Gpu>> open_gpu(int /*ordinal*/) {
  return no_cuda();
}

}  // namespace underkeel::device
