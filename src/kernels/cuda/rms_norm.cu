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

/// The same for rows of 16-bit elements that a block holds in registers: each element is read once.
template <int Packs, class T>
__global__ void __launch_bounds__(forward_threads)
    normalize_held(Rows<const T> x, const T* weight, Rows<T> y, float* rstd, std::int64_t groups,
                   int width, float epsilon) {
  __shared__ float shared[warp_size];
  constexpr int n = pack_elements;
  const std::int64_t row = blockIdx.x / groups;
  const std::int64_t column = (blockIdx.x - row * groups) * width;
  const T* from = x.at(row, column);
  Pack<T, n> held[Packs];
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const int i = (p * forward_threads + static_cast<int>(threadIdx.x)) * n;
    if (i < width) held[p] = *reinterpret_cast<const Pack<T, n>*>(from + i);
  }
  float squares = 0.0f;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    if ((p * forward_threads + static_cast<int>(threadIdx.x)) * n >= width) continue;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float value = to_float(held[p].values[j]);
      squares = fmaf(value, value, squares);
    }
  }
  squares = reduce_block(squares, Sum{}, shared);
  const double mean = static_cast<double>(squares) / static_cast<double>(width);
  const auto factor = static_cast<float>(1.0 / sqrt(mean + static_cast<double>(epsilon)));
  if (threadIdx.x == 0) rstd[blockIdx.x] = factor;
  T* to = y.at(row, column);
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    const int i = (p * forward_threads + static_cast<int>(threadIdx.x)) * n;
    if (i >= width) continue;
    float values[n];
    float weights[n];
    load<n>(weight + i, weights);
#pragma unroll
    for (int j = 0; j < n; ++j)
      values[j] = to_float(from_float<T>(to_float(held[p].values[j]) * factor)) * weights[j];
    store<n>(to + i, values);
  }
}

