#include "comm/ordered_sum.h"

#include <array>
#include <bit>
#include <vector>

#include <gtest/gtest.h>

namespace underkeel::comm {
namespace {

/// sum_in_rank_order() of every 16-bit pattern, infinities and NaNs among them, and `addend`.
template <class T>
std::vector<std::uint16_t> sums_with(T addend, DType type) {
  std::vector<T> patterns(65'536);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    patterns[i].bits = static_cast<std::uint16_t>(i);
  const std::vector<T> addends(patterns.size(), addend);
  const std::array<const void*, 2> sources = {patterns.data(), addends.data()};
  sum_in_rank_order(sources, patterns.data(), type, static_cast<std::int64_t>(patterns.size()));
  std::vector<std::uint16_t> bits;
  for (const T sum : patterns) bits.push_back(sum.bits);
  return bits;
}

TEST(OrderedSum, RoundsEveryBf16AsTheScalarConversionDoes) {
  const BFloat16 third = to_bf16(0.333f);

  const auto sums = sums_with(third, DType::bf16);

  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(sums[i],
              to_bf16(to_f32(BFloat16{static_cast<std::uint16_t>(i)}) + to_f32(third)).bits)
        << i;
}

TEST(OrderedSum, RoundsEveryF16AsTheScalarConversionDoes) {
  const Float16 third = to_f16(0.333f);

  const auto sums = sums_with(third, DType::f16);

  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(sums[i], to_f16(to_f32(Float16{static_cast<std::uint16_t>(i)}) + to_f32(third)).bits)
        << i;
}

TEST(OrderedSum, AddsInTheOrderOfTheRanks) {
  // (1e8 - 1e8) + 1 is 1; with 1 added first it is lost.
  const float large = 1e8f, minus_large = -1e8f, one = 1.0f;
  float sum = 0;

  sum_in_rank_order(std::array<const void*, 3>{&large, &minus_large, &one}, &sum, DType::f32, 1);
  EXPECT_EQ(sum, 1.0f);
  sum_in_rank_order(std::array<const void*, 3>{&one, &large, &minus_large}, &sum, DType::f32, 1);
  EXPECT_EQ(sum, 0.0f);
}

TEST(OrderedSum, KeepsTheSignOfAZeroSum) {
  const float minus_zero = -0.0f;
  float sum = 1;

  sum_in_rank_order(std::array<const void*, 2>{&minus_zero, &minus_zero}, &sum, DType::f32, 1);

  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum), 0x80000000u);
}

}  // namespace
}  // namespace underkeel::comm
