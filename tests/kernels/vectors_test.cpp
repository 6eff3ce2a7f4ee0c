// Numbers measured in Hugging Face transformers and torch, and formulas worked by hand.

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "kernels/rope_frequencies.h"

namespace underkeel::kernels {
namespace {

float frequency_of(const RopeConstants& constants, std::int64_t head_width, std::int64_t pair,
                   std::int64_t longest_position = 0) {
  return inverse_frequency(rope_frequencies(constants, head_width, longest_position), pair);
}

void expect_close(double got, double want) {
  EXPECT_NEAR(got, want, std::abs(want) * 2e-7);
}

TEST(RopeFrequencies, ArePowersOfThetaWithoutScaling) {
  expect_close(frequency_of({}, 64, 0), 1.0);
  expect_close(frequency_of({}, 64, 16), 0.01);
  expect_close(frequency_of({.kind = RopeKind::linear, .factor = 4}, 64, 16), 0.0025);
}

TEST(RopeFrequencies, MatchLlama3) {
  const RopeConstants constants{.kind = RopeKind::llama3,
                                .theta = 5e5,
                                .factor = 8,
                                .original_max_position_embeddings = 8192};

  expect_close(frequency_of(constants, 128, 0), 1.0);
  expect_close(frequency_of(constants, 128, 28), 0.00321144611);
  expect_close(frequency_of(constants, 128, 29), 0.00216657063);
  expect_close(frequency_of(constants, 128, 30), 0.00137189368);
  expect_close(frequency_of(constants, 128, 35), 9.55621217e-05);
  expect_close(frequency_of(constants, 128, 36), 7.78465546e-05);
  expect_close(frequency_of(constants, 128, 63), 3.06892588e-07);
}

TEST(RopeFrequencies, MatchYarn) {
  RopeConstants constants{
      .kind = RopeKind::yarn, .theta = 1e6, .factor = 4, .original_max_position_embeddings = 32768};

  expect_close(frequency_of(constants, 128, 23), 0.00697830599);
  expect_close(frequency_of(constants, 128, 24), 0.00537532149);
  expect_close(frequency_of(constants, 128, 40), 4.44569851e-05);
  constants.truncate = false;
  expect_close(frequency_of(constants, 128, 24), 0.00551727042);
}

TEST(RopeFrequencies, MatchDynamicBeyondItsLengthAndPlainWithin) {
  const RopeConstants constants{
      .kind = RopeKind::dynamic, .factor = 4, .max_position_embeddings = 64};

  expect_close(frequency_of(constants, 128, 0, 99), 1.0);
  expect_close(frequency_of(constants, 128, 1, 99), 0.849913776);
  expect_close(frequency_of(constants, 128, 2, 99), 0.722353399);
  expect_close(frequency_of(constants, 128, 3, 99), 0.613938093);
  EXPECT_EQ(frequency_of(constants, 128, 1, 63), frequency_of({}, 128, 1));
}

class BothBackends : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table = *GetParam();
  device::ThreadPool pool{2};
  device::Queue queue = device::Queue::on_cpu(pool);
};

TEST_P(BothBackends, RmsNormMatchesHuggingFaceInBf16) {
  const std::array<float, 4> values = {0.1f, -0.2f, 0.3f, 0.7f};
  const std::array<float, 4> weights = {1, 0.5f, 2, 1.5f};
  std::array<BFloat16, 4> x{};
  std::array<BFloat16, 4> weight{};
  for (std::size_t i = 0; i < 4; ++i) {
    x[i] = to_bf16(values[i]);
    weight[i] = to_bf16(weights[i]);
  }
  std::array<BFloat16, 4> y{};
  float rstd = 0;

  table.rms_norm_forward({.x = matrix(x.data(), DType::bf16, 1, 4),
                          .weight = vector(weight.data(), DType::bf16, 4),
                          .y = matrix(y.data(), DType::bf16, 1, 4),
                          .rstd = vector(&rstd, DType::f32, 1),
                          .epsilon = 1e-5f},
                         queue);

  EXPECT_EQ(to_f32(y[0]), 0.251953125f);
  EXPECT_EQ(to_f32(y[1]), -0.251953125f);
  EXPECT_EQ(to_f32(y[2]), 1.515625f);
  EXPECT_EQ(to_f32(y[3]), 2.65625f);
}

TEST_P(BothBackends, DynamicRopeReadsTheLongestPositionOfAllRows) {
  std::array<std::int32_t, 2> positions = {1, 99};
  std::array<float, 2 * 64> cosine{};
  std::array<float, 2 * 64> sine{};

  table.rope_table(
      {.positions = vector(positions.data(), DType::i32, 2),
       .cosine = matrix(cosine.data(), DType::f32, 2, 64),
       .sine = matrix(sine.data(), DType::f32, 2, 64),
       .constants = {.kind = RopeKind::dynamic, .factor = 4, .max_position_embeddings = 64}},
      queue);

  EXPECT_NEAR(sine[1], std::sin(0.849913776), 1e-7);
  EXPECT_NEAR(cosine[3], std::cos(0.613938093), 1e-7);
}

TEST_P(BothBackends, ClippingFollowsTorch) {
  std::array<double, 2> sums = {9, 16};
  std::array<float, 4> out{};

  table.clip_factor({.sums = vector(sums.data(), DType::f64, 2),
                     .out = vector(out.data(), DType::f32, 4),
                     .max_norm = 1},
                    queue);

  EXPECT_EQ(out[0], 5.0f);
  EXPECT_FLOAT_EQ(out[1], 1.0f / (5.0f + 1e-6f));
  EXPECT_EQ(out[2], 1.0f);
}

TEST_P(BothBackends, ClippingTakesTheLossScaleOutOfNormAndGradients) {
  std::array<double, 2> sums = {9, 16};
  std::array<float, 4> out{};
  float scale = 4;

  table.clip_factor({.sums = vector(sums.data(), DType::f64, 2),
                     .out = vector(out.data(), DType::f32, 4),
                     .loss_scale = vector(&scale, DType::f32, 1),
                     .max_norm = 1},
                    queue);

  EXPECT_EQ(out[0], 1.25f);
  EXPECT_FLOAT_EQ(out[1], 1.0f / (1.25f + 1e-6f) / 4);
  EXPECT_EQ(out[2], 1.0f);
}

TEST_P(BothBackends, AdamwMatchesItsFormulaInDouble) {
  float master = 0.5f;
  float moment1 = 0.02f;
  float moment2 = 0.003f;
  float gradient = -0.25f;
  std::array<float, 4> step_values = {1e-2f, static_cast<float>(1 - std::pow(0.9, 3)),
                                      static_cast<float>(std::sqrt(1 - std::pow(0.999, 3))), 0};
  std::array<float, 4> clip = {1, 0.5f, 1, 0};

  table.adamw({.master = vector(&master, DType::f32, 1),
               .moment1 = vector(&moment1, DType::f32, 1),
               .moment2 = vector(&moment2, DType::f32, 1),
               .gradient = vector(&gradient, DType::f32, 1),
               .step_values = vector(step_values.data(), DType::f32, 4),
               .clip = vector(clip.data(), DType::f32, 4),
               .weight_decay = 0.1f},
              queue);

  const double m = 0.9 * 0.02 + 0.1 * -0.125;
  const double v = 0.999 * 0.003 + 0.001 * 0.125 * 0.125;
  const double want =
      0.5 * (1 - 1e-2 * 0.1) -
      1e-2 / (1 - std::pow(0.9, 3)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, 3)) + 1e-8);
  EXPECT_NEAR(moment1, m, 1e-8);
  EXPECT_NEAR(moment2, v, 1e-9);
  EXPECT_NEAR(master, want, 1e-7);
}

