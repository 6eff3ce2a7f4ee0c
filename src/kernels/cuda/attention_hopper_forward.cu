// The forward pass of attention on Hopper: a block has 128 queries of one head and walks their keys in tiles of 128.
// While the products of a tile with its values run, the next tile's scores do too.

#include "kernels/cuda/attention_hopper.cuh"

namespace underkeel::kernels::cuda {

namespace {

using namespace hopper;

constexpr float lowest_score = -1e30f;

__device__ inline float reduce_quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(whole_warp, value, 1));
  return fmaxf(value, __shfl_xor_sync(whole_warp, value, 2));
}
__device__ inline float reduce_quad_sum(float value) {
  value += __shfl_xor_sync(whole_warp, value, 1);
  return value + __shfl_xor_sync(whole_warp, value, 2);
}

template <class T>
struct ForwardMaps {
  CUtensorMap q, k, v, out;
};

template <int Width>
struct ForwardMemory {
  static constexpr int slots = 2;
  using Own = PanelTile<own_rows, Width>;
  using Walked = PanelTile<128, Width>;
  static constexpr int size_bytes = shared_slack_bytes + Own::size_bytes +
                                    2 * slots * Walked::size_bytes + 2 * Ring<slots>::size_bytes +
                                    8;
  std::uint32_t begin = shared_begin();
  __device__ Own queries() const { return {begin}; }
  __device__ Walked keys(int slot) const {
    return {begin + static_cast<unsigned>(Own::size_bytes + 2 * slot * Walked::size_bytes)};
  }
  __device__ Walked values(int slot) const {
    return {keys(slot).begin + static_cast<unsigned>(Walked::size_bytes)};
  }
  __device__ Ring<slots> key_ring() const { return {keys(slots).begin}; }
  __device__ Ring<slots> value_ring() const {
    return {key_ring().begin + static_cast<unsigned>(Ring<slots>::size_bytes)};
  }
  __device__ std::uint32_t queries_full() const {
    return value_ring().begin + static_cast<unsigned>(Ring<slots>::size_bytes);
  }
};

/// A group's share of the forward pass: 64 queries. Start number `from` is that of the block's first row.
template <int Width, class T>
__device__ inline void attend_group(const AttentionForward<T>& args, const CUtensorMap& out,
                                    int group, int head, std::int32_t block_begin,
                                    std::int32_t block_end, std::int32_t from) {
  using Memory = ForwardMemory<Width>;
  constexpr int tile = Memory::Walked::rows;
  const Memory memory;
  const auto queries = memory.queries();
  const auto key_ring = memory.key_ring();
  const auto value_ring = memory.value_ring();
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) % group_threads / warp_size;
  const bool speaks = threadIdx.x % group_threads == 0;
  const std::int32_t rows = args.visibility.row_count;
  const std::int32_t group_begin = block_begin + 64 * group;
  const std::int32_t group_end = min(block_end, group_begin + 64);
  const std::int32_t walk_begin = args.visibility.first_key(block_begin, from);
  const std::int32_t last_first_key = args.visibility.first_key(block_end - 1, from);
  // The same for both groups, also if one has no rows: they take turns.
  const int tile_count = (block_end - walk_begin + tile - 1) / tile;

  std::int32_t query[2];
  std::int32_t first_key[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    query[half] = group_begin + warp * 16 + lane / 4 + 8 * half;
    first_key[half] = args.visibility.first_key(min(query[half], rows - 1), from);
  }
  float largest[2] = {lowest_score, lowest_score};
  float sum[2] = {0.0f, 0.0f};
  float rescale[2];
  const float scale = args.scale * log2_of_e;
  /// Scores of keys from `begin` on become their share of what is summed up.
  const auto soften = [&](float(&scores)[tile / 8][4], std::int32_t begin) {
    if (begin < last_first_key || begin + tile - 1 > group_begin) {
#pragma unroll
      for (int n = 0; n < tile / 8; ++n)
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
      for (int n = 0; n < tile / 8; ++n)
        most = fmaxf(most, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      most = reduce_quad_max(most);
      rescale[half] = power_of_two((largest[half] - most) * scale);
      largest[half] = most;
      const float shift = most * scale;
      float part = 0.0f;
#pragma unroll
      for (int n = 0; n < tile / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = power_of_two(fmaf(scores[n][i], scale, -shift));
          part += scores[n][i];
        }
      sum[half] = fmaf(sum[half], rescale[half], part);
    }
  };

  Place<Memory::slots> before;
  Place<Memory::slots> place;
  place.advance();
  std::uint32_t p[tile / 16][4];
  wait_for(memory.queries_full(), 0);
  {
    float scores[tile / 8][4];
    wait_for(key_ring.full(0), 0);
    order_registers();
    start_scores<T>(scores, queries, 64 * group, memory.keys(0));
    end_products();
    wait_for_products<0>();
    results_ready(scores);
    if (speaks) arrive(key_ring.free(0));
    soften(scores, walk_begin);
    pack<T>(scores, p);
  }
  float mixed[Width / 8][4] = {};
  const Turns turns;
  turns.begin(group);
  for (int t = 1; t < tile_count; ++t) {
    float scores[tile / 8][4];
    wait_for(key_ring.full(place.slot), place.parity);
    turns.wait(group);
    order_registers();
    start_scores<T>(scores, queries, 64 * group, memory.keys(place.slot));
    end_products();
    wait_for(value_ring.full(before.slot), before.parity);
    order_registers();
    start_sum<T>(mixed, p, memory.values(before.slot));
    end_products();
    turns.give(group);
    wait_for_products<1>();
    results_ready(scores);
    if (speaks) arrive(key_ring.free(place.slot));
    soften(scores, walk_begin + t * tile);
    wait_for_products<0>();
    results_ready(mixed);
    if (speaks) arrive(value_ring.free(before.slot));
#pragma unroll
    for (int e = 0; e < Width / 8; ++e)
#pragma unroll
      for (int i = 0; i < 4; ++i) mixed[e][i] *= rescale[i / 2];
    pack<T>(scores, p);
    before = place;
    place.advance();
  }
  turns.end(group);
  wait_for(value_ring.full(before.slot), before.parity);
  order_registers();
  start_sum<T>(mixed, p, memory.values(before.slot));
  end_products();
  wait_for_products<0>();
  results_ready(mixed);

  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = reduce_quad_sum(sum[half]);
    factor[half] = 1.0f / total;
    if (lane % 4 == 0 && query[half] < group_end)
      args.lse[static_cast<std::int64_t>(query[half]) * args.query_heads + head] =
          fmaf(largest[half], args.scale, logf(total));
  }
  put_rows<T>(mixed, factor, queries, group);
  publish_rows(group);
  if (!speaks) return;
  start_write(out, queries, 64 * group, head * Width, group_begin);
  wait_for_writes();
}

