#pragma once
// What Hopper alone has: products that four warps start together and that read shared memory themselves,
// the copy engine, and barriers that count bytes. Needs the target sm_90a; for others the functions are
// there, and stop.
//
// Tiles in shared memory are panels of 64 columns: rows of 128 bytes, whose 16-byte chunks are exchanged by the
// row's low three bits. The copy engine writes them so, the products read them so. A panel begins at a multiple of 1024.
// Sources: NVIDIA, PTX ISA, wgmma and cp.async.bulk.tensor; CUDA driver API, tensor maps.

#include "kernels/cuda/hopper.h"
#include "kernels/cuda/tensor_core.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define UK_ON_HOPPER(...) __VA_ARGS__
#else
#define UK_ON_HOPPER(...) __trap()
#endif

namespace underkeel::kernels::cuda::hopper {

constexpr int panel_columns = 64;
constexpr int panel_row_bytes = 128;
constexpr int group_threads = 128;  // that start a product together

/// A tile of Rows x Width 16-bit elements in shared memory, panel after panel.
template <int Rows, int Width>
struct PanelTile {
  static constexpr int rows = Rows;
  static constexpr int width = Width;
  static constexpr int panels = Width / panel_columns;
  static constexpr int panel_bytes = Rows * panel_row_bytes;
  static constexpr int size_bytes = panels * panel_bytes;
  static_assert(Rows % 64 == 0 && Width % panel_columns == 0);

  std::uint32_t begin;  // shared address

  /// Rows from `row` on, columns [16 step, 16 step + 16), as an operand whose depth is columns.
  __device__ std::uint64_t by_columns(int row, int step) const {
    return describe(begin + static_cast<std::uint32_t>(step / 4 * panel_bytes + step % 4 * 32 +
                                                       row * panel_row_bytes));
  }
  /// Rows [16 step, 16 step + 16), all columns, as a right operand whose depth is rows.
  __device__ std::uint64_t by_rows(int step) const {
    return describe(begin + static_cast<std::uint32_t>(step * 16 * panel_row_bytes));
  }
  /// Where a pair of neighbours lies: column is even.
  __device__ std::uint32_t address(int row, int column) const {
    const int chunk = column % panel_columns / 8;
    return begin +
           static_cast<std::uint32_t>(column / panel_columns * panel_bytes + row * panel_row_bytes +
                                      (chunk ^ (row & 7)) * 16 + column % 8 * 2);
  }

 private:
  /// Address, distance of panels, distance of groups of eight rows (in 16 bytes), the kind of exchange.
  __device__ static std::uint64_t describe(std::uint32_t address) {
    constexpr std::uint64_t layout = std::uint64_t{panel_bytes / 16} << 16 |
                                     std::uint64_t{8 * panel_row_bytes / 16} << 32 |
                                     std::uint64_t{1} << 62;
    return layout | (address & 0x3FFFF) >> 4;
  }
};

#define UK_SUMS(c, i) "+f"((c)[i][0]), "+f"((c)[i][1]), "+f"((c)[i][2]), "+f"((c)[i][3])
// Written and not read: the compiler must not see registers between products as given by anything else.
#define UK_RESULTS(c, i) "=f"((c)[i][0]), "=f"((c)[i][1]), "=f"((c)[i][2]), "=f"((c)[i][3])
#define UK_WGMMA_SHARED_64(type, sums, c, a, b, by_rows, add)                               \
  asm volatile(                                                                             \
      "{ .reg .pred adds; setp.ne.b32 adds, %34, 0; "                                       \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                           \
      " {"                                                                                  \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "              \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"      \
      "}, %32, %33, adds, 1, 1, 0, %35; }"                                                  \
      : sums(c, 0), sums(c, 1), sums(c, 2), sums(c, 3), sums(c, 4), sums(c, 5), sums(c, 6), \
        sums(c, 7)                                                                          \
      : "l"(a), "l"(b), "n"(static_cast<int>(add)), "n"(static_cast<int>(by_rows)))
#define UK_WGMMA_REGISTERS_64(type, sums, c, a, b, by_rows, add)                                \
  asm volatile(                                                                                 \
      "{ .reg .pred adds; setp.ne.b32 adds, %37, 0; "                                           \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                               \
      " {"                                                                                      \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"          \
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1, %38; }"                                        \
      : sums(c, 0), sums(c, 1), sums(c, 2), sums(c, 3), sums(c, 4), sums(c, 5), sums(c, 6),     \
        sums(c, 7)                                                                              \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "n"(static_cast<int>(add)), \
        "n"(static_cast<int>(by_rows)))
#define UK_WGMMA_SHARED_128(type, sums, c, a, b, by_rows, add)                                  \
  asm volatile(                                                                                 \
      "{ .reg .pred adds; setp.ne.b32 adds, %66, 0; "                                           \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                              \
      " {"                                                                                      \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "        \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "        \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"          \
      "}, %64, %65, adds, 1, 1, 0, %67; }"                                                      \
      : sums(c, 0), sums(c, 1), sums(c, 2), sums(c, 3), sums(c, 4), sums(c, 5), sums(c, 6),     \
        sums(c, 7), sums(c, 8), sums(c, 9), sums(c, 10), sums(c, 11), sums(c, 12), sums(c, 13), \
        sums(c, 14), sums(c, 15)                                                                \
      : "l"(a), "l"(b), "n"(static_cast<int>(add)), "n"(static_cast<int>(by_rows)))
