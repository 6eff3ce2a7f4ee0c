// The backward pass of attention on Hopper: two kernels, as in attention.cu. One keeps 128 keys and walks queries, one
// keeps 128 queries and walks keys, in tiles of 64: nothing is added by two blocks, so that bits repeat, and nothing is
// kept but a sum a row. Scores of keys are computed as rows of keys: what a product gives is then the next one's left operand.

#include "kernels/cuda/attention_hopper.cuh"

namespace underkeel::kernels::cuda {

namespace {

using namespace hopper;

template <class T>
struct BackwardMaps {
  CUtensorMap q, k, v, dout, dq, dk, dv;
};

/// OfKeys: keeps keys and values of a key head and walks queries, giving dk and dv; else it keeps queries and
/// walks keys, giving dq. `own1` is k or q, `own2` v or dout; `walked1` q or k, `walked2` dout or v.
template <bool OfKeys, int Width>
struct BackwardMemory {
  static constexpr int slots = 3;
  // Of a group, once a slot is read. OfKeys: of all threads, since each reads a slot's two numbers a row.
  static constexpr int free_arrivals = OfKeys ? group_threads : 1;
  using Own = PanelTile<own_rows, Width>;
  using Walked = PanelTile<64, Width>;
  static constexpr int floats_bytes = OfKeys ? 2 * slots * Walked::rows * 4 : 0;
  static constexpr int size_bytes = shared_slack_bytes + 2 * Own::size_bytes +
                                    2 * slots * Walked::size_bytes + floats_bytes +
                                    Ring<slots>::size_bytes + 8;
  std::uint32_t begin = shared_begin();
  __device__ Own own1() const { return {begin}; }
  __device__ Own own2() const { return {begin + static_cast<unsigned>(Own::size_bytes)}; }
  __device__ Walked walked1(int slot) const {
    return {begin + static_cast<unsigned>(2 * Own::size_bytes + 2 * slot * Walked::size_bytes)};
  }
  __device__ Walked walked2(int slot) const {
    return {walked1(slot).begin + static_cast<unsigned>(Walked::size_bytes)};
  }
  /// Of walked queries: log2 of the sum of exponentials, then dout . out.
  __device__ std::uint32_t floats(int slot) const {
    return walked1(slots).begin + static_cast<unsigned>(2 * slot * Walked::rows * 4);
  }
  __device__ Ring<slots> ring() const {
    return {walked1(slots).begin + static_cast<unsigned>(floats_bytes)};
  }
  __device__ std::uint32_t own_full() const {
    return ring().begin + static_cast<unsigned>(Ring<slots>::size_bytes);
  }
};

/// What a block of the backward pass walks: tiles of every head that it adds up.
struct Walk {
  std::int32_t from;  // number of the first own row's start
  std::int32_t block_begin;
  std::int32_t block_end;
  std::int32_t begin;
  std::int32_t end;
  int first_head;
  int tiles_per_head;
  int tile_count;
};

template <bool OfKeys>
__device__ inline std::int32_t block_begin_of() {
  // Early keys are seen by most queries, late queries see most keys: they go first.
  return static_cast<std::int32_t>(OfKeys ? blockIdx.y : gridDim.y - 1 - blockIdx.y) * own_rows;
}

template <bool OfKeys, int Tile, class T>
__device__ inline Walk walk_of(const AttentionBackward<T>& args, int own_head) {
  Walk walk{};
  const std::int32_t rows = args.visibility.row_count;
  walk.block_begin = block_begin_of<OfKeys>();
  walk.block_end = min(rows, walk.block_begin + own_rows);
  walk.from = args.visibility.next_start(walk.block_begin) - 1;
  walk.begin = OfKeys ? walk.block_begin : args.visibility.first_key(walk.block_begin, walk.from);
  walk.end = OfKeys ? args.visibility.query_end(walk.block_end - 1, walk.from) : walk.block_end;
  walk.first_head = OfKeys ? own_head * args.group : own_head / args.group;
  walk.tiles_per_head = (walk.end - walk.begin + Tile - 1) / Tile;
  walk.tile_count = walk.tiles_per_head * (OfKeys ? args.group : 1);
  return walk;
}

__device__ inline float2 load_two(std::uint32_t address) {
  float2 two;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(two.x), "=f"(two.y)
               : "r"(address)
               : "memory");
  return two;
}

/// What rope_apply with `inverse` makes of the gradients of rows `own`, after the rounding that it finds them with. The
/// halves of a head are of one thread.
template <class T, int N>
__device__ inline void turn_back(const AttentionBackward<T>& args, const std::int32_t (&own)[2],
                                 float (&gradients)[N][4]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int32_t row = min(own[half], args.visibility.row_count - 1);
    const float* cosines = args.cosine.at(row, 2 * (lane % 4));
    const float* sines = args.sine.at(row, 2 * (lane % 4));
#pragma unroll
    for (int n = 0; n < N / 2; ++n) {
      const float2 two_cosines = *reinterpret_cast<const float2*>(cosines + 8 * n);
      const float2 two_sines = *reinterpret_cast<const float2*>(sines + 8 * n);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& first = gradients[n][2 * half + i];
        float& second = gradients[n + N / 2][2 * half + i];
        first = to_float(from_float<T>(first * args.scale));
        second = to_float(from_float<T>(second * args.scale));
        const float cosine = i == 0 ? two_cosines.x : two_cosines.y;
        const float sine = -(i == 0 ? two_sines.x : two_sines.y);
        const float turned = fmaf(-second, sine, first * cosine);
        second = fmaf(first, sine, second * cosine);
        first = turned;
      }
    }
  }
}

