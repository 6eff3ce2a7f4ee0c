// AdamW without masters: the formula, the rounding's mean, and bits that depend on the element alone.

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/instruction_set.h"
#include "kernels/kernels.h"

namespace underkeel::kernels {
namespace {

/// Weights, moments and gradients of some elements, and one update of them.
struct Elements {
  std::vector<BFloat16> weight, moment1, moment2;
  std::vector<float> gradient;

  explicit Elements(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      weight.push_back(to_bf16(random_normal(1, 0, at)));
      moment1.push_back(to_bf16(0.1f * random_normal(1, 1, at)));
      moment2.push_back(to_bf16(0.01f * random_uniform(1, 2, at)));
      gradient.push_back(random_normal(1, 3, at));
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(weight.size()); }

  AdamwAtRandomArgs args(std::array<float, 4>& step_values, std::array<float, 4>& clip,
                         std::int64_t begin, std::int64_t end) {
    const std::uint32_t update = 7;
    std::memcpy(&step_values[3], &update, 4);
    return {.weight = vector(weight.data() + begin, DType::bf16, end - begin),
            .moment1 = vector(moment1.data() + begin, DType::bf16, end - begin),
            .moment2 = vector(moment2.data() + begin, DType::bf16, end - begin),
            .gradient = vector(gradient.data() + begin, DType::f32, end - begin),
            .step_values = vector(step_values.data(), DType::f32, 4),
            .clip = vector(clip.data(), DType::f32, 4),
            .weight_decay = 0.1f,
            .seed = 0x123456789,
            .stream = 5,
            .first_element = begin};
  }

  std::vector<std::uint16_t> bits() const {
    std::vector<std::uint16_t> all;
    for (const auto* part : {&weight, &moment1, &moment2})
      for (const BFloat16 value : *part) all.push_back(value.bits);
    return all;
  }
};

class AdamwAtRandom : public testing::Test {
 protected:
  void update(Elements& elements, const KernelTable& table, std::int64_t begin, std::int64_t end) {
    table.adamw_at_random(elements.args(step_values_, clip_, begin, end), queue_);
  }