#define UK_WGMMA_REGISTERS_128(type, sums, c, a, b, by_rows, add)                               \
  asm volatile(                                                                                 \
      "{ .reg .pred adds; setp.ne.b32 adds, %69, 0; "                                           \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                              \
      " {"                                                                                      \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                  \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "        \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "        \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"          \
      "}, {%64, %65, %66, %67}, %68, adds, 1, 1, %70; }"                                        \
      : sums(c, 0), sums(c, 1), sums(c, 2), sums(c, 3), sums(c, 4), sums(c, 5), sums(c, 6),     \
        sums(c, 7), sums(c, 8), sums(c, 9), sums(c, 10), sums(c, 11), sums(c, 12), sums(c, 13), \
        sums(c, 14), sums(c, 15)                                                                \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "n"(static_cast<int>(add)), \
        "n"(static_cast<int>(by_rows)))

#define UK_WGMMA(type, sums)                                     \
  if constexpr (registers) {                                     \
    if constexpr (N == 8) {                                      \
      UK_WGMMA_REGISTERS_64(type, sums, c, a, b, ByRows, Adds);  \
    } else {                                                     \
      UK_WGMMA_REGISTERS_128(type, sums, c, a, b, ByRows, Adds); \
    }                                                            \
  } else if constexpr (N == 8) {                                 \
    UK_WGMMA_SHARED_64(type, sums, c, a, b, ByRows, Adds);       \
  } else {                                                       \
    UK_WGMMA_SHARED_128(type, sums, c, a, b, ByRows, Adds);      \
  }

/// Starts c (64 x 8 N) = a (64 x 16) b (16 x 8 N), or += where Adds. A group of warps holds c as 16 rows a
/// warp, each as tensor_core.cuh says. `a` is a description, or registers of four warps. ByRows: b's depth is
/// the rows of its tile.
template <class T, bool ByRows, bool Adds, int N, class Left>
__device__ inline void start_product(float (&c)[N][4], const Left& a, std::uint64_t b) {
  static_assert(N == 8 || N == 16);
  constexpr bool registers = !std::is_same_v<Left, std::uint64_t>;
  if constexpr (std::is_same_v<T, __half> && Adds) {
    UK_ON_HOPPER(UK_WGMMA("f16", UK_SUMS));
  } else if constexpr (std::is_same_v<T, __half>) {
    UK_ON_HOPPER(UK_WGMMA("f16", UK_RESULTS));
  } else if constexpr (Adds) {
    UK_ON_HOPPER(UK_WGMMA("bf16", UK_SUMS));
  } else {
    UK_ON_HOPPER(UK_WGMMA("bf16", UK_RESULTS));
  }
}

