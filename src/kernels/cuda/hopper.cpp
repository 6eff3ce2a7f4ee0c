// Describes matrices to the copy engine. The driver's function is asked for at run time, so that nothing links
// against a driver that a machine may not have.

#include "kernels/cuda/hopper.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::kernels::cuda::hopper {

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encode() {
  static const Encode function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                               12000, cudaEnableDefault, &result);
    UK_CHECK(error == cudaSuccess && result == cudaDriverEntryPointSuccess,
             "the driver has no cuTensorMapEncodeTiled, which every driver of CUDA 12 has");
    return reinterpret_cast<Encode>(found);
  }();
  return function;
}

}  // namespace

bool is_hopper() {
  int device = 0;
  int major = 0;
  int minor = 0;
  UK_CHECK(
      cudaGetDevice(&device) == cudaSuccess &&
          cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
              cudaSuccess &&
          cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess,
      "a queue without a device");
  return UNDERKEEL_CUDA_HAS_90A && major == 9 && minor == 0;
}

CUtensorMap map_of(const void* data, DType type, std::int64_t rows, std::int64_t columns,
                   std::int64_t row_stride) {
  CUtensorMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  // A matrix of one row may have any stride.
  const std::int64_t stride = rows == 1 ? columns : row_stride;
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(bytes_of(type, stride))};
  const cuuint32_t box[] = {64, 64};
  const cuuint32_t steps[] = {1, 1};
  const CUresult error = encode()(
      &map, type == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      2, const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  UK_CHECK(error == CUDA_SUCCESS,
           fmt::format("a tensor map of {} x {} at stride {} was refused: error {}", rows, columns,
                       row_stride, static_cast<int>(error)));
  return map;
}

}  // namespace underkeel::kernels::cuda::hopper
