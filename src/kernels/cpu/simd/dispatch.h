#pragma once
// From an element type known at run time to code compiled for it, and from a matrix to tiles.

#include "device/thread_pool.h"
#include "kernels/cpu/simd/vector.h"
#include "tensor/view.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// Calls f with a value of the storage type; its type is what matters.
template <class F>
inline void with_storage(DType type, const F& f) {
  switch (type) {
    case DType::bf16:
      return f(BFloat16{});
    case DType::f16:
      return f(Float16{});
    default:
      return f(float{});
  }
}

template <class T>
inline T* row_of(const TensorView& view, std::int64_t row) {
  return view.as<T>() + row * view.row_stride;
}

/// `value` as it comes back from storage as T.
template <class T>
inline Vec round_to_storage(Vec value) {
  if constexpr (sizeof(T) == 4) return value;
  T stored[lanes];
  store(stored, value);
  return load(stored);
}

/// A tile takes tens of microseconds: this many elements of simple work.
constexpr std::int64_t tile_elements = 32'768;

/// Calls f(first, end) for tiles of rows; `columns` says how much work a row is.
template <class F>
inline void for_row_tiles(device::ThreadPool& pool, std::int64_t rows, std::int64_t columns,
                          const F& f) {
  const std::int64_t height = max_of(1, tile_elements / max_of(1, columns));
  pool.parallel_for((rows + height - 1) / height, [&](std::int64_t tile) {
    f(tile * height, min_of(rows, (tile + 1) * height));
  });
}

/// Calls f(row, column, count) for stretches of elements that cover (rows, columns). With
/// `gapless` (every operand's rows follow each other) all of it counts as one row.
template <class F>
inline void for_stretches(device::ThreadPool& pool, std::int64_t rows, std::int64_t columns,
                          bool gapless, const F& f) {
  if (gapless) {
    columns *= rows;
    rows = columns > 0 ? 1 : 0;
  }
  if (columns <= tile_elements) {
    for_row_tiles(pool, rows, columns, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t row = first; row < end; ++row) f(row, std::int64_t{0}, columns);
    });
    return;
  }
  const std::int64_t pieces = (columns + tile_elements - 1) / tile_elements;
  pool.parallel_for(rows * pieces, [&](std::int64_t tile) {
    const std::int64_t column = tile % pieces * tile_elements;
    f(tile / pieces, column, min_of(tile_elements, columns - column));
  });
}

inline bool is_gapless(const TensorView& view) {
  return view.rows <= 1 || view.row_stride == view.columns;
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
