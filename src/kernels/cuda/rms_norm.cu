// A team of threads takes one group (a row, or a head of it): a warp when groups are narrow, else a block.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

// Groups up to this width are a warp's.
constexpr std::int64_t widest_of_warp = 1024;
constexpr int forward_threads = 256;

template <bool IsWarp>
__device__ inline float reduce_team(float value, float* shared) {
  if constexpr (IsWarp) return reduce_warp(value, Sum{});
  return reduce_block(value, Sum{}, shared);
}

template <int N, bool IsWarp, class T>
__global__ void __launch_bounds__(forward_threads)
    normalize(Rows<const T> x, const T* weight, Rows<T> y, float* rstd, std::int64_t item_count,
              std::int64_t groups, std::int64_t width, float epsilon) {
  __shared__ float shared[warp_size];
  constexpr int team_size = IsWarp ? warp_size : forward_threads;
  const int member = static_cast<int>(threadIdx.x) % team_size;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * (forward_threads / team_size) +
                            threadIdx.x / team_size;
  if (item >= item_count) return;  // whole warps, or the whole block
  const std::int64_t row = item / groups;
  const std::int64_t column = (item - row * groups) * width;
  const T* from = x.at(row, column);
  T* to = y.at(row, column);
  float squares = 0.0f;
  for (std::int64_t i = member * N; i < width; i += team_size * N) {
    float values[N];
    load<N>(from + i, values);
#pragma unroll
    for (int j = 0; j < N; ++j) squares = fmaf(values[j], values[j], squares);
  }
  squares = reduce_team<IsWarp>(squares, shared);
  const double mean = static_cast<double>(squares) / static_cast<double>(width);
  const auto factor = static_cast<float>(1.0 / sqrt(mean + static_cast<double>(epsilon)));
  if (member == 0) rstd[item] = factor;
  for (std::int64_t i = member * N; i < width; i += team_size * N) {
    float values[N];
    float weights[N];
    load<N>(from + i, values);
    load<N>(weight + i, weights);
#pragma unroll
    for (int j = 0; j < N; ++j)
      values[j] = to_float(from_float<T>(values[j] * factor)) * weights[j];
    store<N>(to + i, values);
  }
}

template <class T>
struct BackwardArgs {
  Rows<const T> x;
  const T* weight;
  const float* rstd;
  Rows<const T> dy;
  Rows<T> dx;
  float* partial;  // (blocks of rows, width)
  std::int64_t row_count;
  std::int64_t groups;
  std::int64_t width;
  bool accumulate_dx;
};

constexpr int most_backward_threads = 512;

/// One block a block of rows. Each thread keeps Packs x N columns of the weight's gradient in registers
/// while its team walks the groups of those rows; teams are added in order at the end.
template <int N, int Packs, bool IsWarp, class T>
__global__ void __launch_bounds__(most_backward_threads) differentiate(BackwardArgs<T> args) {
  extern __shared__ float dweight_of_teams[];  // (width), IsWarp only
  __shared__ float shared[warp_size];
  const int team_size = IsWarp ? warp_size : static_cast<int>(blockDim.x);
  const int teams = static_cast<int>(blockDim.x) / team_size;
  const int team = static_cast<int>(threadIdx.x) / team_size;
  const int member = static_cast<int>(threadIdx.x) % team_size;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * rms_norm_row_block;
  const std::int64_t end = min(args.row_count, begin + rms_norm_row_block);

  float dweight[Packs][N] = {};
  float weight[Packs][N];
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const std::int64_t i = (static_cast<std::int64_t>(p) * team_size + member) * N;
    if (i < args.width) load<N>(args.weight + i, weight[p]);
  }
  for (std::int64_t item = begin * args.groups + team; item < end * args.groups; item += teams) {
    const std::int64_t row = item / args.groups;
    const std::int64_t column = (item - row * args.groups) * args.width;
    float x[Packs][N];
    float dy[Packs][N];
    float dot = 0.0f;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const std::int64_t i = (static_cast<std::int64_t>(p) * team_size + member) * N;
      if (i >= args.width) continue;
      load<N>(args.x.at(row, column + i), x[p]);
      load<N>(args.dy.at(row, column + i), dy[p]);
#pragma unroll
      for (int j = 0; j < N; ++j) dot = fmaf(weight[p][j] * dy[p][j], x[p][j], dot);
    }
    dot = reduce_team<IsWarp>(dot, shared);
    const float rstd = args.rstd[item];
    // The mean of weight * dy * normalised x.
    const float mean = dot * rstd / static_cast<float>(args.width);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const std::int64_t i = (static_cast<std::int64_t>(p) * team_size + member) * N;
      if (i >= args.width) continue;
      float result[N] = {};
      if (args.accumulate_dx) load<N>(args.dx.at(row, column + i), result);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float normalized = x[p][j] * rstd;
        result[j] = fmaf(-normalized, mean, weight[p][j] * dy[p][j]) * rstd + result[j];
        dweight[p][j] = fmaf(dy[p][j], normalized, dweight[p][j]);
      }
      store<N>(args.dx.at(row, column + i), result);
    }
  }

  float* partial = args.partial + static_cast<std::int64_t>(blockIdx.x) * args.width;
  if constexpr (IsWarp) {
    for (int turn = 0; turn < teams; ++turn) {
      if (team == turn) {
#pragma unroll
        for (int p = 0; p < Packs; ++p)
#pragma unroll
          for (int j = 0; j < N; ++j) {
            const std::int64_t i = (static_cast<std::int64_t>(p) * team_size + member) * N + j;
            if (i < args.width)
              dweight_of_teams[i] = (turn == 0 ? 0.0f : dweight_of_teams[i]) + dweight[p][j];
          }
      }
      __syncthreads();
    }
    for (std::int64_t i = threadIdx.x; i < args.width; i += blockDim.x)
      partial[i] = dweight_of_teams[i];
  } else {
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      const std::int64_t i = (static_cast<std::int64_t>(p) * team_size + member) * N;
      if (i < args.width) store<N>(partial + i, dweight[p]);
    }
  }
}

