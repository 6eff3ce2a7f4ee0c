// Attention of 16-bit types on tensor cores, in the form of Dao 2023 (FlashAttention-2) with the two backward
// kernels of attention.cu. Probabilities and their gradients are rounded to the storage type where they
// become operands; sums, maxima and scores are f32. Tiles arrive while the one before is worked on.

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace underkeel::kernels::cuda {

namespace {

constexpr int warps = 4;
constexpr int threads = warps * warp_size;
constexpr int own_rows = warps * 16;  // a warp has the 16 rows of one left operand
constexpr float lowest_score = -1e30f;
constexpr float log2_of_e = 1.4426950408889634f;

template <class T>
__device__ Rows<const T> head_part(const Rows<const T>& all, int head, int width) {
  return {all.data + static_cast<std::int64_t>(head) * width, all.stride};
}

/// 2^x within two units in the last place; 0 where the result would be subnormal.
__device__ inline float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline float reduce_quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(whole_warp, value, 1));
  return fmaxf(value, __shfl_xor_sync(whole_warp, value, 2));
}
__device__ inline float reduce_quad_sum(float value) {
  value += __shfl_xor_sync(whole_warp, value, 1);
  return value + __shfl_xor_sync(whole_warp, value, 2);
}

/// Left operand of the product over columns [16 step, 16 step + 16) of results in registers.
template <class T, int N>
__device__ inline void left_of(const float (&results)[N][4], int step, std::uint32_t (&to)[4]) {
  to[0] = pair_of<T>(results[2 * step][0], results[2 * step][1]);
  to[1] = pair_of<T>(results[2 * step][2], results[2 * step][3]);
  to[2] = pair_of<T>(results[2 * step + 1][0], results[2 * step + 1][1]);
  to[3] = pair_of<T>(results[2 * step + 1][2], results[2 * step + 1][3]);
}

/// sum (16 x Width) += left (16 x 16 Steps, results) rows of `right` from `row` on.
template <class T, int Width, int Steps>
__device__ inline void add_product(const float (&left)[2 * Steps][4], const Tile<Width>& right,
                                   float (&sum)[Width / 8][4]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    std::uint32_t a[4];
    left_of<T>(left, step, a);
#pragma unroll
    for (int e = 0; e < Width / 16; ++e) {
      std::uint32_t b[4];
      right.load_right_by_rows(16 * step, e, b);
      multiply<T>(sum[2 * e], a, b[0], b[1]);
      multiply<T>(sum[2 * e + 1], a, b[2], b[3]);
    }
  }
}

template <class T>
__device__ inline void write_pair(T* to, float first, float second) {
  *reinterpret_cast<std::uint32_t*>(to) = pair_of<T>(first, second);
}

constexpr int forward_tile = 64;  // keys at a time

template <int Width>
constexpr int forward_shared_bytes() {
  return Tile<Width>::bytes_of(own_rows) + 4 * Tile<Width>::bytes_of(forward_tile);
}

