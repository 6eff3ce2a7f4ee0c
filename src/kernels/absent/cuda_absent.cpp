// A build without CUDA has no GPU to hand to an executor (device/absent), so nobody can ask for this table.

#include "base/check.h"
#include "kernels/kernels.h"

namespace underkeel::kernels {

const KernelTable& cuda_kernels() {
  UK_CHECK(false, "this build has no CUDA kernels");
}

}  // namespace underkeel::kernels
