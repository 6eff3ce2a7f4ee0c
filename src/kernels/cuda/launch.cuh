#pragma once
// Choosing types and widths at run time, and the loop over the elements of a matrix that most small
// kernels are.

#include <initializer_list>
#include <type_traits>

#include "base/check.h"
#include "kernels/cuda/element.cuh"

namespace underkeel::kernels::cuda {

inline cudaStream_t stream_of(const device::Queue& queue) {
  return static_cast<cudaStream_t>(queue.stream());
}

/// Calls f with a value of the storage type.
template <class F>
void with_storage(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(__nv_bfloat16{});
    case DType::f16:
      return f(__half{});
    default:
      UK_CHECK(false, "no storage type of a kernel");
  }
}

constexpr int pack_elements = 8;

/// Whether every row of every view can be read `pack_elements` at a time.
inline bool packs(std::initializer_list<TensorView> views) {
  for (const TensorView& view : views) {
    if (view.data == nullptr) continue;
    const bool one_row = view.rows <= 1;
    if (reinterpret_cast<std::uintptr_t>(view.data) % 16 != 0 ||
        view.columns % pack_elements != 0 || (!one_row && view.row_stride % pack_elements != 0))
      return false;
  }
  return true;
}
/// Calls f with the number of elements to take at once, as a constant.
template <class F>
void with_width(bool packed, F&& f) {
  if (packed) return f(std::integral_constant<int, pack_elements>{});
  f(std::integral_constant<int, 1>{});
}

inline bool is_gapless(std::initializer_list<TensorView> views) {
  for (const TensorView& view : views)
    if (view.data != nullptr && view.rows > 1 && view.row_stride != view.columns) return false;
  return true;
}

constexpr int map_threads = 256;
/// Enough blocks to fill any card of today several times over.
constexpr std::int64_t most_map_blocks = 4096;

/// f(row, column) for every N-th column of every row.
template <int N, class Index, class F>
__global__ void __launch_bounds__(map_threads)
    map_kernel(Index row_count, Index packs_per_row, F f) {
  const Index total = row_count * packs_per_row;
  const Index step = static_cast<Index>(gridDim.x) * map_threads;
  for (Index i = static_cast<Index>(blockIdx.x) * map_threads + threadIdx.x; i < total; i += step) {
    const Index row = row_count == 1 ? 0 : i / packs_per_row;
    f(static_cast<std::int64_t>(row), static_cast<std::int64_t>(i - row * packs_per_row) * N);
  }
}

template <int N, class F>
void map(std::int64_t rows, std::int64_t columns, const device::Queue& queue, const F& f) {
  const std::int64_t packs_per_row = columns / N;
  const std::int64_t total = rows * packs_per_row;
  if (total == 0) return;
  const std::int64_t blocks = (total + map_threads - 1) / map_threads;
  const auto grid = static_cast<unsigned>(blocks < most_map_blocks ? blocks : most_map_blocks);
  // Division of 32-bit numbers is several times cheaper.
  if (total < (std::int64_t{1} << 31) - most_map_blocks * map_threads) {
    map_kernel<N, std::uint32_t><<<grid, map_threads, 0, stream_of(queue)>>>(
        static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(packs_per_row), f);
  } else {
    map_kernel<N, std::int64_t><<<grid, map_threads, 0, stream_of(queue)>>>(rows, packs_per_row, f);
  }
}

}  // namespace underkeel::kernels::cuda
