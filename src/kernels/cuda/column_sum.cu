// Sums of columns: a warp's lanes are columns, its block's warps are slices of rows that are added in order.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int slices = 32;

template <class T, class S>
__global__ void __launch_bounds__(warp_size* slices)
    sum_columns(Rows<const T> x, std::int64_t row_count, std::int64_t column_count, S* sum,
                bool accumulate) {
  __shared__ float of_slice[slices][warp_size];
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int slice = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_size + lane;
  const std::int64_t rows_per_slice = (row_count + slices - 1) / slices;
  const std::int64_t begin = slice * rows_per_slice;
  const std::int64_t end = min(row_count, begin + rows_per_slice);
  float total = 0.0f;
  if (column < column_count)
#pragma unroll 8
    for (std::int64_t row = begin; row < end; ++row) total += to_float(*x.at(row, column));
  of_slice[slice][lane] = total;
  __syncthreads();
  if (slice != 0 || column >= column_count) return;
  float result = accumulate ? to_float(sum[column]) : 0.0f;
#pragma unroll
  for (int s = 0; s < slices; ++s) result += of_slice[s][lane];
  sum[column] = from_float<S>(result);
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
      sum_columns<T, S><<<static_cast<unsigned>((columns + warp_size - 1) / warp_size),
                          warp_size * slices, 0, stream_of(queue)>>>(
          rows_of<const T>(args.x), args.x.rows, columns, args.sum.as<S>(), args.accumulate);
    });
  });
}

}  // namespace underkeel::kernels::cuda