template <int Width, class T>
__global__ void __launch_bounds__(threads, 2) attend(AttentionForward<T> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  constexpr int tile_bytes = Tile<Width>::bytes_of(forward_tile);
  const Tile<Width> queries{base};
  const std::uint32_t tiles = base + Tile<Width>::bytes_of(own_rows);
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int head = static_cast<int>(blockIdx.y);
  const std::int32_t rows = args.visibility.row_count;
  // Late queries see the most keys: they go first.
  const auto block = static_cast<std::int32_t>(gridDim.x - 1 - blockIdx.x);
  const std::int32_t block_begin = block * own_rows;
  const std::int32_t block_end = min(rows, block_begin + own_rows);
  const Rows<const T> k = head_part(args.k, head / args.group, Width);
  const Rows<const T> v = head_part(args.v, head / args.group, Width);
  const std::int32_t walk_begin = args.visibility.first_key(block_begin);
  const std::int32_t last_first_key = args.visibility.first_key(block_end - 1);
  const auto start_tile = [&](std::int32_t begin, int slot) {
    Tile<Width>{tiles + 2 * slot * tile_bytes}.start_copy(k, begin, forward_tile, block_end);
    Tile<Width>{tiles + (2 * slot + 1) * tile_bytes}.start_copy(v, begin, forward_tile, block_end);
    end_copy_group();
  };
  queries.start_copy(head_part(args.q, head, Width), block_begin, own_rows, block_end);
  start_tile(walk_begin, 0);

  std::int32_t query[2];
  std::int32_t first_key[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    query[half] = block_begin + warp * 16 + lane / 4 + 8 * half;
    first_key[half] = args.visibility.first_key(min(query[half], rows - 1));
  }
  float largest[2] = {lowest_score, lowest_score};
  float sum[2] = {0.0f, 0.0f};
  float mixed[Width / 8][4] = {};
  std::uint32_t own[Width / 16][4];
  const float scale = args.scale * log2_of_e;

  int slot = 0;
  for (std::int32_t begin = walk_begin; begin < block_end; begin += forward_tile, slot ^= 1) {
    wait_for_copies();
    __syncthreads();
    if (begin == walk_begin) {
#pragma unroll
      for (int step = 0; step < Width / 16; ++step) queries.load_left(warp * 16, step, own[step]);
    }
    if (begin + forward_tile < block_end) start_tile(begin + forward_tile, slot ^ 1);
    const Tile<Width> keys{tiles + 2 * slot * tile_bytes};
    const Tile<Width> values{tiles + (2 * slot + 1) * tile_bytes};
    if (begin > block_begin + warp * 16 + 15) continue;  // after all queries of this warp

    float scores[forward_tile / 8][4] = {};
#pragma unroll
    for (int step = 0; step < Width / 16; ++step)
#pragma unroll
      for (int n = 0; n < forward_tile / 16; ++n) {
        std::uint32_t b[4];
        keys.load_right(16 * n, step, b);
        multiply<T>(scores[2 * n], own[step], b[0], b[1]);
        multiply<T>(scores[2 * n + 1], own[step], b[2], b[3]);
      }
    const bool all_visible =
        begin >= last_first_key && begin + forward_tile - 1 <= block_begin + warp * 16;
    if (!all_visible) {
#pragma unroll
      for (int n = 0; n < forward_tile / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::int32_t key = begin + 8 * n + 2 * (lane % 4) + i % 2;
          if (key < first_key[i / 2] || key > query[i / 2]) scores[n][i] = -INFINITY;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = largest[half];
#pragma unroll
      for (int n = 0; n < forward_tile / 8; ++n)
        most = fmaxf(most, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      most = reduce_quad_max(most);
      const float rescale = power_of_two((largest[half] - most) * scale);
      largest[half] = most;
      const float shift = most * scale;
      float part = 0.0f;
#pragma unroll
      for (int n = 0; n < forward_tile / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = power_of_two(fmaf(scores[n][i], scale, -shift));
          part += scores[n][i];
        }
      sum[half] = fmaf(sum[half], rescale, part);
#pragma unroll
      for (int e = 0; e < Width / 8; ++e) {
        mixed[e][2 * half] *= rescale;
        mixed[e][2 * half + 1] *= rescale;
      }
    }
    add_product<T, Width, forward_tile / 16>(scores, values, mixed);
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = reduce_quad_sum(sum[half]);
    if (query[half] >= block_end) continue;
    const float factor = 1.0f / total;
    if (lane % 4 == 0)
      args.lse[static_cast<std::int64_t>(query[half]) * args.query_heads + head] =
          fmaf(largest[half], args.scale, logf(total));
    T* to = args.out.at(query[half], static_cast<std::int64_t>(head) * Width + 2 * (lane % 4));
#pragma unroll
    for (int e = 0; e < Width / 8; ++e)
      write_pair(to + 8 * e, mixed[e][2 * half] * factor, mixed[e][2 * half + 1] * factor);
  }
}

constexpr int backward_tile = 32;  // rows of the other side at a time

template <int Width>
constexpr int backward_shared_bytes() {
  return 2 * Tile<Width>::bytes_of(own_rows) + 4 * Tile<Width>::bytes_of(backward_tile) +
         4 * backward_tile * static_cast<int>(sizeof(float));
}

/// As in attention.cu: OfKeys keeps keys and values of a key head and walks queries, giving dk and dv; else it
/// keeps queries and walks keys, giving dq. `own1` is k or q, `own2` v or dout; `walk1` q or k, `walk2`
/// dout or v.
template <bool OfKeys, int Width, class T>
__global__ void __launch_bounds__(threads, 2) differentiate(AttentionBackward<T> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  constexpr int own_bytes = Tile<Width>::bytes_of(own_rows);
  constexpr int tile_bytes = Tile<Width>::bytes_of(backward_tile);
  const Tile<Width> own1{base};
  const Tile<Width> own2{base + own_bytes};
  const std::uint32_t tiles = base + 2 * own_bytes;
  // Of walked queries, for both slots: log2 of the sum of exponentials, and dout . out.
  auto* walked_lse = reinterpret_cast<float*>(memory + 2 * own_bytes + 4 * tile_bytes);
  float* walked_delta = walked_lse + 2 * backward_tile;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int32_t rows = args.visibility.row_count;
  // Early keys are seen by most queries, late queries see most keys: they go first.
  const auto block = static_cast<std::int32_t>(OfKeys ? blockIdx.x : gridDim.x - 1 - blockIdx.x);
  const std::int32_t block_begin = block * own_rows;
  const std::int32_t block_end = min(rows, block_begin + own_rows);
  const int own_head = static_cast<int>(blockIdx.y);
  const std::int32_t walk_begin = OfKeys ? block_begin : args.visibility.first_key(block_begin);
  const std::int32_t walk_end = OfKeys ? args.visibility.query_end(block_end - 1) : block_end;
  const int first_head = OfKeys ? own_head * args.group : own_head / args.group;
  const int head_count = OfKeys ? args.group : 1;
  const int tiles_per_head = (walk_end - walk_begin + backward_tile - 1) / backward_tile;
  const int tile_count = tiles_per_head * head_count;

  const auto start_tile = [&](int tile, int slot) {
    const int head = first_head + tile / tiles_per_head;
    const std::int32_t begin = walk_begin + tile % tiles_per_head * backward_tile;
    Tile<Width>{tiles + 2 * slot * tile_bytes}.start_copy(
        head_part(OfKeys ? args.q : args.k, head, Width), begin, backward_tile, walk_end);
    Tile<Width>{tiles + (2 * slot + 1) * tile_bytes}.start_copy(
        head_part(OfKeys ? args.dout : args.v, head, Width), begin, backward_tile, walk_end);
    end_copy_group();
    if (OfKeys && threadIdx.x < backward_tile) {
      const std::int32_t query = min(begin + static_cast<std::int32_t>(threadIdx.x), rows - 1);
      const std::int64_t item = static_cast<std::int64_t>(query) * args.query_heads + head;
      walked_lse[slot * backward_tile + threadIdx.x] = args.lse[item] * log2_of_e;
      walked_delta[slot * backward_tile + threadIdx.x] = args.delta[item];
    }
  };
  own1.start_copy(head_part(OfKeys ? args.k : args.q, own_head, Width), block_begin, own_rows,
                  block_end);
  own2.start_copy(head_part(OfKeys ? args.v : args.dout, own_head, Width), block_begin, own_rows,
                  block_end);
  start_tile(0, 0);

  std::int32_t own[2];
  std::int32_t limit[2];  // OfKeys: one past the last query that sees the key; else the first key
  float own_lse[2] = {};
  float own_delta[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    own[half] = block_begin + warp * 16 + lane / 4 + 8 * half;
    const std::int32_t row = min(own[half], rows - 1);
    limit[half] = OfKeys ? args.visibility.query_end(row) : args.visibility.first_key(row);
    if (OfKeys) continue;
    const std::int64_t item = static_cast<std::int64_t>(row) * args.query_heads + own_head;
    own_lse[half] = args.lse[item] * log2_of_e;
    own_delta[half] = args.delta[item];
  }
  const float scale = args.scale * log2_of_e;
  float first[Width / 8][4] = {};                // dk or dq
  float second[OfKeys ? Width / 8 : 1][4] = {};  // dv

  for (int tile = 0; tile < tile_count; ++tile) {
    const int slot = tile % 2;
    wait_for_copies();
    __syncthreads();
    if (tile + 1 < tile_count) start_tile(tile + 1, slot ^ 1);
    const std::int32_t begin = walk_begin + tile % tiles_per_head * backward_tile;
    const Tile<Width> walk1{tiles + 2 * slot * tile_bytes};
    const Tile<Width> walk2{tiles + (2 * slot + 1) * tile_bytes};
    float p[backward_tile / 8][4] = {};
    float ds[backward_tile / 8][4] = {};
#pragma unroll
    for (int step = 0; step < Width / 16; ++step) {
      std::uint32_t a1[4];
      std::uint32_t a2[4];
      own1.load_left(warp * 16, step, a1);
      own2.load_left(warp * 16, step, a2);
#pragma unroll
      for (int n = 0; n < backward_tile / 16; ++n) {
        std::uint32_t b[4];
        walk1.load_right(16 * n, step, b);
        multiply<T>(p[2 * n], a1, b[0], b[1]);
        multiply<T>(p[2 * n + 1], a1, b[2], b[3]);
        walk2.load_right(16 * n, step, b);
        multiply<T>(ds[2 * n], a2, b[0], b[1]);
        multiply<T>(ds[2 * n + 1], a2, b[2], b[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < backward_tile / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = 8 * n + 2 * (lane % 4) + i % 2;
        const std::int32_t walked = begin + place;
        const bool visible = OfKeys ? walked >= own[i / 2] && walked < limit[i / 2]
                                    : walked >= limit[i / 2] && walked <= own[i / 2];
        const float lse = OfKeys ? walked_lse[slot * backward_tile + place] : own_lse[i / 2];
        const float delta = OfKeys ? walked_delta[slot * backward_tile + place] : own_delta[i / 2];
        p[n][i] = visible ? power_of_two(fmaf(p[n][i], scale, -lse)) : 0.0f;
        ds[n][i] = p[n][i] * (ds[n][i] - delta);
      }
    add_product<T, Width, backward_tile / 16>(ds, walk1, first);
    if constexpr (OfKeys) add_product<T, Width, backward_tile / 16>(p, walk2, second);
  }

  const Rows<T>& to = OfKeys ? args.dk : args.dq;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (own[half] >= block_end) continue;
    const std::int64_t column = static_cast<std::int64_t>(own_head) * Width + 2 * (lane % 4);
#pragma unroll
    for (int e = 0; e < Width / 8; ++e) {
      write_pair(to.at(own[half], column + 8 * e), first[e][2 * half] * args.scale,
                 first[e][2 * half + 1] * args.scale);
      if constexpr (OfKeys)
        write_pair(args.dv.at(own[half], column + 8 * e), second[e][2 * half],
                   second[e][2 * half + 1]);
    }
  }
}

template <class T>
bool is_aligned(std::initializer_list<Rows<T>> matrices) {
  for (const Rows<T>& matrix : matrices)
    if (reinterpret_cast<std::uintptr_t>(matrix.data) % 16 != 0 || matrix.stride % 8 != 0)
      return false;
  return true;
}

dim3 grid_of(std::int32_t rows, int heads) {
  return dim3(static_cast<unsigned>((rows + own_rows - 1) / own_rows),
              static_cast<unsigned>(heads));
}

template <class Kernel, class Args>
void launch(Kernel kernel, dim3 grid, int shared_bytes, const Args& args,
            const device::Queue& queue) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel),
                      static_cast<std::size_t>(shared_bytes));
  kernel<<<grid, threads, static_cast<std::size_t>(shared_bytes), stream_of(queue)>>>(args);
}

/// Calls f(width) as a constant; false for other widths.
template <class F>
bool with_width_of_head(int width, F&& f) {
  if (width == 64) return f(std::integral_constant<int, 64>{}), true;
  if (width == 128) return f(std::integral_constant<int, 128>{}), true;
  return false;
}

}  // namespace