TEST_P(BothBackends, AdamwTakesTorchsThreeSteps) {
  constexpr std::array<std::array<float, 2>, 3> gradients = {{{.5f, -1}, {.25f, .5f}, {-1, 0}}};
  constexpr std::array<std::array<float, 2>, 3> wanted = {
      {{0.89000005f, -1.88f}, {0.78788209f, -1.83456624f}, {0.80063897f, -1.79563272f}}};
  std::array<float, 2> master = {1, -2};
  std::array<float, 2> moment1{};
  std::array<float, 2> moment2{};
  std::array<float, 4> clip = {1, 1, 1, 0};
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    std::array<float, 2> gradient = gradients[t];
    const auto count = static_cast<double>(t + 1);
    std::array<float, 4> step_values = {0.1f, static_cast<float>(1 - std::pow(0.9, count)),
                                        static_cast<float>(std::sqrt(1 - std::pow(0.999, count))),
                                        0};
    table.adamw({.master = vector(master.data(), DType::f32, 2),
                 .moment1 = vector(moment1.data(), DType::f32, 2),
                 .moment2 = vector(moment2.data(), DType::f32, 2),
                 .gradient = vector(gradient.data(), DType::f32, 2),
                 .step_values = vector(step_values.data(), DType::f32, 4),
                 .clip = vector(clip.data(), DType::f32, 4),
                 .weight_decay = 0.1f},
                queue);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(master[i], wanted[t][i], 2.5e-7) << t << i;
  }
}

TEST_P(BothBackends, AttentionOfOneKeyIsItsValue) {
  std::array<float, 4> q = {1, 2, 3, 4};
  std::array<float, 4> v = {0.5f, -1, 2, 7};
  std::array<std::int32_t, 3> starts = {0, 1, 2};
  std::array<float, 4> out{};
  std::array<float, 2> lse{};

  table.attention_forward({.q = matrix(q.data(), DType::f32, 2, 2),
                           .k = matrix(q.data(), DType::f32, 2, 2),
                           .v = matrix(v.data(), DType::f32, 2, 2),
                           .sequence_starts = vector(starts.data(), DType::i32, 3),
                           .out = matrix(out.data(), DType::f32, 2, 2),
                           .lse = matrix(lse.data(), DType::f32, 2, 1),
                           .query_heads = 1,
                           .key_heads = 1,
                           .head_width = 2,
                           .scale = 0.5f},
                          queue);

  EXPECT_EQ(out, v);
  EXPECT_FLOAT_EQ(lse[0], 2.5f);
  EXPECT_FLOAT_EQ(lse[1], 12.5f);
}

INSTANTIATE_TEST_SUITE_P(Tables, BothBackends,
                         testing::Values(&reference_kernels(), &cpu_kernels()),
                         [](const auto& test) { return test.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace underkeel::kernels
