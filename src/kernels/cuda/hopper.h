#pragma once
// The host's side of hopper.cuh.

#include <cstdint>

#include <cuda.h>

#include "tensor/dtype.h"

namespace underkeel::kernels::cuda::hopper {

/// Whether the current device is a Hopper and this build holds code for it (90a among the architectures).
bool is_hopper();

/// Describes rows x columns of 16-bit elements to the copy engine, which takes 64 x 64 of them at a time.
/// Units: `row_stride` in elements, a multiple of 8; `data` at a multiple of 16 bytes.
CUtensorMap map_of(const void* data, DType type, std::int64_t rows, std::int64_t columns,
                   std::int64_t row_stride);

}  // namespace underkeel::kernels::cuda::hopper