  std::array<float, 4> step_values_ = {1e-3f, 0.271f, 0.0547f, 0};
  std::array<float, 4> clip_ = {2.5f, 0.4f, 1, 0};
  device::ThreadPool pool_{2};
  device::Queue queue_ = device::Queue::on_cpu(pool_);
};

TEST_F(AdamwAtRandom, HasTheSameBitsOnEveryBackendAndInAnyPieces) {
  for (const std::int64_t count : {1, 2, 7, 16, 33, 70'001}) {
    SCOPED_TRACE(count);
    Elements expected(count);
    update(expected, reference_kernels(), 0, count);
    for (const cpu::InstructionSet set : cpu::instruction_sets()) {
      Elements whole(count);
      update(whole, cpu::kernels_for(set), 0, count);
      EXPECT_EQ(whole.bits(), expected.bits()) << name_of(set);
      Elements pieces(count);
      const std::int64_t cut = count / 8 * elements_of_rounding_block;
      update(pieces, cpu::kernels_for(set), cut, count);
      update(pieces, cpu::kernels_for(set), 0, cut);
      EXPECT_EQ(pieces.bits(), expected.bits()) << name_of(set);
    }
  }
}

TEST_F(AdamwAtRandom, ChangesNothingWhenTheNormIsNotFinite) {
  clip_ = {0, 0, 0, 0};
  Elements elements(50);
  const auto before = elements.bits();

  update(elements, cpu_kernels(), 0, 50);

  EXPECT_EQ(elements.bits(), before);
}

// An update far below the spacing of bf16 is lost by rounding to nearest, and kept on average by this.
TEST_F(AdamwAtRandom, KeepsSmallUpdatesOnAverage) {
  constexpr std::int64_t count = 20'000;
  Elements elements(count);
  for (std::int64_t i = 0; i < count; ++i) {
    elements.weight[i] = to_bf16(1.0f);
    elements.moment1[i] = to_bf16(0.0f);
    elements.moment2[i] = to_bf16(0.0f);
    elements.gradient[i] = 1.0f;
  }
  clip_ = {1, 1, 1, 0};
  step_values_ = {1e-4f, 0.1f, static_cast<float>(std::sqrt(0.001)), 0};

  AdamwAtRandomArgs args = elements.args(step_values_, clip_, 0, count);
  args.weight_decay = 0;
  cpu_kernels().adamw_at_random(args, queue_);

  double sum = 0;
  int moved = 0;
  for (const BFloat16 value : elements.weight) {
    sum += static_cast<double>(to_f32(value));
    moved += to_f32(value) != 1.0f ? 1 : 0;
  }
  // One spacing below 1 is 2^-8: 1e-4 moves one in 39. Five deviations of the mean of 20,000.
  const double spacing = 0x1p-8;
  const double p = 1e-4 / spacing;
  const double deviation = spacing * std::sqrt(p * (1 - p) / count);
  EXPECT_NEAR(sum / count, 1 - 1e-4, 5 * deviation);
  EXPECT_NEAR(moved, p * count, 5 * std::sqrt(p * count));
  EXPECT_EQ(to_f32(to_bf16(1 - 1e-4f)), 1.0f);
}

std::uint16_t bits(float value, std::uint32_t random_bits) {
  return high_half(round_at_random(value, random_bits));
}

TEST(RoundAtRandom, TakesOneOfTheTwoNeighboursAndKeepsWhatIsExact) {
  const float value = 1.0f + 0x1p-9f;  // a quarter of the way
  EXPECT_EQ(bits(value, 0), 0x3f80);
  EXPECT_EQ(bits(value, 0xbfff), 0x3f80);
  EXPECT_EQ(bits(value, 0xc000), 0x3f81);
  EXPECT_EQ(bits(-value, 0xffff), 0xbf81);
  EXPECT_EQ(bits(1.5f, 0xffff), 0x3fc0);
  EXPECT_EQ(bits(0.0f, 0xffff), 0);
  EXPECT_EQ(bits(std::numeric_limits<float>::infinity(), 0xffff), 0x7f80);
  EXPECT_TRUE(std::isnan(to_f32(BFloat16{bits(std::numeric_limits<float>::quiet_NaN(), 0)})));
}

// Weight, first and second moment of an element share one random word; none may follow from another.
TEST(RoundAtRandom, DrawsOfAnElementAreIndependentInPairs) {
  constexpr int count = 40'000;
  const AdamwAtRandomArgs args{.seed = 11, .stream = 3};
  const float halfway = 1.0f + 0x1p-8f;  // each draw goes up with probability one half
  std::array<int, 3> up{};
  std::array<int, 3> both{};  // weight and moment1, weight and moment2, moment1 and moment2
  for (int e = 0; e < count; ++e) {
    const auto words = rounding_bits(args, 1, e / elements_of_rounding_block);
    const RoundedElement rounded =
        round_at_random(halfway, halfway, halfway, words[e % elements_of_rounding_block]);
    const auto went_up = [](std::uint32_t value) { return high_half(value) == 0x3f81 ? 1 : 0; };
    const std::array<int, 3> here = {went_up(rounded.weight), went_up(rounded.moment1),
                                     went_up(rounded.moment2)};
    for (int i = 0; i < 3; ++i) up[i] += here[i];
    both[0] += here[0] * here[1];
    both[1] += here[0] * here[2];
    both[2] += here[1] * here[2];
  }
  const double five_deviations = 5 * std::sqrt(count * 0.25);
  for (const int times : up) EXPECT_NEAR(times, count / 2, five_deviations);
  for (const int times : both) EXPECT_NEAR(times, count / 4, five_deviations);
}

}  // namespace
}  // namespace underkeel::kernels
