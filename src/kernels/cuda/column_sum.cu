// Sums of columns: a warp's lanes are columns, its block's warps are slices of rows that are added in order.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int slices = 32;

/// Lanes take N neighbouring columns each.
template <int N, class T, class S>
__global__ void __launch_bounds__(warp_size* slices)
    sum_columns(Rows<const T> x, std::int64_t row_count, std::int64_t column_count, S* sum,
                bool accumulate) {
  __shared__ float of_slice[slices][warp_size * N];
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int slice = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * warp_size * N;
  const std::int64_t column = first_column + lane * N;
  const std::int64_t rows_per_slice = (row_count + slices - 1) / slices;
  const std::int64_t begin = slice * rows_per_slice;
  const std::int64_t end = min(row_count, begin + rows_per_slice);
  float totals[N] = {};
  if (column < column_count)
#pragma unroll 16
    for (std::int64_t row = begin; row < end; ++row) {
      float values[N];
      load<N>(x.at(row, column), values);
#pragma unroll
      for (int j = 0; j < N; ++j) totals[j] += values[j];
    }
#pragma unroll
  for (int j = 0; j < N; ++j) of_slice[slice][lane * N + j] = totals[j];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < warp_size * N; i += warp_size * slices) {
    if (first_column + i >= column_count) return;
    float result = accumulate ? to_float(sum[first_column + i]) : 0.0f;
#pragma unroll
    for (int s = 0; s < slices; ++s) result += of_slice[s][i];
    sum[first_column + i] = from_float<S>(result);
  }
}

}  // namespace

void column_sum(const ColumnSumArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t columns = args.x.columns;
  if (columns == 0) return;
  with_storage(args.x.type, [&](auto tag) {
    with_storage(args.sum.type, [&](auto sum_tag) {
      using T = decltype(tag);
      using S = decltype(sum_tag);
      // Narrow blocks: few columns have to fill the card.
      constexpr int pair = 2;
      const bool in_pairs = columns % pair == 0 && args.x.row_stride % pair == 0 &&
                            reinterpret_cast<std::uintptr_t>(args.x.data) % (pair * sizeof(T)) == 0;
      const auto launch = [&](auto n) {
        const std::int64_t columns_of_block = warp_size * n;
        sum_columns<n, T, S>
            <<<static_cast<unsigned>((columns + columns_of_block - 1) / columns_of_block),
               warp_size * slices, 0, stream_of(queue)>>>(
                rows_of<const T>(args.x), args.x.rows, columns, args.sum.as<S>(), args.accumulate);
      };
      if (in_pairs) return launch(std::integral_constant<int, pair>{});
      launch(std::integral_constant<int, 1>{});
    });
  });
}

}  // namespace underkeel::kernels::cuda