template <class T>
struct BackwardArgs {
  Rows<const T> x;
  const T* weight;
  const float* rstd;
  Rows<const T> dy;
  Rows<T> dx;
  Rows<T> y;       // none: null
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
      if (args.y.data == nullptr) continue;
      float again[N];
#pragma unroll
      for (int j = 0; j < N; ++j) again[j] = to_float(from_float<T>(x[p][j] * rstd)) * weight[p][j];
      store<N>(args.y.at(row, column + i), again);
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

constexpr int team_threads = 128;
constexpr int team_count = 4;

/// Eight 16-bit elements in four registers.
template <class T>
struct Held {
  uint4 bits;
  __device__ void load(const T* from) { bits = *reinterpret_cast<const uint4*>(from); }
  __device__ float at(int i) const { return to_float(reinterpret_cast<const T*>(&bits)[i]); }
  /// Has the compiler convert once more rather than keep eight floats until then.
  __device__ void forget_floats() {
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
  }
};

/// The same for wide rows of 16-bit elements: four teams take a block's rows in turn, so that one reads while
/// another waits for its sum. The teams' parts of the weight's gradient are added in order.
template <int Packs, class T>
__global__ void __launch_bounds__(team_count* team_threads, 1)
    differentiate_by_teams(BackwardArgs<T> args) {
  extern __shared__ __align__(16) unsigned char memory[];  // the weight; later its gradient in f32
  constexpr int n = pack_elements;
  constexpr int warps = team_threads / warp_size;
  __shared__ float sums[2][team_count][warps];
  const int team = static_cast<int>(threadIdx.x) / team_threads;
  const int member = static_cast<int>(threadIdx.x) % team_threads;
  const auto width = static_cast<int>(args.width);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * rms_norm_row_block;
  const std::int64_t end = min(args.row_count, begin + rms_norm_row_block);
  const auto column_of = [&](int p) { return (p * team_threads + member) * n; };

  // Registers are for what changes with the row.
  const auto weights_of = [&](int p) {
    return *reinterpret_cast<const Pack<T, n>*>(memory +
                                                column_of(p) * static_cast<int>(sizeof(T)));
  };
  for (int i = static_cast<int>(threadIdx.x) * n; i < width; i += team_count * team_threads * n)
    *reinterpret_cast<Pack<T, n>*>(memory + i * static_cast<int>(sizeof(T))) =
        *reinterpret_cast<const Pack<T, n>*>(args.weight + i);
  __syncthreads();
  float dweight[Packs][n] = {};
  int parity = 0;
  // Every team comes to as many barriers, also those that have no row in the last round.
  for (std::int64_t first = begin * args.groups; first < end * args.groups;
       first += team_count, parity ^= 1) {
    const std::int64_t item = first + team;
    const bool has_item = item < end * args.groups;
    const std::int64_t row = item / args.groups;
    const std::int64_t column = (item - row * args.groups) * args.width;
    Held<T> x[Packs];
    Held<T> dy[Packs];
    Held<T> dx[Packs];
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      if (!has_item || column_of(p) >= width) continue;
      x[p].load(args.x.at(row, column + column_of(p)));
      dy[p].load(args.dy.at(row, column + column_of(p)));
      if (args.accumulate_dx) dx[p].load(args.dx.at(row, column + column_of(p)));
    }
    const float rstd = has_item ? args.rstd[item] : 0.0f;
    float dot = 0.0f;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      if (!has_item || column_of(p) >= width) continue;
      const Pack<T, n> weight = weights_of(p);
#pragma unroll
      for (int j = 0; j < n; ++j)
        dot = fmaf(to_float(weight.values[j]) * dy[p].at(j), x[p].at(j), dot);
    }
    dot = reduce_warp(dot, Sum{});
    // Sums of the row before may still be read: this row has the other place.
    if (member % warp_size == 0) sums[parity][team][member / warp_size] = dot;
    asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "n"(team_threads) : "memory");
    if (!has_item) break;
    dot = 0.0f;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) dot += sums[parity][team][warp];
    // The mean of weight * dy * normalised x.
    const float mean = dot * rstd / static_cast<float>(width);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      if (column_of(p) >= width) continue;
      x[p].forget_floats();
      dy[p].forget_floats();
      const Pack<T, n> weight = weights_of(p);
      float result[n];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const float normalized = x[p].at(j) * rstd;
        result[j] = fmaf(-normalized, mean, to_float(weight.values[j]) * dy[p].at(j)) * rstd +
                    (args.accumulate_dx ? dx[p].at(j) : 0.0f);
        dweight[p][j] = fmaf(dy[p].at(j), normalized, dweight[p][j]);
      }
      store<n>(args.dx.at(row, column + column_of(p)), result);
      if (args.y.data == nullptr) continue;
#pragma unroll
      for (int j = 0; j < n; ++j)
        result[j] = to_float(from_float<T>(x[p].at(j) * rstd)) * to_float(weight.values[j]);
      store<n>(args.y.at(row, column + column_of(p)), result);
    }
  }
  __syncthreads();

  auto* dweight_of_teams = reinterpret_cast<float*>(memory);  // (width)
  for (int turn = 0; turn < team_count; ++turn) {
    if (team == turn) {
#pragma unroll
      for (int p = 0; p < Packs; ++p)
#pragma unroll
        for (int j = 0; j < n; ++j) {
          const int i = column_of(p) + j;
          if (i < width)
            dweight_of_teams[i] = (turn == 0 ? 0.0f : dweight_of_teams[i]) + dweight[p][j];
        }
    }
    __syncthreads();
  }
  float* partial = args.partial + static_cast<std::int64_t>(blockIdx.x) * args.width;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += team_count * team_threads)
    partial[i] = dweight_of_teams[i];
}

