#pragma once
// What attention forward and backward share: which keys a stretch of queries sees, and operands
// copied as f32 into the layouts that multiply_small reads.

#include "kernels/attention.h"
#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/matmul_kernel.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// Queries of a tile lie along vectors, so softmax needs no sum across lanes.
constexpr std::int64_t query_tile = 64;
constexpr std::int64_t key_block = 96;

/// Rows of an operand are kept in pieces of this width, at a constant stride that is no power of
/// two.
constexpr std::int64_t piece_width = 256;
constexpr std::int64_t piece_stride = piece_width + 16;

constexpr std::int64_t round_up_to(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Queries [begin, end) of one sequence and the keys that some of them see.
struct QuerySpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_key = 0;

  std::int64_t count() const { return end - begin; }
};

struct SequenceRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The sequence that `row` belongs to: the last one that starts at or before it.
inline SequenceRange sequence_of(const std::int32_t* starts, std::int64_t rows, std::int64_t row) {
  std::int64_t low = 0;      // starts[low] <= row
  std::int64_t high = rows;  // starts[high] > row
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (starts[middle] <= row ? low : high) = middle;
  }
  return {starts[low], starts[high]};
}

inline std::int64_t first_visible_key(std::int64_t query, std::int64_t sequence_begin,
                                      std::int64_t window) {
  return window > 0 ? max_of(sequence_begin, query - window + 1) : sequence_begin;
}

/// Begins to bring `count` rows of `width` elements nearer. Rows of a head lie a page or so apart,
/// which the processor does not foresee.
template <class T>
inline void fetch_rows(const T* from, std::int64_t stride, std::int64_t count, std::int64_t width) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t row = 0; row < count; ++row)
    for (std::int64_t i = 0; i < width; i += line)
      _mm_prefetch(reinterpret_cast<const char*>(from + row * stride + i), _MM_HINT_T1);
}

/// Copies `count` rows of `width` elements, times `factor`, as f32: pieces of piece_width columns,
/// each (count, piece_stride); columns up to the next multiple of lanes are zero. `to` holds
/// `capacity` rows a piece.
template <class T>
inline void copy_rows(const T* from, std::int64_t stride, std::int64_t count, std::int64_t width,
                      float factor, float* to, std::int64_t capacity) {
  const Vec scale = broadcast(factor);
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t i = 0; i < width; i += lanes) {
      const Vec value = load_up_to(from + row * stride + i, width - i) * scale;
      store(to + i / piece_width * capacity * piece_stride + row * piece_stride + i % piece_width,
            value);
    }
  }
}

/// Writes (width, query_tile): column q is row q of `from`, times `factor`; columns from `count` up
/// to the next multiple of lanes are zero.
template <class T>
inline void copy_transposed(const T* from, std::int64_t stride, std::int64_t count,
                            std::int64_t width, float factor, float* to) {
  const Vec scale = broadcast(factor);
  for (std::int64_t first = 0; first < count; first += lanes) {
    for (std::int64_t i = 0; i < width; i += lanes) {
      Vec block[lanes];
      for (int line = 0; line < lanes; ++line)
        block[line] = first + line < count
                          ? load_up_to(from + (first + line) * stride + i, width - i) * scale
                          : zero();
      transpose(block);
      const std::int64_t rows = min_of(lanes, width - i);
      for (std::int64_t j = 0; j < rows; ++j) store(to + (i + j) * query_tile + first, block[j]);
    }
  }
}

/// result (keys, query_tile) = rows (keys, width) times columns (width, query_tile).
inline void score_product(const float* rows, const float* columns, std::int64_t keys,
                          std::int64_t queries, std::int64_t width, float* result) {
  for (std::int64_t piece = 0; piece * piece_width < width; ++piece)
    multiply_small<piece_stride>({.a = rows + piece * key_block * piece_stride,
                                  .b = columns + piece * piece_width * query_tile,
                                  .b_step = query_tile,
                                  .c = result,
                                  .c_stride = query_tile,
                                  .rows = keys,
                                  .columns = round_up_to(queries, lanes),
                                  .depth = min_of(piece_width, width - piece * piece_width),
                                  .add = piece > 0});
}

/// Which lanes of scores are visible, for one block of keys against one stretch of queries.
class Visibility {
 public:
  Visibility(const QuerySpan& span, std::int64_t first_key, std::int64_t keys, std::int64_t window)
      : offset_(first_key - span.begin), window_(window) {
    const bool some_later = first_key + keys - 1 > span.begin;
    const bool some_too_old = window > 0 && span.end - 1 - first_key >= window;
    partial_ = some_later || some_too_old;
  }
  bool partial() const { return partial_; }

  /// `value` where key `key` of the block is visible to queries [column, column + lanes), else
  /// `hidden`.
  Vec apply(Vec value, Vec hidden, std::int64_t key, std::int64_t column) const {
    // Query c sees key k when 0 <= c - k, and c - k < window.
    const auto distance_at_0 = static_cast<float>(column - offset_ - key);
    const Vec distance = lane_numbers() + broadcast(distance_at_0);
    value = select(at_least(distance, zero()), value, hidden);
    if (window_ > 0)
      value = select(at_least(broadcast(static_cast<float>(window_ - 1)), distance), value, hidden);
    return value;
  }

 private:
  static Vec lane_numbers() {
    alignas(64) static constexpr float numbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                      8, 9, 10, 11, 12, 13, 14, 15};
    return load(numbers);
  }

  std::int64_t offset_;  // of the block's first key from the first query
  std::int64_t window_;
  bool partial_ = false;
};

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
