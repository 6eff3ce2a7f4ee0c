// Backward without atomics: the first row of each token takes all rows of that token, in row order, so that
// the sum has the written order and the CPU's bits.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

template <int N, class From, class To>
struct Lookup {
  const std::int32_t* tokens;
  Rows<From> weight;
  Rows<To> out;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float values[N];
    load<N>(weight.at(tokens[row], column), values);
    store<N>(out.at(row, column), values);
  }
};

constexpr int sum_threads = 128;
constexpr int sum_warps = sum_threads / warp_size;
// Tokens that a thread compares before the block stops for what it has found.
constexpr int compared_at_once = 8;
constexpr int stretch_rows = compared_at_once * sum_threads;

/// Block (row, slice): the columns of a slice of the token's row. A block whose row is not its token's
/// first has nothing to do. Slices share the work of a token that many rows hold.
template <int N, class T>
__global__ void __launch_bounds__(sum_threads)
    add_rows_of_token(const std::int32_t* tokens, std::int32_t row_count, Rows<const T> dout,
                      std::int64_t width, Rows<float> dweight) {
  __shared__ std::int32_t matching[stretch_rows];
  __shared__ int count_of_warp[compared_at_once][sum_warps];
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto first = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t token = tokens[first];
  const auto matches = [&](std::int32_t row) { return row < row_count && tokens[row] == token; };
  for (std::int32_t begin = 0; begin < first; begin += stretch_rows) {
    bool is_later = false;
#pragma unroll
    for (int i = 0; i < compared_at_once; ++i) {
      const std::int32_t row = begin + i * sum_threads + thread;
      is_later = is_later | (row < first && matches(row));
    }
    if (__syncthreads_or(is_later)) return;
  }
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * sum_threads + threadIdx.x) * N;
  float sums[N] = {};
  if (column < width) load<N>(dweight.at(token, column), sums);
  const int lane = thread % warp_size;
  const int warp = thread / warp_size;
  for (std::int32_t begin = first; begin < row_count; begin += stretch_rows) {
    // The rows of this stretch that hold the token, in order: by sum_threads rows, warp and lane.
    unsigned found[compared_at_once];
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < compared_at_once; ++i) {
      found[i] = __ballot_sync(whole_warp, matches(begin + i * sum_threads + thread));
      if (lane == 0) count_of_warp[i][warp] = __popc(found[i]);
      any |= found[i];
    }
    if (!__syncthreads_or(any != 0)) continue;
    int count = 0;
    for (int i = 0; i < compared_at_once; ++i)
      for (int w = 0; w < sum_warps; ++w) {
        if (w == warp && (found[i] >> lane & 1u) != 0)
          matching[count + __popc(found[i] & ((1u << lane) - 1u))] =
              begin + i * sum_threads + thread;
        count += count_of_warp[i][w];
      }
    __syncthreads();
    if (column < width)
#pragma unroll 8
      for (int i = 0; i < count; ++i) {
        float values[N];
        load<N>(dout.at(matching[i], column), values);
#pragma unroll
        for (int j = 0; j < N; ++j) sums[j] += values[j];
      }
    __syncthreads();
  }
  if (column < width) store<N>(dweight.at(token, column), sums);
}

}  // namespace

void embedding_forward(const EmbeddingForwardArgs& args, device::Queue& queue) {
  check_shapes(args, TokenValues::on_device);
  with_storage(args.weight.type, [&](auto from_tag) {
    with_storage(args.out.type, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      with_width(packs({args.weight, args.out}), [&](auto n) {
        map<n>(args.out.rows, args.out.columns, queue,
               Lookup<n, From, To>{args.tokens.as<std::int32_t>(), rows_of<From>(args.weight),
                                   rows_of<To>(args.out)});
      });
    });
  });
}

void embedding_backward(const EmbeddingBackwardArgs& args, device::Queue& queue) {
  check_shapes(args, TokenValues::on_device);
  if (!args.accumulate) fill({.to = args.dweight}, queue);
  const std::int64_t rows = args.dout.rows;
  const std::int64_t width = args.dout.columns;
  if (rows == 0 || width == 0) return;
  with_storage(args.dout.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({args.dout, args.dweight}), [&](auto n) {
      const std::int64_t slice = sum_threads * n;
      const dim3 grid(static_cast<unsigned>(rows),
                      static_cast<unsigned>((width + slice - 1) / slice));
      add_rows_of_token<n, T><<<grid, sum_threads, 0, stream_of(queue)>>>(
          args.tokens.as<std::int32_t>(), static_cast<std::int32_t>(rows),
          rows_of<const T>(args.dout), width, rows_of<float>(args.dweight));
    });
  });
}

}  // namespace underkeel::kernels::cuda
