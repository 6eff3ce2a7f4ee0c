#pragma once
// Copies blocks of an operand, as cells, into panels that multiply_panel reads in order.

#include "kernels/cpu/simd/matmul_kernel.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// Depth is cut at multiples of this, on every instruction set. c is read and written once for
/// each block; longer ones would push the packed rows of a tile out of the second cache.
constexpr std::int64_t depth_block = 384;

/// Elements between packed rows of a. Not a power of two, which would put all rows into the same
/// few sets of the first cache.
constexpr std::int64_t packed_row_stride = depth_block + 16;

/// How a panel of a lies in memory: each row together, or all rows of one depth together.
enum class PanelOrder { by_row, by_depth };

/// Floats that pack_rows writes for `rows` rows.
constexpr std::int64_t packed_rows_floats(std::int64_t rows) {
  return (rows + panel_rows - 1) / panel_rows * panel_rows * packed_row_stride;
}
constexpr std::int64_t packed_columns_floats(std::int64_t columns, std::int64_t depth) {
  return (columns + panel_columns - 1) / panel_columns * panel_columns * depth;
}
/// Where panel `panel` of packed rows begins, in either order.
constexpr std::int64_t rows_panel_offset(std::int64_t panel) {
  return panel * panel_rows * packed_row_stride;
}
/// Ordered by depth, whole vectors are stored for panel_rows elements each: the rest is overwritten
/// by the next depth or lies in the gap behind the panel.
static_assert(panel_rows * (packed_row_stride - depth_block) >= lanes);

/// Rows of depth whose memory is fetched ahead of its use: each begins on another page, where the
/// processor's own prefetching starts anew.
constexpr std::int64_t rows_ahead = 6;

/// Rows [begin, end) at depths [k, k + depth), padded with zero rows to whole panels.
template <class T>
inline void pack_rows(const Lines<T>& lines, std::int64_t begin, std::int64_t end, std::int64_t k,
                      std::int64_t depth, float* to) {
  const std::int64_t padded = (end - begin + panel_rows - 1) / panel_rows * panel_rows;
  if (lines.depth_is_contiguous) {
    for (std::int64_t row = 0; row < padded; ++row) {
      float* packed = to + row * packed_row_stride;
      if (begin + row < end) {
        for (std::int64_t i = 0; i < depth; i += lanes)
          store(packed + i, lines.along_depth(begin + row, k + i, depth - i));
      } else {
        for (std::int64_t i = 0; i < depth; i += lanes) store(packed + i, zero());
      }
    }
    return;
  }
  const std::int64_t count = end - begin;
  for (std::int64_t i = 0; i < depth; ++i) {
    if (i + rows_ahead < depth) lines.fetch(begin, k + i + rows_ahead, count);
    float* packed = to + i * panel_rows;
    for (std::int64_t row = 0; row < count; row += panel_rows, packed += rows_panel_offset(1))
      store(packed, lines.across_lines(begin + row, k + i, count - row));
  }
}

/// Columns [begin, end) at depths [k, k + depth), padded with zero columns to whole panels: panel
/// by panel, in each all columns of one depth together.
template <class T>
inline void pack_columns(const Lines<T>& lines, std::int64_t begin, std::int64_t end,
                         std::int64_t k, std::int64_t depth, float* to) {
  const std::int64_t panels = (end - begin + panel_columns - 1) / panel_columns;
  if (!lines.depth_is_contiguous) {
    for (std::int64_t i = 0; i < depth; ++i) {
      if (i + rows_ahead < depth) lines.fetch(begin, k + i + rows_ahead, end - begin);
      for (std::int64_t panel = 0; panel < panels; ++panel) {
        float* packed = to + panel * panel_columns * depth + i * panel_columns;
        for (int v = 0; v < panel_vectors; ++v) {
          const std::int64_t first = panel * panel_columns + v * lanes;
          const std::int64_t left = max_of(0, end - begin - first);
          store(packed + v * lanes, lines.across_lines(begin + first, k + i, left));
        }
      }
    }
    return;
  }
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    for (int v = 0; v < panel_vectors; ++v) {
      const std::int64_t first = panel * panel_columns + v * lanes;
      const std::int64_t left = end - begin - first;
      float* packed = to + panel * panel_columns * depth + v * lanes;
      for (std::int64_t i = 0; i < depth; i += lanes) {
        Vec block[lanes];
        for (int line = 0; line < lanes; ++line)
          block[line] =
              line < left ? lines.along_depth(begin + first + line, k + i, depth - i) : zero();
        transpose(block);
        const std::int64_t count = min_of(lanes, depth - i);
        for (std::int64_t j = 0; j < count; ++j) store(packed + (i + j) * panel_columns, block[j]);
      }
    }
  }
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
