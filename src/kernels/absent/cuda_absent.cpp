// A build without CUDA has no GPU to hand to an executor (device/absent), so nobody can ask for this table.

#include "base/check.h"
#include "kernels/kernels.h"
#include "kernels/matmul_choice.h"

namespace underkeel::kernels {

const KernelTable& cuda_kernels() {
  UK_CHECK(false, "this build has no CUDA kernels");
}

// Without a GPU no product of one runs: nothing to choose, and nothing was chosen.
void cuda_take_matmul_choices(const MatmulChoices&) {}
void cuda_time_matmuls(double) {}
MatmulChoices cuda_matmul_choices() {
  return {};
}

}  // namespace underkeel::kernels