/// A group's share of the backward pass: 64 keys or 64 queries.
template <bool OfKeys, int Width, class T>
__device__ inline void differentiate_group(const AttentionBackward<T>& args,
                                           const BackwardMaps<T>& maps, int group, int own_head,
                                           const Walk& walk) {
  using Memory = BackwardMemory<OfKeys, Width>;
  constexpr int tile = Memory::Walked::rows;
  const Memory memory;
  const auto ring = memory.ring();
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) % group_threads / warp_size;
  const bool speaks = threadIdx.x % group_threads == 0;
  const std::int32_t rows = args.visibility.row_count;
  const std::int32_t group_begin = walk.block_begin + 64 * group;
  const std::int32_t group_last = min(walk.block_end, group_begin + 64) - 1;

  std::int32_t own[2];
  std::int32_t limit[2];  // OfKeys: one past the last query that sees the key; else the first key
  float own_lse[2] = {};
  float own_delta[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    own[half] = group_begin + warp * 16 + lane / 4 + 8 * half;
    const std::int32_t row = min(own[half], rows - 1);
    limit[half] = OfKeys ? args.visibility.query_end(row, walk.from)
                         : args.visibility.first_key(row, walk.from);
    if (OfKeys) continue;
    const std::int64_t item = static_cast<std::int64_t>(row) * args.query_heads + own_head;
    own_lse[half] = args.lse[item] * log2_of_e;
    own_delta[half] = args.delta[item];
  }
  // Walked rows in between are seen by, or see, every row of the group.
  const std::int32_t all_from =
      OfKeys ? group_last
             : args.visibility.first_key(max(group_last, min(group_begin, rows - 1)), walk.from);
  const std::int32_t all_until =
      OfKeys ? args.visibility.query_end(min(group_begin, rows - 1), walk.from) : group_begin + 1;
  const float scale = args.scale * log2_of_e;
  float first[Width / 8][4] = {};                // dk or dq
  float second[OfKeys ? Width / 8 : 1][4] = {};  // dv
  results_ready(first);  // zeros, before any product: else the compiler may place them between
  results_ready(second);
  const Turns turns;
  turns.begin(group);
  wait_for(memory.own_full(), 0);
  Place<Memory::slots> place;
  int before = 0;
  int tile_in_head = 0;
  for (int t = 0; t < walk.tile_count; ++t) {
    float s[tile / 8][4];
    float ds[tile / 8][4];
    wait_for(ring.full(place.slot), place.parity);
    turns.wait(group);
    order_registers();
    start_scores<T>(s, memory.own1(), 64 * group, memory.walked1(place.slot));
    end_products();
    if constexpr (OfKeys) {
      wait_for_products<1>();  // the last tile's
      results_ready(first);
    }
    start_scores<T>(ds, memory.own2(), 64 * group, memory.walked2(place.slot));
    end_products();
    turns.give(group);
    wait_for_products<1>();  // the last tile's, and the first of these
    results_ready(s);
    // Products that read the slot have ended, and so have this thread's own reads.
    if (t > 0 && (OfKeys || speaks)) arrive(ring.free(before));
    const std::int32_t begin = walk.begin + tile_in_head * tile;
    if (++tile_in_head == walk.tiles_per_head) tile_in_head = 0;
    const bool all_visible = begin >= all_from && begin + tile <= all_until;
    const std::uint32_t floats = OfKeys ? memory.floats(place.slot) + 8 * (lane % 4) : 0;
#pragma unroll
    for (int n = 0; n < tile / 8; ++n) {
      float2 lse{};
      if constexpr (OfKeys) lse = load_two(floats + 32 * n);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[n][i] = power_of_two(
            fmaf(s[n][i], scale, -(OfKeys ? (i % 2 == 0 ? lse.x : lse.y) : own_lse[i / 2])));
    }
    if (!all_visible) {
#pragma unroll
      for (int n = 0; n < tile / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::int32_t walked = begin + 8 * n + 2 * (lane % 4) + i % 2;
          const bool visible = OfKeys ? walked >= own[i / 2] && walked < limit[i / 2]
                                      : walked >= limit[i / 2] && walked <= own[i / 2];
          if (!visible) s[n][i] = 0.0f;
        }
    }
    if constexpr (OfKeys) {
      std::uint32_t packed_p[tile / 16][4];
      pack<T>(s, packed_p);
      order_registers();
      start_sum<T>(second, packed_p, memory.walked2(place.slot));
      end_products();
      wait_for_products<1>();  // all but that one
    } else {
      wait_for_products<0>();
    }
    results_ready(ds);
#pragma unroll
    for (int n = 0; n < tile / 8; ++n) {
      float2 delta{};
      if constexpr (OfKeys) delta = load_two(floats + tile * 4 + 32 * n);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ds[n][i] =
            s[n][i] * (ds[n][i] - (OfKeys ? (i % 2 == 0 ? delta.x : delta.y) : own_delta[i / 2]));
    }
    std::uint32_t packed_ds[tile / 16][4];
    pack<T>(ds, packed_ds);
    order_registers();
    start_sum<T>(first, packed_ds, memory.walked1(place.slot));
    end_products();
    before = place.slot;
    place.advance();
    if constexpr (OfKeys) {
      // There are no registers for the next scores beside both operands that are still read.
      wait_for_products<1>();
      results_ready(second);
    }
  }
  turns.end(group);
  wait_for_products<0>();
  results_ready(first);
  const float factor[2] = {args.scale, args.scale};
  const float one[2] = {1.0f, 1.0f};
  if (args.cosine.data == nullptr) {
    put_rows<T>(first, factor, memory.own1(), group);
  } else {
    turn_back(args, own, first);
    put_rows<T>(first, one, memory.own1(), group);
  }
  if constexpr (OfKeys) {
    results_ready(second);
    put_rows<T>(second, one, memory.own2(), group);
  }
  publish_rows(group);
  if (!speaks) return;
  const int column = own_head * Width;
  start_write(OfKeys ? maps.dk : maps.dq, memory.own1(), 64 * group, column, group_begin);
  if constexpr (OfKeys) start_write(maps.dv, memory.own2(), 64 * group, column, group_begin);
  wait_for_writes();
}

