// Adds rank by rank into a block of f32 that stays in the first-level cache, then stores it in the
// storage type; memory is read once and written once. Every element sees the same additions in the
// same order wherever a block begins, so cutting a range into chunks never changes bits.

#include "comm/ordered_sum.h"

#include <algorithm>
#include <array>
#include <bit>

#include <immintrin.h>

#include "base/check.h"

namespace underkeel::comm {

namespace {

// 8 KiB of f32 leaves room in a 32 KiB cache for the lines of the sources that stream through.
constexpr std::int64_t block_elements = 2048;
using Block = std::array<float, block_elements>;

void widen(const float* from, Block& sum, std::int64_t count) {
  std::copy_n(from, count, sum.data());
}
void add(const float* from, Block& sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += from[i];
}
void narrow(const Block& sum, float* into, std::int64_t count) {
  std::copy_n(sum.data(), count, into);
}

void widen(const BFloat16* from, Block& sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = to_f32(from[i]);
}
void add(const BFloat16* from, Block& sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += to_f32(from[i]);
}
// to_bf16() without its branch, which keeps the compiler from vectorising.
void narrow(const Block& sum, BFloat16* into, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(sum[i]);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    into[i].bits = static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
  }
}

// The compiler does not find the half conversions by itself.
__m256 widen_eight(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
void widen(const Float16* from, Block& sum, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(&sum[i], widen_eight(from + i));
  for (; i < count; ++i) sum[i] = to_f32(from[i]);
}
void add(const Float16* from, Block& sum, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(&sum[i], _mm256_add_ps(_mm256_loadu_ps(&sum[i]), widen_eight(from + i)));
  for (; i < count; ++i) sum[i] += to_f32(from[i]);
}
void narrow(const Block& sum, Float16* into, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(&sum[i]), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) into[i] = to_f16(sum[i]);
}

template <class T>
void sum_as(std::span<const void* const> sources, void* into, std::int64_t element_count) {
  Block sum;
  for (std::int64_t begin = 0; begin < element_count; begin += block_elements) {
    const std::int64_t count = std::min(block_elements, element_count - begin);
    widen(static_cast<const T*>(sources[0]) + begin, sum, count);
    for (const void* source : sources.subspan(1))
      add(static_cast<const T*>(source) + begin, sum, count);
    narrow(sum, static_cast<T*>(into) + begin, count);
  }
}

}  // namespace

void sum_in_rank_order(std::span<const void* const> sources, void* into, DType type,
                       std::int64_t element_count) {
  switch (type) {
    case DType::f32:
      return sum_as<float>(sources, into, element_count);
    case DType::bf16:
      return sum_as<BFloat16>(sources, into, element_count);
    case DType::f16:
      return sum_as<Float16>(sources, into, element_count);
    default:
      UK_CHECK(false, "sums are for f32, bf16 and f16");
  }
}

}  // namespace underkeel::comm