/// Before products that use registers written since the last one.
__device__ inline void order_registers() {
  UK_ON_HOPPER(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}
/// Ends a group of products, which are waited for together.
__device__ inline void end_products() {
  UK_ON_HOPPER(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}
/// Returns when at most Left groups are unfinished.
template <int Left>
__device__ inline void wait_for_products() {
  UK_ON_HOPPER(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory"));
}
/// Keeps the compiler from reading results earlier than here.
template <int N>
__device__ inline void results_ready(float (&c)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    asm volatile("" : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])::"memory");
}

template <int Count>
__device__ inline void give_up_registers() {
  UK_ON_HOPPER(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count)));
}
template <int Count>
__device__ inline void take_registers() {
  UK_ON_HOPPER(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count)));
}

__device__ inline void start_barrier(std::uint32_t barrier, int arrivals) {
  UK_ON_HOPPER(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                            : "memory"));
}
/// After start_barrier(): makes barriers known to the copy engine.
__device__ inline void publish_barriers() {
  UK_ON_HOPPER(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"));
}
__device__ inline void arrive(std::uint32_t barrier) {
  UK_ON_HOPPER(asm volatile(
      "{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(barrier)
      : "memory"));
}
/// Arrives, and lets the phase end only after that many bytes have come.
__device__ inline void arrive_expecting(std::uint32_t barrier, int size_bytes) {
  UK_ON_HOPPER(asm volatile(
      "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(
          barrier),
      "r"(size_bytes)
      : "memory"));
}
/// Waits for the end of the phase of this parity; phases are counted from 0.
__device__ inline void wait_for(std::uint32_t barrier, int parity) {
  std::uint32_t is_over = 0;
  do {
    UK_ON_HOPPER(
        asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; "
                     "selp.u32 %0, 1, 0, over; }"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory"));
  } while (is_over == 0);
}
/// Threads of one group wait for one another; `id` from 1 on.
__device__ inline void synchronize_group(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(group_threads) : "memory");
}
/// Shared memory written by this thread can be read by the copy engine after the next barrier.
__device__ inline void publish_shared_memory() {
  UK_ON_HOPPER(asm volatile("fence.proxy.async.shared::cta;" ::: "memory"));
}

/// One thread: starts copying a tile of `map`'s matrix; what lies outside becomes 0.
template <class Tile>
__device__ inline void start_copy(const CUtensorMap& map, const Tile& tile, std::int32_t column,
                                  std::int32_t row, std::uint32_t barrier) {
#pragma unroll
  for (int panel = 0; panel < Tile::panels; ++panel)
#pragma unroll
    for (int r = 0; r < Tile::rows; r += 64)
      UK_ON_HOPPER(asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
          "[%1, {%2, %3}], [%4];" ::"r"(
              tile.begin +
              static_cast<std::uint32_t>(panel * Tile::panel_bytes + r * panel_row_bytes)),
          "l"(&map), "r"(column + panel * panel_columns), "r"(row + r), "r"(barrier)
          : "memory"));
}
/// One thread: starts writing 64 rows of a tile from `row` on; rows outside of the matrix are left out.
template <class Tile>
__device__ inline void start_write(const CUtensorMap& map, const Tile& tile, int row,
                                   std::int32_t to_column, std::int32_t to_row) {
#pragma unroll
  for (int panel = 0; panel < Tile::panels; ++panel)
    UK_ON_HOPPER(asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
        "r"(to_column + panel * panel_columns), "r"(to_row),
        "r"(tile.begin +
            static_cast<std::uint32_t>(panel * Tile::panel_bytes + row * panel_row_bytes))
        : "memory"));
}
/// The same thread: returns when the tiles of its writes have been read.
__device__ inline void wait_for_writes() {
  UK_ON_HOPPER(asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::
                                : "memory"));
}

/// Two neighbours as an operand holds them, rounded to nearest even: the first in the low half.
template <class T>
__device__ inline std::uint32_t packed(float first, float second) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  }
  return bits;
}

}  // namespace underkeel::kernels::cuda::hopper
