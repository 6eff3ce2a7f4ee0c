#pragma once
// Attention of 16-bit types on Hopper's tensor cores, what both passes share: one warp feeds tiles, two groups of four
// warps have 64 rows each and start their products in turn, so that one's exponentials run beside the other's products
// (Shah et al. 2024, FlashAttention-3). Rounding is that of attention_tensor.cu.

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/hopper.cuh"

namespace underkeel::kernels::cuda::hopper {

constexpr int groups = 2;              // that multiply
constexpr int own_rows = groups * 64;  // of a block
constexpr int threads = (groups + 1) * group_threads;
constexpr int feeder_registers = 24;
constexpr int worker_registers = 240;
constexpr float log2_of_e = 1.4426950408889634f;

/// 2^x within two units in the last place; 0 where the result would be subnormal.
__device__ inline float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Which slot of a ring a tile lies in, and the parity of its barriers' phase.
template <int Slots>
struct Place {
  int slot = 0;
  int parity = 0;
  __device__ void advance() {
    if (++slot < Slots) return;
    slot = 0;
    parity ^= 1;
  }
};

/// Barriers that say a slot is full, or free again, in shared memory.
template <int Slots>
struct Ring {
  static constexpr int size_bytes = 2 * Slots * 8;
  std::uint32_t begin;  // shared address
  __device__ std::uint32_t full(int slot) const { return begin + static_cast<unsigned>(slot) * 8; }
  __device__ std::uint32_t free(int slot) const {
    return begin + static_cast<unsigned>(Slots + slot) * 8;
  }
  __device__ void start(int full_arrivals, int free_arrivals) const {
    for (int slot = 0; slot < Slots; ++slot) {
      start_barrier(full(slot), full_arrivals);
      start_barrier(free(slot), free_arrivals);
    }
  }
};

/// Two groups start their products in turn, group 0 first: one's exponentials then run beside the other's
/// products. Every group waits as often as the other gives.
struct Turns {
  static constexpr int both = 2 * group_threads;
  static constexpr int first_id = 3;  // barriers 1 and 2 are synchronize_group()'s
  __device__ static void wait(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(first_id + group), "n"(both) : "memory");
  }
  __device__ static void give(int group) {
    asm volatile("bar.arrive %0, %1;" ::"r"(first_id + 1 - group), "n"(both) : "memory");
  }
  __device__ static void begin(int group) {
    if (group == 1) give(group);
  }
  /// Takes what the other gave last.
  __device__ static void end(int group) {
    if (group == 0) wait(group);
  }
};

/// Dynamic shared memory from the first multiple of 1024 on.
__device__ inline std::uint32_t shared_begin() {
  extern __shared__ unsigned char memory[];
  return (static_cast<std::uint32_t>(__cvta_generic_to_shared(memory)) + 1023) / 1024 * 1024;
}
constexpr int shared_slack_bytes = 1024;

/// c = left rows x (all rows of right)^T, over the width of a head.
template <class T, class Left, class Right, int N>
__device__ inline void start_scores(float (&c)[N][4], const Left& left, int row,
                                    const Right& right) {
  start_product<T, false, false>(c, left.by_columns(row, 0), right.by_columns(0, 0));
#pragma unroll
  for (int step = 1; step < Left::width / 16; ++step)
    start_product<T, false, true>(c, left.by_columns(row, step), right.by_columns(0, step));
}
/// sum += left (packed results) x rows of right.
template <class T, class Right, int Steps, int N>
__device__ inline void start_sum(float (&sum)[N][4], const std::uint32_t (&left)[Steps][4],
                                 const Right& right) {
#pragma unroll
  for (int step = 0; step < Steps; ++step)
    start_product<T, true, true>(sum, left[step], right.by_rows(step));
}
/// Results as a left operand whose depth is their columns.
template <class T, int N>
__device__ inline void pack(const float (&results)[N][4], std::uint32_t (&to)[N / 2][4]) {
#pragma unroll
  for (int step = 0; step < N / 2; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[step][i] =
          packed<T>(results[2 * step + i / 2][i % 2 * 2], results[2 * step + i / 2][i % 2 * 2 + 1]);
}

/// Puts a group's 64 rows into its rows of a tile that nothing reads any more.
template <class T, class Tile, int N>
__device__ inline void put_rows(const float (&results)[N][4], const float (&factor)[2],
                                const Tile& tile, int group) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int warp = static_cast<int>(threadIdx.x) % group_threads / warp_size;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < N; ++n)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(tile.address(
                       64 * group + 16 * warp + lane / 4 + 8 * half, 8 * n + 2 * (lane % 4))),
                   "r"(packed<T>(results[n][2 * half] * factor[half],
                                 results[n][2 * half + 1] * factor[half]))
                   : "memory");
}
/// After all put_rows() of a group, before one of its threads writes.
__device__ inline void publish_rows(int group) {
  publish_shared_memory();
  synchronize_group(1 + group);
}

template <class T>
constexpr DType type_of = std::is_same_v<T, __half> ? DType::f16 : DType::bf16;

template <class T>
CUtensorMap map_of_heads(const Rows<T>& matrix, std::int64_t rows, int heads, int width) {
  using Plain = std::remove_const_t<T>;
  return map_of(matrix.data, type_of<Plain>, rows, static_cast<std::int64_t>(heads) * width,
                matrix.stride);
}

template <class T>
bool is_aligned(std::initializer_list<Rows<T>> matrices) {
  for (const Rows<T>& matrix : matrices)
    if (reinterpret_cast<std::uintptr_t>(matrix.data) % 16 != 0 || matrix.stride % 8 != 0)
      return false;
  return true;
}

/// Whether rows of angles can be read two at a time.
inline bool in_pairs(std::initializer_list<Rows<const float>> tables) {
  for (const Rows<const float>& table : tables)
    if (reinterpret_cast<std::uintptr_t>(table.data) % 8 != 0 || table.stride % 2 != 0)
      return false;
  return true;
}

inline dim3 grid_of(std::int32_t rows, int heads) {
  return dim3(static_cast<unsigned>(heads),
              static_cast<unsigned>((rows + own_rows - 1) / own_rows));
}

template <class Kernel, class Args, class Maps>
void launch(Kernel kernel, dim3 grid, int shared_bytes, const Args& args, const Maps& maps,
            const device::Queue& queue) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel),
                      static_cast<std::size_t>(shared_bytes));
  kernel<<<grid, threads, static_cast<std::size_t>(shared_bytes), stream_of(queue)>>>(args, maps);
}

/// Calls f(width) as a constant; false for other widths.
template <class F>
bool with_width_of_head(int width, F&& f) {
  if (width == 64) return f(std::integral_constant<int, 64>{}), true;
  if (width == 128) return f(std::integral_constant<int, 128>{}), true;
  return false;
}

}  // namespace underkeel::kernels::cuda::hopper
