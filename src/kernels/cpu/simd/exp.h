#pragma once

#include "kernels/cpu/simd/vector.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

/// e^x within 2 units in the last place for every f32: 0 below -104, infinity above 88.73, NaN for
/// NaN. x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial of degree 6, fitted for the least
/// largest relative error (0.05 units before rounding).
inline Vec exp(Vec x) {
  // Outside these bounds the result is 0 or infinity anyway, and n stays small. The order of the
  // operands keeps a NaN.
  const Vec bounded = min(broadcast(90.0f), max(broadcast(-105.0f), x));
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
  return scale_by_power(p + broadcast(1.0f), n);
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
