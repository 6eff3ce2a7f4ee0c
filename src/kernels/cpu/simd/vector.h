#pragma once
// One vector of f32 and what the kernels do with it. Every source in this folder is compiled once
// for each instruction set, with UNDERKEEL_INSTRUCTION_SET naming it; all names live in a namespace
// of that name, so that no inline function compiled for a wider set can stand in for a narrower one.
// For the same reason nothing here uses templates of the standard library.

#include <cstdint>

#include <immintrin.h>

#include "tensor/dtype.h"

#ifndef UNDERKEEL_INSTRUCTION_SET
#define UNDERKEEL_INSTRUCTION_SET avx2
#endif

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

#ifdef __AVX512F__

using Vec = __m512;
using Mask = __mmask16;
constexpr int lanes = 16;

/// The first `count` lanes, 0 to 16.
inline Mask first_lanes(std::int64_t count) {
  return static_cast<Mask>((std::uint32_t{1} << static_cast<std::uint32_t>(count)) - 1);
}
inline Vec zero() {
  return _mm512_setzero_ps();
}
inline Vec broadcast(float value) {
  return _mm512_set1_ps(value);
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
/// c - a * b.
inline Vec negative_fma(Vec a, Vec b, Vec c) {
  return _mm512_fnmadd_ps(a, b, c);
}
inline Vec max(Vec a, Vec b) {
  return _mm512_max_ps(a, b);
}
inline Vec min(Vec a, Vec b) {
  return _mm512_min_ps(a, b);
}
inline Vec sqrt(Vec a) {
  return _mm512_sqrt_ps(a);
}
inline Vec select(Mask mask, Vec yes, Vec no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}

inline Vec load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Vec from_bf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline Vec load(const BFloat16* from) {
  return from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Vec load(const Float16* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
/// Lanes from `count` on are zero and their memory is not touched.
inline Vec load_first(const float* from, std::int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), from);
}
inline Vec load_first(const BFloat16* from, std::int64_t count) {
  return from_bf16(_mm256_maskz_loadu_epi16(first_lanes(count), from));
}
inline Vec load_first(const Float16* from, std::int64_t count) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), from));
}

/// Nearest even; a NaN stays one.
inline __m256i to_bf16_bits(Vec value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_blend_epi32(is_nan, rounded, quiet), 16));
}
inline __m256i to_f16_bits(Vec value) {
  return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline void store(float* to, Vec value) {
  _mm512_storeu_ps(to, value);
}
inline void store(BFloat16* to, Vec value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16_bits(value));
}
inline void store(Float16* to, Vec value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_f16_bits(value));
}
inline void store_first(float* to, Vec value, std::int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), value);
}
inline void store_first(BFloat16* to, Vec value, std::int64_t count) {
  _mm256_mask_storeu_epi16(to, first_lanes(count), to_bf16_bits(value));
}
inline void store_first(Float16* to, Vec value, std::int64_t count) {
  _mm256_mask_storeu_epi16(to, first_lanes(count), to_f16_bits(value));
}