template <bool OfKeys, int Width, class T>
__global__ void __launch_bounds__(threads, 1)
    differentiate(const AttentionBackward<T> args, const __grid_constant__ BackwardMaps<T> maps) {
  using Memory = BackwardMemory<OfKeys, Width>;
  using Walked = typename Memory::Walked;
  constexpr int tile = Walked::rows;
  const Memory memory;
  const auto ring = memory.ring();
  const int own_head = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) {
    ring.start(OfKeys ? warp_size : 1, groups * Memory::free_arrivals);
    start_barrier(memory.own_full(), 1);
    publish_barriers();
    const int column = own_head * Width;
    const std::int32_t row = block_begin_of<OfKeys>();
    arrive_expecting(memory.own_full(), 2 * Memory::Own::size_bytes);
    start_copy(OfKeys ? maps.k : maps.q, memory.own1(), column, row, memory.own_full());
    start_copy(OfKeys ? maps.v : maps.dout, memory.own2(), column, row, memory.own_full());
  }
  __syncthreads();
  const Walk walk = walk_of<OfKeys, tile>(args, own_head);
  if (threadIdx.x < group_threads) {
    give_up_registers<feeder_registers>();
    const auto lane = static_cast<int>(threadIdx.x);
    if (lane >= (OfKeys ? warp_size : 1)) return;
    Place<Memory::slots> place{0, 1};  // slots begin free: the phase before the first has ended
    int tile_in_head = 0;
    int head = walk.first_head;
    for (int t = 0; t < walk.tile_count; ++t) {
      const std::int32_t begin = walk.begin + tile_in_head * tile;
      float lse[2] = {};
      float delta[2] = {};
      if constexpr (OfKeys) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const std::int32_t query = begin + lane + i * warp_size;
          if (query >= walk.end) continue;
          const std::int64_t item = static_cast<std::int64_t>(query) * args.query_heads + head;
          lse[i] = args.lse[item] * log2_of_e;
          delta[i] = args.delta[item];
        }
      }
      wait_for(ring.free(place.slot), place.parity);
      if constexpr (OfKeys) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const std::uint32_t at =
              memory.floats(place.slot) + static_cast<unsigned>(lane + i * warp_size) * 4;
          asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(lse[i]) : "memory");
          asm volatile("st.shared.f32 [%0], %1;" ::"r"(at + tile * 4), "f"(delta[i]) : "memory");
        }
      }
      if (lane == 0) {
        const int column = head * Width;
        arrive_expecting(ring.full(place.slot), 2 * Walked::size_bytes);
        start_copy(OfKeys ? maps.q : maps.k, memory.walked1(place.slot), column, begin,
                   ring.full(place.slot));
        start_copy(OfKeys ? maps.dout : maps.v, memory.walked2(place.slot), column, begin,
                   ring.full(place.slot));
      } else {
        arrive(ring.full(place.slot));
      }
      place.advance();
      if (++tile_in_head == walk.tiles_per_head) {
        tile_in_head = 0;
        ++head;
      }
    }
  } else {
    take_registers<worker_registers>();
    differentiate_group<OfKeys, Width>(
        args, maps, static_cast<int>(threadIdx.x) / group_threads - 1, own_head, walk);
  }
}

}  // namespace