template <class T>
bool attend_on_tensor_cores(const AttentionForward<T>& args, const device::Queue& queue) {
  if (!is_aligned({args.q, args.k, args.v}) || !is_aligned({args.out})) return false;
  return with_width_of_head(args.width, [&](auto width) {
    launch(&attend<width, T>, grid_of(args.visibility.row_count, args.query_heads),
           forward_shared_bytes<width>(), args, queue);
  });
}

template <class T>
bool differentiate_on_tensor_cores(const AttentionBackward<T>& args, const device::Queue& queue) {
  if (!is_aligned({args.q, args.k, args.v, args.dout}) || !is_aligned({args.dq, args.dk, args.dv}))
    return false;
  return with_width_of_head(args.width, [&](auto width) {
    const std::int32_t rows = args.visibility.row_count;
    constexpr int shared_bytes = backward_shared_bytes<width>();
    launch(&differentiate<true, width, T>, grid_of(rows, args.query_heads / args.group),
           shared_bytes, args, queue);
    launch(&differentiate<false, width, T>, grid_of(rows, args.query_heads), shared_bytes, args,
           queue);
  });
}

template bool attend_on_tensor_cores(const AttentionForward<__nv_bfloat16>&, const device::Queue&);
template bool attend_on_tensor_cores(const AttentionForward<__half>&, const device::Queue&);
template bool differentiate_on_tensor_cores(const AttentionBackward<__nv_bfloat16>&,
                                            const device::Queue&);
template bool differentiate_on_tensor_cores(const AttentionBackward<__half>&, const device::Queue&);

}  // namespace underkeel::kernels::cuda
