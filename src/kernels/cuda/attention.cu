// Attention in f32 for any type and width of a head: tiles in shared memory, a warp for a few rows, a running
// softmax (Milakov and Gimelshein 2018; Dao et al. 2022). The backward pass has two kernels, one that keeps
// keys and walks queries and one that keeps queries and walks keys, so that nothing is added by two blocks.
// Heads that tensor cores can take are theirs (attention_hopper_*.cu, attention_tensor.cu).

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int warps = 4;
constexpr int threads = warps * warp_size;
constexpr int tile_rows = warp_size;  // rows of the other side at a time: one a lane
/// Below any real score; finite, so that the difference of two of them is 0.
constexpr float lowest_score = -1e30f;

/// Columns is how many columns of the head a lane holds, Own how many queries a warp has.
template <int Columns, int Own, class T>
__global__ void __launch_bounds__(threads) attend(AttentionForward<T> args) {
  extern __shared__ float memory[];
  const int width = args.width;
  const int key_stride = width + 1;  // lanes read a column of keys: without a gap all from one bank
  float* queries = memory;
  float* keys = queries + warps * Own * width;
  float* values = keys + tile_rows * key_stride;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int head = static_cast<int>(blockIdx.y);
  const std::int32_t rows = args.visibility.row_count;
  const std::int32_t block_begin = static_cast<std::int32_t>(blockIdx.x) * warps * Own;
  const std::int32_t block_end = min(rows, block_begin + warps * Own);
  const auto column = static_cast<std::int64_t>(head) * width;
  const auto key_column = static_cast<std::int64_t>(head / args.group) * width;
  const Rows<const T> k{args.k.data + key_column, args.k.stride};
  const Rows<const T> v{args.v.data + key_column, args.v.stride};
  load_tile(Rows<const T>{args.q.data + column, args.q.stride}, block_begin, warps * Own, block_end,
            width, args.scale, queries, width);

  std::int32_t first_key[Own];
  float largest[Own];
  float sum[Own];
  float mixed[Own][Columns] = {};
#pragma unroll
  for (int r = 0; r < Own; ++r) {
    const std::int32_t query = min(block_begin + warp * Own + r, rows - 1);
    first_key[r] = args.visibility.first_key(query);
    largest[r] = lowest_score;
    sum[r] = 0.0f;
  }
  for (std::int32_t begin = args.visibility.first_key(block_begin); begin < block_end;
       begin += tile_rows) {
    __syncthreads();
    load_tile(k, begin, tile_rows, block_end, width, 1.0f, keys, key_stride);
    load_tile(v, begin, tile_rows, block_end, width, 1.0f, values, width);
    __syncthreads();
    float score[Own] = {};
    for (int e = 0; e < width; ++e) {
      const float key = keys[lane * key_stride + e];
#pragma unroll
      for (int r = 0; r < Own; ++r)
        score[r] = fmaf(queries[(warp * Own + r) * width + e], key, score[r]);
    }
#pragma unroll
    for (int r = 0; r < Own; ++r) {
      const std::int32_t query = block_begin + warp * Own + r;
      const std::int32_t key = begin + lane;
      if (key < first_key[r] || key > query) score[r] = -INFINITY;
      const float before = largest[r];
      largest[r] = fmaxf(before, reduce_warp(score[r], Largest{}));
      score[r] = expf(score[r] - largest[r]);
      const float rescale = expf(before - largest[r]);
      sum[r] = fmaf(sum[r], rescale, reduce_warp(score[r], Sum{}));
#pragma unroll
      for (int c = 0; c < Columns; ++c) mixed[r][c] *= rescale;
    }
    for (int j = 0; j < tile_rows; ++j) {
      float value[Columns];
#pragma unroll
      for (int c = 0; c < Columns; ++c) {
        const int e = lane + c * warp_size;
        value[c] = e < width ? values[j * width + e] : 0.0f;
      }
#pragma unroll
      for (int r = 0; r < Own; ++r) {
        const float weight = __shfl_sync(whole_warp, score[r], j);
#pragma unroll
        for (int c = 0; c < Columns; ++c) mixed[r][c] = fmaf(weight, value[c], mixed[r][c]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < Own; ++r) {
    const std::int32_t query = block_begin + warp * Own + r;
    if (query >= block_end) continue;
    const float factor = 1.0f / sum[r];
    if (lane == 0)
      args.lse[static_cast<std::int64_t>(query) * args.query_heads + head] =
          largest[r] + logf(sum[r]);
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int e = lane + c * warp_size;
      if (e < width) *args.out.at(query, column + e) = from_float<T>(mixed[r][c] * factor);
    }
  }
}

/// delta = dout . out of every row and head, each by `team` neighbouring lanes that take N columns at a time.
template <int N, class T>
__global__ void __launch_bounds__(threads) sum_row_products(AttentionBackward<T> args, int team) {
  const int item_count = args.visibility.row_count * args.query_heads;
  const int teams = threads / team;
  const int item = static_cast<int>(blockIdx.x) * teams + static_cast<int>(threadIdx.x) / team;
  const int row = min(item, item_count - 1) / args.query_heads;  // all lanes take part in the sum
  const int column = (min(item, item_count - 1) - row * args.query_heads) * args.width;
  const int member = static_cast<int>(threadIdx.x) % team;
  float sum = 0.0f;
  for (int e = member * N; e < args.width; e += team * N) {
    float dout[N];
    float out[N];
    load<N>(args.dout.at(row, column + e), dout);
    load<N>(args.out.at(row, column + e), out);
#pragma unroll
    for (int i = 0; i < N; ++i) sum = fmaf(dout[i], out[i], sum);
  }
  for (int offset = team / 2; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(whole_warp, sum, offset);
  if (member == 0 && item < item_count) args.delta[item] = sum;
}

template <class T>
void start_row_products(const AttentionBackward<T>& args, const AttentionBackwardArgs& views,
                        const device::Queue& queue) {
  with_width(packs({views.out, views.dout}) && args.width % pack_elements == 0, [&](auto n) {
    int team = 1;
    while (team < warp_size && team * n < args.width) team *= 2;
    const std::int64_t items =
        static_cast<std::int64_t>(args.visibility.row_count) * args.query_heads;
    const std::int64_t teams = threads / team;
    sum_row_products<n>
        <<<static_cast<unsigned>((items + teams - 1) / teams), threads, 0, stream_of(queue)>>>(
            args, team);
  });
}

/// Keeps rows of one side and walks the other in tiles of a row a lane. OfKeys: keeps keys and values of a
/// key head, walks queries of its group's heads, gives dk and dv; else the other way round, gives dq.
template <bool OfKeys, int Columns, int Own, class T>
__global__ void __launch_bounds__(threads) differentiate(AttentionBackward<T> args) {
  extern __shared__ float memory[];
  const int width = args.width;
  const int stride = width + 1;
  float* own1 = memory;                       // k or q
  float* own2 = own1 + warps * Own * width;   // v or dout
  float* tile1 = own2 + warps * Own * width;  // q or k
  float* tile2 = tile1 + tile_rows * stride;  // dout or v
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int32_t rows = args.visibility.row_count;
  const std::int32_t block_begin = static_cast<std::int32_t>(blockIdx.x) * warps * Own;
  const std::int32_t block_end = min(rows, block_begin + warps * Own);
  const int own_head = static_cast<int>(blockIdx.y);
  const auto head_part = [width](const Rows<const T>& all, int head) {
    return Rows<const T>{all.data + static_cast<std::int64_t>(head) * width, all.stride};
  };
  load_tile(head_part(OfKeys ? args.k : args.q, own_head), block_begin, warps * Own, block_end,
            width, 1.0f, own1, width);
  load_tile(head_part(OfKeys ? args.v : args.dout, own_head), block_begin, warps * Own, block_end,
            width, 1.0f, own2, width);

  std::int32_t limit[Own];  // OfKeys: one past the last query that sees the key; else the first key
  float own_lse[Own];
  float own_delta[Own];
#pragma unroll
  for (int r = 0; r < Own; ++r) {
    const std::int32_t row = min(block_begin + warp * Own + r, rows - 1);
    limit[r] = OfKeys ? args.visibility.query_end(row) : args.visibility.first_key(row);
    const std::int64_t item = static_cast<std::int64_t>(row) * args.query_heads + own_head;
    own_lse[r] = OfKeys ? 0.0f : args.lse[item];
    own_delta[r] = OfKeys ? 0.0f : args.delta[item];
  }
  const std::int32_t walk_begin = OfKeys ? block_begin : args.visibility.first_key(block_begin);
  const std::int32_t walk_end = OfKeys ? args.visibility.query_end(block_end - 1) : block_end;

  float first[Own][Columns] = {};   // dk or dq
  float second[Own][Columns] = {};  // dv
  const int head_begin = OfKeys ? own_head * args.group : own_head / args.group;
  const int head_end = OfKeys ? head_begin + args.group : head_begin + 1;
  for (int head = head_begin; head < head_end; ++head) {
    for (std::int32_t begin = walk_begin; begin < walk_end; begin += tile_rows) {
      __syncthreads();
      load_tile(head_part(OfKeys ? args.q : args.k, head), begin, tile_rows, walk_end, width, 1.0f,
                tile1, stride);
      load_tile(head_part(OfKeys ? args.dout : args.v, head), begin, tile_rows, walk_end, width,
                1.0f, tile2, stride);
      __syncthreads();
      float score[Own] = {};
      float dscore[Own] = {};
      for (int e = 0; e < width; ++e) {
        const float one = tile1[lane * stride + e];
        const float two = tile2[lane * stride + e];
#pragma unroll
        for (int r = 0; r < Own; ++r) {
          score[r] = fmaf(own1[(warp * Own + r) * width + e], one, score[r]);
          dscore[r] = fmaf(own2[(warp * Own + r) * width + e], two, dscore[r]);
        }
      }
      const std::int32_t walked = begin + lane;
      float walked_lse = 0.0f;
      float walked_delta = 0.0f;
      if (OfKeys && walked < walk_end) {
        const std::int64_t item = static_cast<std::int64_t>(walked) * args.query_heads + head;
        walked_lse = args.lse[item];
        walked_delta = args.delta[item];
      }
#pragma unroll
      for (int r = 0; r < Own; ++r) {
        const std::int32_t own = block_begin + warp * Own + r;
        const bool visible =
            OfKeys ? walked >= own && walked < limit[r] : walked >= limit[r] && walked <= own;
        const float lse = OfKeys ? walked_lse : own_lse[r];
        const float delta = OfKeys ? walked_delta : own_delta[r];
        score[r] = visible ? expf(score[r] * args.scale - lse) : 0.0f;
        dscore[r] = score[r] * (dscore[r] - delta);
      }
      for (int j = 0; j < tile_rows; ++j) {
        float one[Columns];
        float two[Columns];
#pragma unroll
        for (int c = 0; c < Columns; ++c) {
          const int e = lane + c * warp_size;
          one[c] = e < width ? tile1[j * stride + e] : 0.0f;
          two[c] = OfKeys && e < width ? tile2[j * stride + e] : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < Own; ++r) {
          const float ds = __shfl_sync(whole_warp, dscore[r], j);
          const float p = OfKeys ? __shfl_sync(whole_warp, score[r], j) : 0.0f;
#pragma unroll
          for (int c = 0; c < Columns; ++c) {
            first[r][c] = fmaf(ds, one[c], first[r][c]);
            if (OfKeys) second[r][c] = fmaf(p, two[c], second[r][c]);
          }
        }
      }
    }
  }
  const Rows<T>& to = OfKeys ? args.dk : args.dq;
  const std::int64_t column = static_cast<std::int64_t>(own_head) * width;
#pragma unroll
  for (int r = 0; r < Own; ++r) {
    const std::int32_t row = block_begin + warp * Own + r;
    if (row >= block_end) continue;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const int e = lane + c * warp_size;
      if (e >= width) continue;
      *to.at(row, column + e) = from_float<T>(first[r][c] * args.scale);
      if (OfKeys) *args.dv.at(row, column + e) = from_float<T>(second[r][c]);
    }
  }
}

/// Calls f(columns of a lane, rows of a warp) as constants for this width of a head.
template <class F>
void with_head_width(std::int64_t width, F&& f) {
  if (width <= 2 * warp_size)
    return f(std::integral_constant<int, 2>{}, std::integral_constant<int, 4>{});
  if (width <= 4 * warp_size)
    return f(std::integral_constant<int, 4>{}, std::integral_constant<int, 4>{});
  static_assert(largest_head_width <= 16 * warp_size);
  f(std::integral_constant<int, 16>{}, std::integral_constant<int, 2>{});
}

Visibility visibility_of(const TensorView& starts, std::int64_t rows, std::int64_t window) {
  return {.starts = starts.as<std::int32_t>(),
          .row_count = static_cast<std::int32_t>(rows),
          .window = static_cast<std::int32_t>(window < rows ? window : 0)};
}

dim3 grid_of(std::int64_t rows, std::int64_t heads, int own) {
  const std::int64_t block_rows = warps * own;
  return dim3(static_cast<unsigned>((rows + block_rows - 1) / block_rows),
              static_cast<unsigned>(heads));
}

/// On tensor cores, if type, width and strides are such.
template <class T>
bool differentiate_narrow(const AttentionBackward<T>& args, const device::Queue& queue) {
  if constexpr (std::is_same_v<T, float>)
    return false;
  else
    return differentiate_on_tensor_cores(args, queue);
}

template <class T>
void differentiate_anywhere(const AttentionBackward<T>& args, const device::Queue& queue) {
  with_head_width(args.width, [&](auto columns, auto own) {
    const std::size_t shared =
        sizeof(float) *
        static_cast<std::size_t>(2 * warps * own * args.width + 2 * tile_rows * (args.width + 1));
    const auto of_keys = &differentiate<true, columns, own, T>;
    const auto of_queries = &differentiate<false, columns, own, T>;
    allow_shared_memory(reinterpret_cast<const void*>(of_keys), shared);
    allow_shared_memory(reinterpret_cast<const void*>(of_queries), shared);
    const std::int32_t rows = args.visibility.row_count;
    of_keys<<<grid_of(rows, args.query_heads / args.group, own), threads, shared,
              stream_of(queue)>>>(args);
    of_queries<<<grid_of(rows, args.query_heads, own), threads, shared, stream_of(queue)>>>(args);
  });
}

}  // namespace

void attention_forward(const AttentionForwardArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  if (shape.rows == 0) return;
  const auto width = static_cast<int>(shape.head_width);
  with_storage(args.q.type, [&](auto tag) {
    using T = decltype(tag);
    const AttentionForward<T> forward{
        .q = rows_of<const T>(args.q),
        .k = rows_of<const T>(args.k),
        .v = rows_of<const T>(args.v),
        .out = rows_of<T>(args.out),
        .lse = args.lse.as<float>(),
        .visibility = visibility_of(args.sequence_starts, shape.rows, args.window),
        .query_heads = static_cast<int>(shape.query_heads),
        .group = static_cast<int>(shape.query_heads / shape.key_heads),
        .width = width,
        .scale = args.scale};
    if constexpr (!std::is_same_v<T, float>)
      if (attend_on_hopper(forward, queue) || attend_on_tensor_cores(forward, queue)) return;
    with_head_width(width, [&](auto columns, auto own) {
      const std::size_t shared =
          sizeof(float) * static_cast<std::size_t>(warps * own * width + tile_rows * (width + 1) +
                                                   tile_rows * width);
      const auto kernel = &attend<columns, own, T>;
      allow_shared_memory(reinterpret_cast<const void*>(kernel), shared);
      kernel<<<grid_of(shape.rows, shape.query_heads, own), threads, shared, stream_of(queue)>>>(
          forward);
    });
  });
}

void attention_backward(const AttentionBackwardArgs& args, device::Queue& queue) {
  const AttentionShape shape = check_shapes(args);
  if (shape.rows == 0) return;
  const auto width = static_cast<int>(shape.head_width);
  with_storage(args.q.type, [&](auto tag) {
    using T = decltype(tag);
    const AttentionBackward<T> backward{
        .q = rows_of<const T>(args.q),
        .k = rows_of<const T>(args.k),
        .v = rows_of<const T>(args.v),
        .out = rows_of<const T>(args.out),
        .dout = rows_of<const T>(args.dout),
        .dq = rows_of<T>(args.dq),
        .dk = rows_of<T>(args.dk),
        .dv = rows_of<T>(args.dv),
        .lse = args.lse.as<float>(),
        .delta = args.scratch.as<float>(),
        .cosine = rows_of<const float>(args.cosine),
        .sine = rows_of<const float>(args.sine),
        .visibility = visibility_of(args.sequence_starts, shape.rows, args.window),
        .query_heads = static_cast<int>(shape.query_heads),
        .group = static_cast<int>(shape.query_heads / shape.key_heads),
        .width = width,
        .scale = args.scale};
    start_row_products(backward, args, queue);
    if constexpr (!std::is_same_v<T, float>)
      if (differentiate_on_hopper(backward, queue)) return;
    if (!differentiate_narrow(backward, queue)) differentiate_anywhere(backward, queue);
    if (args.cosine.data == nullptr) return;
    for (const TensorView& x : {args.dq, args.dk})
      rope_apply({.x = x,
                  .cosine = args.cosine,
                  .sine = args.sine,
                  .head_width = shape.head_width,
                  .inverse = true},
                 queue);
  });
}

}  // namespace underkeel::kernels::cuda
