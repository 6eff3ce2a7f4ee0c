#pragma once

#include "kernels/cpu/simd/vector.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// e^x within 2 units in the last place for every f32: infinity above 88.73, NaN for NaN, and 0
/// where the result would be subnormal (below -87.33), because the processor takes a hundred times
/// longer to make such numbers and softmax would meet them at every masked key.
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial of degree 6, fitted for the least
/// largest relative error (0.05 units before rounding).
inline Vec exp(Vec x) {
  const Vec lowest = broadcast(-87.33f);
  // Outside the bounds the result is 0 or infinity anyway, and n stays small. The order of the
  // operands keeps a NaN.
  const Vec bounded = min(broadcast(90.0f), max(lowest, x));
  const Vec n = round_to_integer(bounded * broadcast(1.44269504f));
  // ln 2 in two parts; the first has its last 12 bits zero, so that n * part is exact.
  Vec r = negative_fma(n, broadcast(0x1.62ep-1f), bounded);
  r = negative_fma(n, broadcast(0x1.0bfbe8p-15f), r);
  Vec p = broadcast(0x1.6a2456p-10f);
  p = fma(p, r, broadcast(0x1.1239e2p-7f));
  p = fma(p, r, broadcast(0x1.5558f2p-5f));
  p = fma(p, r, broadcast(0x1.555492p-3f));
  p = fma(p, r, broadcast(0x1.fffffcp-2f));
  p = fma(p, r * r, r);
  const Vec result = scale_by_power(p + broadcast(1.0f), n);
  return select(at_least(lowest, x), zero(), result);
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