template <int Width, class T>
__global__ void __launch_bounds__(threads, 1)
    attend(const AttentionForward<T> args, const __grid_constant__ ForwardMaps<T> maps) {
  using Memory = ForwardMemory<Width>;
  const Memory memory;
  const auto key_ring = memory.key_ring();
  const auto value_ring = memory.value_ring();
  const int head = static_cast<int>(blockIdx.x);
  const std::int32_t rows = args.visibility.row_count;
  // Late queries see the most keys: they go first.
  const auto block = static_cast<std::int32_t>(gridDim.y - 1 - blockIdx.y);
  const std::int32_t block_begin = block * own_rows;
  const std::int32_t block_end = min(rows, block_begin + own_rows);
  if (threadIdx.x == 0) {
    key_ring.start(1, groups);
    value_ring.start(1, groups);
    start_barrier(memory.queries_full(), 1);
    publish_barriers();
    arrive_expecting(memory.queries_full(), Memory::Own::size_bytes);
    start_copy(maps.q, memory.queries(), head * Width, block_begin, memory.queries_full());
  }
  __syncthreads();
  const std::int32_t from = args.visibility.next_start(block_begin) - 1;
  if (threadIdx.x < group_threads) {
    give_up_registers<feeder_registers>();
    if (threadIdx.x != 0) return;
    using Walked = typename Memory::Walked;
    const std::int32_t walk_begin = args.visibility.first_key(block_begin, from);
    const int column = head / args.group * Width;
    Place<Memory::slots> place{0, 1};  // slots begin free: the phase before the first has ended
    for (std::int32_t begin = walk_begin; begin < block_end; begin += Walked::rows) {
      wait_for(key_ring.free(place.slot), place.parity);
      arrive_expecting(key_ring.full(place.slot), Walked::size_bytes);
      start_copy(maps.k, memory.keys(place.slot), column, begin, key_ring.full(place.slot));
      wait_for(value_ring.free(place.slot), place.parity);
      arrive_expecting(value_ring.full(place.slot), Walked::size_bytes);
      start_copy(maps.v, memory.values(place.slot), column, begin, value_ring.full(place.slot));
      place.advance();
    }
  } else {
    take_registers<worker_registers>();
    attend_group<Width>(args, maps.out, static_cast<int>(threadIdx.x) / group_threads - 1, head,
                        block_begin, block_end, from);
  }
}

}  // namespace

template <class T>
bool attend_on_hopper(const AttentionForward<T>& args, const device::Queue& queue) {
  if (!is_hopper() || !is_aligned({args.q, args.k, args.v}) || !is_aligned({args.out}))
    return false;
  return with_width_of_head(args.width, [&](auto width) {
    const std::int32_t rows = args.visibility.row_count;
    const int key_heads = args.query_heads / args.group;
    const ForwardMaps<T> maps{.q = map_of_heads(args.q, rows, args.query_heads, width),
                              .k = map_of_heads(args.k, rows, key_heads, width),
                              .v = map_of_heads(args.v, rows, key_heads, width),
                              .out = map_of_heads(args.out, rows, args.query_heads, width)};
    launch(&attend<width, T>, grid_of(rows, args.query_heads), ForwardMemory<width>::size_bytes,
           args, maps, queue);
  });
}

template bool attend_on_hopper(const AttentionForward<__nv_bfloat16>&, const device::Queue&);
template bool attend_on_hopper(const AttentionForward<__half>&, const device::Queue&);

}  // namespace underkeel::kernels::cuda
