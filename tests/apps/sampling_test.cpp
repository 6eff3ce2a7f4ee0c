#include "train/sampling.h"

#include <array>
#include <cmath>
#include <map>

#include <gmock/gmock.h>

namespace underkeel::train {
namespace {

constexpr std::array<float, 5> logits{1.0f, 3.0f, 2.0f, 3.0f, -4.0f};

std::map<std::int32_t, int> draw(const Sampling& sampling, int count) {
  std::map<std::int32_t, int> seen;
  for (int i = 0; i < count; ++i) ++seen[sample_token(logits, sampling, i)];
  return seen;
}

TEST(Sampling, TakesTheFirstOfTheLargestLogitsWithoutATemperature) {
  EXPECT_EQ(sample_token(logits, {}, 0), 1);
}

TEST(Sampling, DrawsEachTokenAsOftenAsItsProbability) {
  const int count = 20'000;
  const auto seen = draw({.temperature = 1, .seed = 7}, count);

  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double share = std::exp(static_cast<double>(logits[i])) / sum;
    // Five standard deviations of a count.
    const double slack = 5 * std::sqrt(share * (1 - share) * count) + 1;
    const auto found = seen.find(static_cast<std::int32_t>(i));
    EXPECT_NEAR(found == seen.end() ? 0 : found->second, share * count, slack) << i;
  }
}

TEST(Sampling, KeepsTheKLikeliest) {
  const auto seen = draw({.temperature = 5, .top_k = 2}, 1000);

  EXPECT_THAT(seen, testing::UnorderedElementsAre(testing::Key(1), testing::Key(3)));
}

TEST(Sampling, KeepsTheSmallestSetThatHoldsTheShare) {
  // Tokens 1 and 3 hold 0.42 each, token 2 0.16.
  const auto seen = draw({.temperature = 1, .top_p = 0.9}, 1000);

  EXPECT_THAT(seen,
              testing::UnorderedElementsAre(testing::Key(1), testing::Key(2), testing::Key(3)));
}

TEST(Sampling, KeepsOneTokenWhateverTheShare) {
  EXPECT_THAT(draw({.temperature = 1, .top_p = 0}, 100), testing::ElementsAre(testing::Key(1)));
}

TEST(Sampling, GivesTheSameTokensForTheSameSeedAndOthersForAnother) {
  const auto run = [](std::uint64_t seed) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 64; ++i)
      tokens.push_back(sample_token(logits, {.temperature = 2, .seed = seed}, i));
    return tokens;
  };

  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace underkeel::train
