#pragma once
// The 16 x 8 x 16 product of tensor cores with 16-bit operands and f32 sums, and tiles in shared memory that
// feed it. Lane 4g + t of a warp holds, of a 16 x 8 result, columns 2t and 2t + 1 of rows g and g + 8.
// Source: NVIDIA, PTX ISA, mma.m16n8k16 and ldmatrix.

#include <type_traits>

#include "base/host_device.h"
#include "kernels/cuda/element.cuh"

namespace underkeel::kernels::cuda {

/// c (16 x 8) += a (16 x 16) b (16 x 8).
template <class T>
__device__ inline void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Two neighbours as an operand holds them: the first in the low half.
template <class T>
__device__ inline std::uint32_t pair_of(float first, float second) {
  union {
    T values[2];
    std::uint32_t bits;
  } pair;
  pair.values[0] = from_float<T>(first);
  pair.values[1] = from_float<T>(second);
  return pair.bits;
}

/// Rows of Width 16-bit elements in shared memory. The 16-byte chunks of a row are exchanged by the row's low
/// bits, so that eight rows at one column lie in different banks.
template <int Width>
struct Tile {
  static constexpr int chunk_elements = 8;
  static constexpr int chunks_per_row = Width / chunk_elements;
  static_assert(chunks_per_row % 8 == 0);
  UK_HOST_DEVICE static constexpr int bytes_of(int rows) { return rows * Width * 2; }

  std::uint32_t begin;  // shared address

  __device__ std::uint32_t address(int row, int chunk) const {
    return begin + static_cast<std::uint32_t>((row * chunks_per_row + (chunk ^ (row & 7))) * 16);
  }

  /// Starts copying `count` rows of a matrix from `first_row` on; rows from `row_end` on become 0.
  template <class T>
  __device__ void start_copy(const Rows<const T>& from, std::int32_t first_row, int count,
                             std::int32_t row_end) const {
    for (int i = static_cast<int>(threadIdx.x); i < count * chunks_per_row;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / chunks_per_row;
      const int chunk = i - row * chunks_per_row;
      const bool exists = first_row + row < row_end;
      const T* at = from.at(exists ? first_row + row : first_row, chunk * chunk_elements);
      const int size_bytes = exists ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(row, chunk)),
                   "l"(__cvta_generic_to_global(at)), "r"(size_bytes)
                   : "memory");
    }
  }

  /// Left operand: rows [row, row + 16), columns [16 step, 16 step + 16).
  __device__ void load_left(int row, int step, std::uint32_t (&to)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    load(address(row + lane % 16, 2 * step + lane / 16), to);
  }
  /// Right operands of two products whose depth is this tile's columns [16 step, ...) and whose columns are
  /// its rows [row, row + 16): {b0, b1} of the first eight, then of the second.
  __device__ void load_right(int row, int step, std::uint32_t (&to)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    load(address(row + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2), to);
  }
  /// The same, but depth is rows [row, row + 16) and columns are this tile's [16 step, 16 step + 16).
  __device__ void load_right_by_rows(int row, int step, std::uint32_t (&to)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t from = address(row + lane / 8 % 2 * 8 + lane % 8, 2 * step + lane / 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  }

 private:
  __device__ static void load(std::uint32_t from, std::uint32_t (&to)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  }
};

__device__ inline void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Returns when this thread's copies have arrived; a barrier makes them everyone's.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

}  // namespace underkeel::kernels::cuda
