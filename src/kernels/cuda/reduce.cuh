#pragma once
// Sums and maxima over the threads of a warp or block, always in the same order.

#include "kernels/cuda/element.cuh"

namespace underkeel::kernels::cuda {

constexpr int warp_size = 32;
constexpr unsigned whole_warp = 0xffffffffu;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
  static constexpr float start = 0.0f;
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  static constexpr float start = -3.402823466e+38f;
};

/// The reduction on every lane: a butterfly, so all lanes add the same pairs.
template <class Op>
__device__ inline float reduce_warp(float value, Op op) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2)
    value = op(value, __shfl_xor_sync(whole_warp, value, distance));
  return value;
}

/// The reduction on every thread of a block of whole warps. `shared` holds warp_size floats; two calls
/// with the same memory need no barrier between them.
template <class Op>
__device__ inline float reduce_block(float value, Op op, float* shared) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  value = reduce_warp(value, op);
  __syncthreads();
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  return reduce_warp(lane < warps ? shared[lane] : Op::start, op);
}

}  // namespace underkeel::kernels::cuda
