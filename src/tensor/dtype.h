#pragma once
// Element types and their storage.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace underkeel {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i64, i32, u8, nf4 };

/// Bits of one element; nf4 is 4.
constexpr int bits_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 64;
    case DType::f32:
    case DType::i32:
      return 32;
    case DType::bf16:
    case DType::f16:
      return 16;
    case DType::u8:
      return 8;
    case DType::nf4:
      return 4;
  }
  return 0;
}

constexpr std::int64_t bytes_of(DType type, std::int64_t element_count) {
  return (element_count * bits_of(type) + 7) / 8;
}

/// "f32", "bf16", ...: the spelling in listings and run files.
std::string_view name_of(DType type);
Result<DType> parse_dtype(std::string_view text, std::string_view key);

/// Storage of a bfloat16 value: the upper half of an f32.
struct BFloat16 {
  std::uint16_t bits;
};
/// Storage of an IEEE half.
struct Float16 {
  std::uint16_t bits;
};

inline float to_f32(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
/// Rounds to nearest even; NaN stays NaN.
inline BFloat16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
float to_f32(Float16 value);
/// Rounds to nearest even; overflows to infinity.
Float16 to_f16(float value);

}  // namespace underkeel