/// Pairwise: lane i and lane i + half, halving.
inline float reduce_add(Vec value) {
  const __m256 half =
      _mm256_add_ps(_mm512_castps512_ps256(value), _mm512_extractf32x8_ps(value, 1));
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
inline float reduce_max(Vec value) {
  return _mm512_reduce_max_ps(value);
}

inline float first_lane(Vec value) {
  return _mm512_cvtss_f32(value);
}
/// Lanes whose a is at least b.
inline Mask at_least(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}

inline Vec round_to_integer(Vec value) {
  return _mm512_roundscale_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/// value * 2^power for a whole `power`.
inline Vec scale_by_power(Vec value, Vec power) {
  return _mm512_scalef_ps(value, power);
}

/// rows[i] lane j and rows[j] lane i change places.
inline void transpose(Vec (&rows)[16]) {
  const auto low = [](Vec a, Vec b) { return _mm512_unpacklo_ps(a, b); };
  const auto high = [](Vec a, Vec b) { return _mm512_unpackhi_ps(a, b); };
  const auto low_pairs = [](Vec a, Vec b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high_pairs = [](Vec a, Vec b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  Vec quad[16];  // quad[4 * g + c]: column c of every block of four columns, rows 4g to 4g + 3
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const Vec* four = rows + 4 * g;
    const Vec a = low(four[0], four[1]);
    const Vec b = low(four[2], four[3]);
    const Vec c = high(four[0], four[1]);
    const Vec d = high(four[2], four[3]);
    quad[4 * g + 0] = low_pairs(a, b);
    quad[4 * g + 1] = high_pairs(a, b);
    quad[4 * g + 2] = low_pairs(c, d);
    quad[4 * g + 3] = high_pairs(c, d);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const Vec even_low = _mm512_shuffle_f32x4(quad[c], quad[4 + c], 0x88);
    const Vec odd_low = _mm512_shuffle_f32x4(quad[c], quad[4 + c], 0xdd);
    const Vec even_high = _mm512_shuffle_f32x4(quad[8 + c], quad[12 + c], 0x88);
    const Vec odd_high = _mm512_shuffle_f32x4(quad[8 + c], quad[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
    rows[4 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    rows[12 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
  }
}

#else  // AVX2, FMA and F16C

using Vec = __m256;
using Mask = __m256;  // all bits of a lane, or none
constexpr int lanes = 8;

inline __m256i lane_mask(std::int64_t count) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
}
inline Mask first_lanes(std::int64_t count) {
  return _mm256_castsi256_ps(lane_mask(count));
}
inline Vec zero() {
  return _mm256_setzero_ps();
}
inline Vec broadcast(float value) {
  return _mm256_set1_ps(value);
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
/// c - a * b.
inline Vec negative_fma(Vec a, Vec b, Vec c) {
  return _mm256_fnmadd_ps(a, b, c);
}
inline Vec max(Vec a, Vec b) {
  return _mm256_max_ps(a, b);
}
inline Vec min(Vec a, Vec b) {
  return _mm256_min_ps(a, b);
}
inline Vec sqrt(Vec a) {
  return _mm256_sqrt_ps(a);
}
inline Vec select(Mask mask, Vec yes, Vec no) {
  return _mm256_blendv_ps(no, yes, mask);
}

inline Vec load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vec from_bf16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline Vec load(const BFloat16* from) {
  return from_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Vec load(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline __m128i load_first_16bit(const void* from, std::int64_t count) {
  alignas(16) std::uint16_t values[8] = {};
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<const std::uint16_t*>(from)[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(values));
}
/// Lanes from `count` on are zero and their memory is not touched.
inline Vec load_first(const float* from, std::int64_t count) {
  return _mm256_maskload_ps(from, lane_mask(count));
}
inline Vec load_first(const BFloat16* from, std::int64_t count) {
  return from_bf16(load_first_16bit(from, count));
}
inline Vec load_first(const Float16* from, std::int64_t count) {
  return _mm256_cvtph_ps(load_first_16bit(from, count));
}

/// Nearest even; a NaN stays one.
inline __m128i to_bf16_bits(Vec value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
inline __m128i to_f16_bits(Vec value) {
  return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline void store(float* to, Vec value) {
  _mm256_storeu_ps(to, value);
}
inline void store(BFloat16* to, Vec value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), to_bf16_bits(value));
}
inline void store(Float16* to, Vec value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), to_f16_bits(value));
}
inline void store_first_16bit(void* to, __m128i bits, std::int64_t count) {
  alignas(16) std::uint16_t values[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(values), bits);
  for (std::int64_t i = 0; i < count; ++i) static_cast<std::uint16_t*>(to)[i] = values[i];
}
inline void store_first(float* to, Vec value, std::int64_t count) {
  _mm256_maskstore_ps(to, lane_mask(count), value);
}
inline void store_first(BFloat16* to, Vec value, std::int64_t count) {
  store_first_16bit(to, to_bf16_bits(value), count);
}
inline void store_first(Float16* to, Vec value, std::int64_t count) {
  store_first_16bit(to, to_f16_bits(value), count);
}

/// Pairwise: lane i and lane i + half, halving.
inline float reduce_add(Vec value) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
inline float reduce_max(Vec value) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

inline float first_lane(Vec value) {
  return _mm256_cvtss_f32(value);
}
/// Lanes whose a is at least b.
inline Mask at_least(Vec a, Vec b) {
  return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}

inline Vec round_to_integer(Vec value) {
  return _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/// value * 2^power for a whole `power` in [-252, 252]: in two steps, so that subnormal results and
/// overflow come out right.
inline Vec scale_by_power(Vec value, Vec power) {
  const __m256i whole = _mm256_cvtps_epi32(power);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const auto factor = [&](__m256i exponent) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(exponent, bias), 23));
  };
  return _mm256_mul_ps(_mm256_mul_ps(value, factor(half)), factor(_mm256_sub_epi32(whole, half)));
}

/// rows[i] lane j and rows[j] lane i change places.
inline void transpose(Vec (&rows)[8]) {
  Vec quad[8];
#pragma GCC unroll 2
  for (int g = 0; g < 2; ++g) {
    const Vec* four = rows + 4 * g;
    const Vec a = _mm256_unpacklo_ps(four[0], four[1]);
    const Vec b = _mm256_unpacklo_ps(four[2], four[3]);
    const Vec c = _mm256_unpackhi_ps(four[0], four[1]);
    const Vec d = _mm256_unpackhi_ps(four[2], four[3]);
    quad[4 * g + 0] = _mm256_shuffle_ps(a, b, 0x44);
    quad[4 * g + 1] = _mm256_shuffle_ps(a, b, 0xee);
    quad[4 * g + 2] = _mm256_shuffle_ps(c, d, 0x44);
    quad[4 * g + 3] = _mm256_shuffle_ps(c, d, 0xee);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(quad[c], quad[4 + c], 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(quad[c], quad[4 + c], 0x31);
  }
}

#endif

/// Loads `count` lanes, all of them when there are that many: the loops' tails.
template <class T>
inline Vec load_up_to(const T* from, std::int64_t count) {
  return count >= lanes ? load(from) : load_first(from, count);
}
template <class T>
inline void store_up_to(T* to, Vec value, std::int64_t count) {
  if (count >= lanes)
    store(to, value);
  else
    store_first(to, value, count);
}

constexpr std::int64_t min_of(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
constexpr std::int64_t ceil_of(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
constexpr std::int64_t max_of(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
