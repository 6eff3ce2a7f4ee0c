#include "kernels/kernels.h"

namespace underkeel::kernels {

// Operations without a vectorised version yet run the reference one.
const KernelTable& cpu_kernels() {
  static const KernelTable table = reference_kernels();
  return table;
}

}  // namespace underkeel::kernels
