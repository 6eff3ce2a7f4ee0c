#include "support/golden.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/model_spec.h"
#include "support/value_of.h"

namespace underkeel::test {
namespace {

TEST(Golden, EveryCaseHasAGradientForEveryParameterOfItsModel) {
  for (const auto& name : golden_names()) {
    SCOPED_TRACE(name);
    const auto golden = read_golden(name);

    const auto model = value_of(spec::read_model_config(golden.folder));

    std::vector<std::string> expected;
    double sum_squares = 0;
    for (const auto& parameter : spec::parameters_of(model)) {
      expected.push_back(parameter.name);
      ASSERT_TRUE(golden.gradients.contains(parameter.name)) << parameter.name;
      EXPECT_EQ(golden.gradients.at(parameter.name).shape, parameter.shape());
      for (const float value : golden.gradients.at(parameter.name).as_f32())
        sum_squares += double{value} * double{value};
    }
    EXPECT_EQ(golden.gradients.size(), expected.size());
    EXPECT_NEAR(std::sqrt(sum_squares), golden.gradient_norm, 1e-9 * golden.gradient_norm);
  }
}

TEST(Golden, BatchesAreFlatRowsWithShiftedTargets) {
  for (const auto& name : golden_names()) {
    SCOPED_TRACE(name);
    const auto& batch = read_golden(name).batch;

    ASSERT_EQ(batch.sequence_starts.front(), 0);
    ASSERT_EQ(batch.sequence_starts.back(), batch.row_count());
    EXPECT_GT(batch.trained_count(), 0);
    for (std::size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s)
      for (int row = batch.sequence_starts[s]; row < batch.sequence_starts[s + 1]; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const bool last = row + 1 == batch.sequence_starts[s + 1];
        EXPECT_EQ(batch.positions[at], row - batch.sequence_starts[s]);
        if (batch.targets[at] != -100) {
          EXPECT_FALSE(last);
          EXPECT_EQ(batch.targets[at], batch.tokens[at + 1]);
        }
      }
  }
}

TEST(Golden, CoversTheShapesThatBreakKernels) {
  int beyond_a_tile = 0;
  int grouped_by_four = 0;
  int own_head_width = 0;
  int window_below_length = 0;
  for (const auto& name : golden_names()) {
    const auto golden = read_golden(name);
    const auto model = value_of(spec::read_model_config(golden.folder));
    int longest = 0;
    for (std::size_t s = 0; s + 1 < golden.batch.sequence_starts.size(); ++s)
      longest =
          std::max(longest, golden.batch.sequence_starts[s + 1] - golden.batch.sequence_starts[s]);
    beyond_a_tile += longest > 128 && longest % 64 != 0;
    grouped_by_four += model.query_heads == 4 * model.key_heads;
    own_head_width += model.head_width * model.query_heads != model.width;
    for (const auto window : model.windows) window_below_length += window > 0 && window < longest;
    EXPECT_NE(model.vocabulary % 16, 0) << name;
  }
  EXPECT_GE(beyond_a_tile, 4);
  EXPECT_GE(grouped_by_four, 4);
  EXPECT_GE(own_head_width, 4);
  EXPECT_GE(window_below_length, 2);
}

TEST(Golden, CurvesClipInSomeStepsAndFollowACosine) {
  const auto names = golden_curve_names();
  ASSERT_EQ(names.size(), 2u);
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    const auto curve = read_golden_curve(name);

    ASSERT_EQ(std::ssize(curve.losses), curve.steps);
    EXPECT_LT(curve.losses.back(), 0.75 * curve.losses.front());
    const auto clipped = std::ranges::count_if(
        curve.gradient_norms, [&](double norm) { return norm > curve.max_grad_norm; });
    EXPECT_GT(clipped, 0);
    EXPECT_LT(clipped, curve.steps);
    EXPECT_EQ(curve.learning_rates.front(), 0.0);
    EXPECT_DOUBLE_EQ(curve.learning_rates[static_cast<std::size_t>(curve.warmup_steps)],
                     curve.learning_rate);
  }
}

TEST(Golden, Bf16ModulesStayNearF32OnesFromEveryStart) {
  const auto golden = read_golden_bf16();

  ASSERT_EQ(golden.starts.size(), 5u);
  for (const auto& start : golden.starts) {
    SCOPED_TRACE(start.folder);
    EXPECT_EQ(value_of(spec::read_model_config(start.folder)).stored_type, DType::bf16);
    ASSERT_EQ(std::ssize(start.bf16_losses), golden.steps);
    for (std::size_t step = 0; step < start.bf16_losses.size(); ++step)
      EXPECT_LE(std::abs(start.bf16_losses[step] / start.f32_losses[step] - 1.0),
                golden.loss_spread[step] * (1 + 1e-9))
          << step;
  }
  EXPECT_LT(std::ranges::max(golden.loss_spread), 0.01);
  EXPECT_GT(std::ranges::max(golden.loss_spread), 1e-4);
}

}  // namespace
}  // namespace underkeel::test
