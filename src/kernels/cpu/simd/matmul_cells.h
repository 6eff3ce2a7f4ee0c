#pragma once
// The 32-bit cells that packed panels hold, and the product of two of them: one f32, or, where the
// processor multiplies pairs of bf16 (AVX512_BF16), two neighbours in depth of one line.

#include "kernels/cpu/simd/vector.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// Elements of depth in a cell.
template <class T>
constexpr std::int64_t cell_elements = 1;

/// sum + a * b, cell by cell.
template <class T>
inline Vec multiply_add(Vec a, Vec b, Vec sum) {
  return fma(a, b, sum);
}

#ifdef __AVX512BF16__
template <>
inline constexpr std::int64_t cell_elements<BFloat16> = 2;

/// The pair's two products are added to the sum one after the other; subnormal inputs count as zero.
template <>
inline Vec multiply_add<BFloat16>(Vec a, Vec b, Vec sum) {
  return _mm512_dpbf16_ps(sum, __builtin_bit_cast(__m512bh, a), __builtin_bit_cast(__m512bh, b));
}

/// Cells from `from` on whose elements lie side by side; elements from `count` on are zero and their
/// memory is not touched.
inline Vec load_pairs(const BFloat16* from, std::int64_t count) {
  if (count >= 2 * lanes) return _mm512_castsi512_ps(_mm512_loadu_si512(from));
  const auto mask =
      static_cast<__mmask32>((std::uint64_t{1} << static_cast<std::uint64_t>(count)) - 1);
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, from));
}
/// Cells whose first elements lie at `even` and whose second ones at `odd`; a null `odd` is zeros.
inline Vec load_interleaved(const BFloat16* even, const BFloat16* odd, std::int64_t count) {
  const Mask mask = first_lanes(count < lanes ? count : lanes);
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, even));
  if (odd == nullptr) return _mm512_castsi512_ps(low);
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, odd));
  return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
#endif

/// One operand of a product as lines (rows of c for a, columns of c for b) times depth. Positions in
/// depth are cells.
template <class T>
struct Lines {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool depth_is_contiguous = false;  // element (line, k) at line*stride + k, else k*stride + line
  std::int64_t depth = 0;            // elements

  const T* at(std::int64_t line, std::int64_t cell) const {
    const std::int64_t k = cell * cell_elements<T>;
    return depth_is_contiguous ? data + line * stride + k : data + k * stride + line;
  }

  /// Cells [cell, cell + count) of a line, at most `lanes`; the rest is zero. Depth is contiguous.
  Vec along_depth(std::int64_t line, std::int64_t cell, std::int64_t count) const {
    const T* from = at(line, cell);
    if constexpr (cell_elements<T> == 1) {
      return load_up_to(from, count);
    } else {
      const std::int64_t left = depth - cell * cell_elements<T>;
      return load_pairs(from, left < 2 * count ? left : 2 * count);
    }
  }

  /// One cell of lines [line, line + count), at most `lanes`; the rest is zero. Lines are contiguous.
  Vec across_lines(std::int64_t line, std::int64_t cell, std::int64_t count) const {
    const T* from = at(line, cell);
    if constexpr (cell_elements<T> == 1) {
      return load_up_to(from, count);
    } else {
      return load_interleaved(from, 2 * cell + 1 < depth ? from + stride : nullptr, count);
    }
  }

  /// Fetches what across_lines will read, into the nearest cache.
  void fetch(std::int64_t line, std::int64_t cell, std::int64_t count) const {
    constexpr std::int64_t cache_line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t element = 0; element < cell_elements<T>; ++element) {
      if (cell * cell_elements<T> + element >= depth) return;
      const T* from = at(line, cell) + element * stride;
      for (std::int64_t i = 0; i < count; i += cache_line)
        _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
    }
  }
};

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
