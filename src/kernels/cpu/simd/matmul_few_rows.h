#pragma once
// The product of few packed rows with columns that stay where they lie, depth by depth side by side: one
// token at a time goes through the weights like this, as fast as memory gives them. Every sum has
// the terms of multiply_panel() in the same order, so the bits are those of the packed product.

#include "kernels/cpu/simd/matmul_pack.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// With more rows packing pays.
constexpr std::int64_t unpacked_rows = 4;
static_assert(unpacked_rows <= panel_rows);

template <class T, PanelOrder Order>
struct FewRows {
  const float* a = nullptr;  // from pack_rows(), a block of depth after the other
  std::int64_t a_block = 0;  // floats from block to block
  std::int64_t rows = 0;
  Lines<T> b;  // depth is contiguous
  std::int64_t begin = 0;
  std::int64_t end = 0;  // of the columns
  std::int64_t k = 0;
  std::int64_t depth = 0;
  float* c = nullptr;  // (rows, end - begin)
  std::int64_t c_stride = 0;
  bool add = false;

  void run() const {
    switch (rows) {
      case 1:
        return multiply<1, 4>();
      case 2:
        return multiply<2, 2>();
      case 3:
        return multiply<3, 2>();
      default:
        return multiply<4, 2>();
    }
  }

 private:
  static constexpr std::int64_t row_step = Order == PanelOrder::by_row ? packed_row_stride : 1;
  static constexpr std::int64_t depth_step = Order == PanelOrder::by_row ? 1 : panel_rows;

  /// Several vectors of columns at a time: one sum waits for its last addition.
  template <int Rows, int Vectors>
  void multiply() const {
    std::int64_t column = begin;
    for (; column + Vectors * lanes <= end; column += Vectors * lanes)
      multiply_vectors<Rows, Vectors, true>(column);
    for (; column < end; column += lanes) multiply_vectors<Rows, 1, false>(column);
  }

  template <int Rows, int Vectors, bool Whole>
  [[gnu::flatten]] void multiply_vectors(std::int64_t column) const {
    for (std::int64_t start = 0; start < depth; start += depth_block) {
      const std::int64_t length = depth - start < depth_block ? depth - start : depth_block;
      const float* from = a + start / depth_block * a_block;
      Vec sums[Rows][Vectors];
#pragma GCC unroll 4
      for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) sums[row][v] = zero();
      std::int64_t i = 0;
      for (; i + lanes <= length; i += lanes) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          Vec square[lanes];
          load_square<Whole>(column + v * lanes, k + start + i, lanes, square);
#pragma GCC unroll 16
          for (int j = 0; j < lanes; ++j)
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row)
              sums[row][v] = multiply_add<T>(broadcast(from[row * row_step + (i + j) * depth_step]),
                                             square[j], sums[row][v]);
        }
      }
      for (int v = 0; v < Vectors && i < length; ++v) {
        Vec square[lanes];
        load_square<Whole>(column + v * lanes, k + start + i, length - i, square);
        for (std::int64_t j = 0; j < length - i; ++j)
          for (int row = 0; row < Rows; ++row)
            sums[row][v] = multiply_add<T>(broadcast(from[row * row_step + (i + j) * depth_step]),
                                           square[j], sums[row][v]);
      }
      for (int row = 0; row < Rows; ++row)
        for (int v = 0; v < Vectors; ++v) {
          float* to = c + row * c_stride + column - begin + v * lanes;
          const std::int64_t left = Whole ? lanes : end - column;
          const bool adds = add || start > 0;
          store_up_to(to, adds ? load_up_to(to, left) + sums[row][v] : sums[row][v], left);
        }
    }
  }

  /// square[j]: depth `cell` + j of the columns from `column` on.
  template <bool Whole>
  [[gnu::always_inline]] void load_square(std::int64_t column, std::int64_t cell,
                                          std::int64_t count, Vec (&square)[lanes]) const {
#pragma GCC unroll 16
    for (int line = 0; line < lanes; ++line)
      square[line] =
          Whole || column + line < end ? b.along_depth(column + line, cell, count) : zero();
    transpose(square);
  }
};

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
