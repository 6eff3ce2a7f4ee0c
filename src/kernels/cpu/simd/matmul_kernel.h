#pragma once
// The innermost product: a few rows of a times a few vectors of columns of b, in registers.

#include "kernels/cpu/simd/matmul_cells.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// 24 accumulators, 4 vectors of b and an element of a in 32 registers; 12, 2 and 1 in 16. With
/// more rows and fewer vectors the loads of a's elements bind (measured: 14 x 2 is 10% slower).
constexpr int panel_rows = 6;
#ifdef __AVX512F__
constexpr int panel_vectors = 4;
#else
constexpr int panel_vectors = 2;
#endif
constexpr int panel_columns = panel_vectors * lanes;
/// How many rows of b ahead of its use the nearest cache fetches.
constexpr std::int64_t b_ahead = 8;

/// Memory that will be read after a product and is fetched into the second cache meanwhile: rows of
/// 2^line_shift cache lines each. One line for every 8 steps of depth.
struct Later {
  const char* from = nullptr;
  std::int64_t row_bytes = 0;
  int line_shift = 0;

  void fetch(std::int64_t line) const {
    const std::int64_t in_row = line & ((std::int64_t{1} << line_shift) - 1);
    _mm_prefetch(from + (line >> line_shift) * row_bytes + in_row * 64, _MM_HINT_T1);
  }
};

/// c (Rows, Vectors * lanes) = [c +] a (Rows, depth) b (depth, Vectors * lanes). Element (row, k) of
/// a lies at row * RowStep + k * a_step, row k of b at k * b_step. All are cells of T.
template <int Rows, int Vectors, std::int64_t RowStep, class T = float>
inline void multiply_panel(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step,
                           std::int64_t depth, float* c, std::int64_t c_stride, bool add,
                           const Later& later = {}) {
  Vec sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[row][v] = zero();
      _mm_prefetch(reinterpret_cast<const char*>(c + row * c_stride + v * lanes), _MM_HINT_T0);
    }
  }
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      columns[v] = load(b + v * lanes);
      if constexpr (Vectors == panel_vectors)
        _mm_prefetch(reinterpret_cast<const char*>(b + b_ahead * panel_columns + v * lanes),
                     _MM_HINT_T0);
    }
    if (later.from != nullptr && k % 8 == 0) later.fetch(k / 8);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) {
      const Vec value = broadcast(a[row * RowStep]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[row][v] = multiply_add<T>(value, columns[v], sums[row][v]);
    }
    a += a_step;
    b += b_step;
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + row * c_stride + v * lanes;
      store(to, add ? load(to) + sums[row][v] : sums[row][v]);
    }
  }
}

/// A product whose operands stay in the nearer caches. `columns` is a multiple of lanes.
struct SmallProduct {
  const float* a = nullptr;
  std::int64_t a_step = 1;
  const float* b = nullptr;
  std::int64_t b_step = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool add = false;
};

template <int Rows, int Vectors, std::int64_t RowStep>
inline void multiply_part(const SmallProduct& p, std::int64_t row, std::int64_t column) {
  multiply_panel<Rows, Vectors, RowStep>(p.a + row * RowStep, p.a_step, p.b + column, p.b_step,
                                         p.depth, p.c + row * p.c_stride + column, p.c_stride,
                                         p.add);
}

template <int Vectors, std::int64_t RowStep>
inline void multiply_columns(const SmallProduct& p, std::int64_t column) {
  std::int64_t row = 0;
  for (; row + panel_rows <= p.rows; row += panel_rows)
    multiply_part<panel_rows, Vectors, RowStep>(p, row, column);
  switch (p.rows - row) {
    case 1:
      return multiply_part<1, Vectors, RowStep>(p, row, column);
    case 2:
      return multiply_part<2, Vectors, RowStep>(p, row, column);
    case 3:
      return multiply_part<3, Vectors, RowStep>(p, row, column);
    case 4:
      return multiply_part<4, Vectors, RowStep>(p, row, column);
    case 5:
      return multiply_part<5, Vectors, RowStep>(p, row, column);
    default:
      return;  // no rows are left
  }
}

template <std::int64_t RowStep>
inline void multiply_small(const SmallProduct& p) {
  std::int64_t column = 0;
  for (; column + panel_columns <= p.columns; column += panel_columns)
    multiply_columns<panel_vectors, RowStep>(p, column);
  const std::int64_t left = (p.columns - column) / lanes;
  if (left == 1) multiply_columns<1, RowStep>(p, column);
  if constexpr (panel_vectors > 2) {
    if (left == 2) multiply_columns<2, RowStep>(p, column);
    if (left == 3) multiply_columns<3, RowStep>(p, column);
  }
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
