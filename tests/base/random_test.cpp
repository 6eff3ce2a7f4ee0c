#include "base/random.h"

#include <cmath>

#include <gtest/gtest.h>

namespace underkeel {
namespace {

// Known answers of Philox 4x32-10 from the paper's reference implementation.
TEST(Random, PhiloxGivesTheKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, NormalsHaveMeanZeroAndDeviationOne) {
  constexpr int count = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double value = random_normal(42, 7, static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 0.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.02);
}

TEST(Random, StreamsAndSeedsAreApart) {
  EXPECT_NE(random_word(1, 0, 5), random_word(1, 1, 5));
  EXPECT_NE(random_word(1, 0, 5), random_word(2, 0, 5));
  EXPECT_EQ(random_word(1, 0, 5), random_word(1, 0, 5));
}

}  // namespace
}  // namespace underkeel
