#pragma once
// Storage types on the device: loads to f32, stores with one rounding to nearest even, several elements
// at a time where addresses allow.

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/kernels.h"

namespace underkeel::kernels::cuda {

__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline float to_float(__half value) {
  return __half2float(value);
}

template <class T>
__device__ T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

/// N neighbours, read and written in pieces of at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T values[N];
};

template <int N, class T>
__device__ inline void load(const T* from, float (&to)[N]) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) {
    // Two bf16 in a word are two f32 by one operation each.
    const Pack<std::uint32_t, N / 2> pairs =
        *reinterpret_cast<const Pack<std::uint32_t, N / 2>*>(from);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      to[i] = __uint_as_float(pairs.values[i / 2] << 16);
      to[i + 1] = __uint_as_float(pairs.values[i / 2] & 0xffff0000u);
    }
    return;
  }
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = to_float(pack.values[i]);
}
template <int N, class T>
__device__ inline void store(T* to, const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.values[i] = from_float<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// Rows of a matrix; what a TensorView is once its type is known.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
  __device__ T* at(std::int64_t row, std::int64_t column = 0) const {
    return data + row * stride + column;
  }
};
template <class T>
Rows<T> rows_of(const TensorView& view) {
  return {view.as<T>(), view.row_stride};
}

}  // namespace underkeel::kernels::cuda