constexpr int sum_threads = 64;

/// dweight [+]= partial sums in order of their blocks. Loads run ahead of the chain of additions.
template <class T>
__global__ void __launch_bounds__(sum_threads)
    sum_partials(const float* partial, std::int64_t block_count, std::int64_t width, T* dweight,
                 bool accumulate) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * sum_threads + threadIdx.x;
  if (column >= width) return;
  float sum = accumulate ? to_float(dweight[column]) : 0.0f;
#pragma unroll 16
  for (std::int64_t block = 0; block < block_count; ++block) sum += partial[block * width + column];
  dweight[column] = from_float<T>(sum);
}

template <int N, int Packs, bool IsWarp, class T>
void launch_differentiate(const BackwardArgs<T>& args, int threads, const device::Queue& queue) {
  const std::int64_t blocks = (args.row_count + rms_norm_row_block - 1) / rms_norm_row_block;
  const std::size_t shared = IsWarp ? static_cast<std::size_t>(args.width) * sizeof(float) : 0;
  differentiate<N, Packs, IsWarp, T>
      <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared, stream_of(queue)>>>(
          args);
}

/// Packs of a thread of a team: a power of two, so that few kernels serve all widths.
template <int N, class T>
void differentiate_groups(const BackwardArgs<T>& args, const device::Queue& queue) {
  const std::int64_t packs_per_group = (args.width + N - 1) / N;
  if (packs_per_group <= 4 * warp_size && args.width <= widest_of_warp) {
    if (packs_per_group <= warp_size)
      return launch_differentiate<N, 1, true>(args, most_backward_threads / 2, queue);
    return launch_differentiate<N, 4, true>(args, most_backward_threads / 2, queue);
  }
  const std::int64_t threads = packs_per_group >= most_backward_threads
                                   ? most_backward_threads
                                   : (packs_per_group + warp_size - 1) / warp_size * warp_size;
  const std::int64_t packs = (packs_per_group + threads - 1) / threads;
  const auto count = static_cast<int>(threads);
  if (packs <= 1) return launch_differentiate<N, 1, false>(args, count, queue);
  if (packs <= 2) return launch_differentiate<N, 2, false>(args, count, queue);
  if (packs <= 4) return launch_differentiate<N, 4, false>(args, count, queue);
  UK_CHECK(packs <= 16, "rms_norm_backward: rows are too wide");
  launch_differentiate<N, 16, false>(args, count, queue);
}

/// A view of one group, to ask whether groups can be read in packs.
TensorView group_of(TensorView view, std::int64_t width) {
  view.columns = width;
  return view;
}

}  // namespace

void rms_norm_forward(const RmsNormForwardArgs& args, device::Queue& queue) {
  const std::int64_t width = check_shapes(args);
  const std::int64_t items = args.x.rows * args.groups;
  if (items == 0 || width == 0) return;
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({group_of(args.x, width), group_of(args.y, width), args.weight}), [&](auto n) {
      const auto launch = [&](auto is_warp) {
        const std::int64_t teams = is_warp ? forward_threads / warp_size : 1;
        normalize<n, is_warp, T><<<static_cast<unsigned>((items + teams - 1) / teams),
                                   forward_threads, 0, stream_of(queue)>>>(
            rows_of<const T>(args.x), args.weight.as<T>(), rows_of<T>(args.y),
            args.rstd.as<float>(), items, args.groups, width, args.epsilon);
      };
      if (width <= widest_of_warp) return launch(std::true_type{});
      launch(std::false_type{});
    });
  });
}

void rms_norm_backward(const RmsNormBackwardArgs& args, device::Queue& queue) {
  const std::int64_t width = check_shapes(args);
  if (width == 0) return;
  const std::int64_t blocks = (args.x.rows + rms_norm_row_block - 1) / rms_norm_row_block;
  if (blocks > 0)
    with_storage(args.x.type, [&](auto tag) {
      using T = decltype(tag);
      const BackwardArgs<T> backward{.x = rows_of<const T>(args.x),
                                     .weight = args.weight.as<T>(),
                                     .rstd = args.rstd.as<float>(),
                                     .dy = rows_of<const T>(args.dy),
                                     .dx = rows_of<T>(args.dx),
                                     .partial = args.scratch.as<float>(),
                                     .row_count = args.x.rows,
                                     .groups = args.groups,
                                     .width = width,
                                     .accumulate_dx = args.accumulate_dx};
      with_width(packs({group_of(args.x, width), group_of(args.dy, width), group_of(args.dx, width),
                        args.weight, args.scratch}) &&
                     width % pack_elements == 0,
                 [&](auto n) { differentiate_groups<n>(backward, queue); });
    });
  with_storage(args.dweight.type, [&](auto tag) {
    using T = decltype(tag);
    sum_partials<T><<<static_cast<unsigned>((width + sum_threads - 1) / sum_threads), sum_threads,
                      0, stream_of(queue)>>>(args.scratch.as<float>(), blocks, width,
                                             args.dweight.as<T>(), args.accumulate_dweight);
  });
}

}  // namespace underkeel::kernels::cuda
