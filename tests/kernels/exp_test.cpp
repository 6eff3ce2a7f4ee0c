// The vectorised exponential, in the instruction set that every build has.

#include "kernels/cpu/simd/exp.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace underkeel::kernels::cpu {
namespace {

float exp_of(float x) {
  return avx2::first_lane(avx2::exp(avx2::broadcast(x)));
}

/// Distance in units in the last place of the exact result.
double error_units(float x) {
  const double want = std::exp(static_cast<double>(x));
  const auto nearest = static_cast<float>(want);
  const double unit = static_cast<double>(std::nextafter(nearest, HUGE_VALF)) - nearest;
  return std::abs(static_cast<double>(exp_of(x)) - want) / unit;
}

TEST(Exp, StaysWithinTwoUnitsInTheLastPlace) {
  double largest = 0;
  // Every 1,009th float of either sign from 2^-40 to the bounds.
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-40f);
       bits < std::bit_cast<std::uint32_t>(88.7f); bits += 1009) {
    const auto x = std::bit_cast<float>(bits);
    largest = std::max(largest, error_units(x));
    if (x < 87.3f) largest = std::max(largest, error_units(-x));
  }

  EXPECT_LT(largest, 1.5);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
}

TEST(Exp, EndsInZeroInfinityAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();

  EXPECT_EQ(exp_of(-infinity), 0.0f);
  EXPECT_EQ(exp_of(-1e30f), 0.0f);
  EXPECT_EQ(exp_of(-88.0f), 0.0f);
  EXPECT_GE(exp_of(-87.3f), std::numeric_limits<float>::min());
  EXPECT_EQ(exp_of(89.0f), infinity);
  EXPECT_EQ(exp_of(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace underkeel::kernels::cpu
