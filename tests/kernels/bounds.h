#pragma once
// Error bounds that the cases use; docs/numerics.md derives them.

#include <algorithm>
#include <cmath>

#include "tensor/dtype.h"

namespace underkeel::kernels::cases {

/// Unit roundoff of f32.
constexpr double f32_unit = 0x1p-24;

/// Two results that lie close together differ by at most this much, relatively, once each is
/// rounded to `type`: one spacing.
constexpr double rounding(DType type) {
  switch (type) {
    case DType::bf16:
      return 0x1p-7;
    case DType::f16:
      return 0x1p-10;
    default:
      return 0x1p-23;
  }
}
/// Spacing of the subnormal numbers, below which relative bounds mean nothing.
constexpr double smallest_step(DType type) {
  return type == DType::f16 ? 0x1p-24 : 0x1p-133;
}

/// Error of an f32 sum of `count` terms, relative to the sum of their absolute values. Rounding
/// errors are taken as independent: lambda * sqrt(count) * unit, with lambda = 5 (Higham and Mary
/// 2019); the certain bound, count * unit, where that is smaller.
inline double sum_bound(std::int64_t count) {
  const auto n = static_cast<double>(count);
  return std::min(n, 5 * std::sqrt(n) + 1) * f32_unit;
}

}  // namespace underkeel::kernels::cases