/// Calls f(packs) as a constant, the least power of two with width <= threads * packs of a thread; false for
/// rows that are wider than the largest.
template <class F>
bool with_packs(std::int64_t width, int threads, F&& f) {
  const std::int64_t packs = (width + threads * pack_elements - 1) / (threads * pack_elements);
  if (packs <= 1) return f(std::integral_constant<int, 1>{}), true;
  if (packs <= 2) return f(std::integral_constant<int, 2>{}), true;
  if (packs <= 4) return f(std::integral_constant<int, 4>{}), true;
  return false;
}

/// False, and nothing done, for rows that the kernel does not take.
template <class T>
bool differentiate_wide(const BackwardArgs<T>& args, const device::Queue& queue) {
  if (args.width <= widest_of_warp) return false;
  return with_packs(args.width, team_threads, [&](auto packs) {
    const std::int64_t blocks = (args.row_count + rms_norm_row_block - 1) / rms_norm_row_block;
    differentiate_by_teams<packs, T>
        <<<static_cast<unsigned>(blocks), team_count * team_threads,
           static_cast<std::size_t>(args.width) * sizeof(float), stream_of(queue)>>>(args);
  });
}

constexpr int sum_slices = 8;

/// dweight [+]= partial sums: a warp's lanes are columns, its block's warps take slices of the blocks in order, and the
/// slices are added in order.
template <class T>
__global__ void __launch_bounds__(warp_size* sum_slices)
    sum_partials(const float* partial, std::int64_t block_count, std::int64_t width, T* dweight,
                 bool accumulate) {
  __shared__ float of_slice[sum_slices][warp_size];
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int slice = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_size + lane;
  const std::int64_t blocks_of_slice = (block_count + sum_slices - 1) / sum_slices;
  const std::int64_t begin = slice * blocks_of_slice;
  const std::int64_t end = min(block_count, begin + blocks_of_slice);
  float total = 0.0f;
  if (column < width)
#pragma unroll 16
    for (std::int64_t block = begin; block < end; ++block) total += partial[block * width + column];
  of_slice[slice][lane] = total;
  __syncthreads();
  if (slice != 0 || column >= width) return;
  float sum = accumulate ? to_float(dweight[column]) : 0.0f;
#pragma unroll
  for (int s = 0; s < sum_slices; ++s) sum += of_slice[s][lane];
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
    const bool packed = packs({group_of(args.x, width), group_of(args.y, width), args.weight});
    if constexpr (!std::is_same_v<T, float>) {
      if (packed && width > widest_of_warp && with_packs(width, forward_threads, [&](auto held) {
            normalize_held<held, T>
                <<<static_cast<unsigned>(items), forward_threads, 0, stream_of(queue)>>>(
                    rows_of<const T>(args.x), args.weight.as<T>(), rows_of<T>(args.y),
                    args.rstd.as<float>(), args.groups, static_cast<int>(width), args.epsilon);
          }))
        return;
    }
    with_width(packed, [&](auto n) {
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
                                     .y = rows_of<T>(args.y),
                                     .partial = args.scratch.as<float>(),
                                     .row_count = args.x.rows,
                                     .groups = args.groups,
                                     .width = width,
                                     .accumulate_dx = args.accumulate_dx};
      const bool packed =
          packs({group_of(args.x, width), group_of(args.dy, width), group_of(args.dx, width),
                 group_of(args.y, width), args.weight, args.scratch}) &&
          width % pack_elements == 0;
      if constexpr (!std::is_same_v<T, float>)
        if (packed && differentiate_wide(backward, queue)) return;
      with_width(packed, [&](auto n) { differentiate_groups<n>(backward, queue); });
    });
  with_storage(args.dweight.type, [&](auto tag) {
    using T = decltype(tag);
    sum_partials<T><<<static_cast<unsigned>((width + warp_size - 1) / warp_size),
                      warp_size * sum_slices, 0, stream_of(queue)>>>(
        args.scratch.as<float>(), blocks, width, args.dweight.as<T>(), args.accumulate_dweight);
  });
}

}  // namespace underkeel::kernels::cuda