template <class T>
bool differentiate_on_hopper(const AttentionBackward<T>& args, const device::Queue& queue) {
  if (!is_hopper() || !is_aligned({args.q, args.k, args.v, args.dout}) ||
      !is_aligned({args.dq, args.dk, args.dv}) || !in_pairs({args.cosine, args.sine}))
    return false;
  return with_width_of_head(args.width, [&](auto width) {
    const std::int32_t rows = args.visibility.row_count;
    const int key_heads = args.query_heads / args.group;
    const BackwardMaps<T> maps{.q = map_of_heads(args.q, rows, args.query_heads, width),
                               .k = map_of_heads(args.k, rows, key_heads, width),
                               .v = map_of_heads(args.v, rows, key_heads, width),
                               .dout = map_of_heads(args.dout, rows, args.query_heads, width),
                               .dq = map_of_heads(args.dq, rows, args.query_heads, width),
                               .dk = map_of_heads(args.dk, rows, key_heads, width),
                               .dv = map_of_heads(args.dv, rows, key_heads, width)};
    launch(&differentiate<true, width, T>, grid_of(rows, key_heads),
           BackwardMemory<true, width>::size_bytes, args, maps, queue);
    launch(&differentiate<false, width, T>, grid_of(rows, args.query_heads),
           BackwardMemory<false, width>::size_bytes, args, maps, queue);
  });
}

template bool differentiate_on_hopper(const AttentionBackward<__nv_bfloat16>&,
                                      const device::Queue&);
template bool differentiate_on_hopper(const AttentionBackward<__half>&, const device::Queue&);

}  // namespace underkeel::kernels::cuda
