#pragma once
// The innermost product: a few rows of a times two vectors of columns of b, in registers.

#include "kernels/cpu/simd/vector.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

#ifdef __AVX512F__
constexpr int panel_rows = 14;  // 28 accumulators, two vectors of b, one element of a: 31 registers
#else
constexpr int panel_rows = 6;  // 12 accumulators of 16 registers
#endif
constexpr int panel_vectors = 2;
constexpr int panel_columns = panel_vectors * lanes;

/// Depth is cut at multiples of this, on every instruction set: a panel of b (32 KiB) then stays in
/// the first cache while panels of a stream past it.
constexpr std::int64_t depth_block = 256;

/// Elements between packed rows of a. Not a power of two, which would put all rows into the same
/// few sets of the first cache.
constexpr std::int64_t packed_row_stride = depth_block + 16;

/// How a panel of a lies in memory: each row together, or all rows of one depth together.
enum class PanelOrder { by_row, by_depth };

/// c (Rows, panel_columns) = [c +] a (Rows, depth) b (depth, panel_columns), with the first Rows rows
/// of a packed panel.
template <int Rows, PanelOrder Order>
inline void multiply_panel(const float* a, const float* b, std::int64_t depth, float* c,
                           std::int64_t c_stride, bool add) {
  constexpr std::int64_t row_step = Order == PanelOrder::by_row ? packed_row_stride : 1;
  constexpr std::int64_t depth_step = Order == PanelOrder::by_row ? 1 : panel_rows;
  Vec sums[Rows][panel_vectors];
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < panel_vectors; ++v) {
      sums[row][v] = zero();
      _mm_prefetch(reinterpret_cast<const char*>(c + row * c_stride + v * lanes), _MM_HINT_T0);
    }
  }
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec columns[panel_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < panel_vectors; ++v) columns[v] = load(b + v * lanes);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      const Vec value = broadcast(a[row * row_step]);
#pragma GCC unroll 4
      for (int v = 0; v < panel_vectors; ++v) sums[row][v] = fma(value, columns[v], sums[row][v]);
    }
    a += depth_step;
    b += panel_columns;
  }
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < panel_vectors; ++v) {
      float* to = c + row * c_stride + v * lanes;
      store(to, add ? load(to) + sums[row][v] : sums[row][v]);
    }
  }
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
