#include "train/learning_rate.h"

#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/golden.h"

namespace underkeel::train {
namespace {

using spec::LearningRateSchedule;

nlohmann::json golden_cases() {
  std::ifstream file(UNDERKEEL_SOURCE_DIR "/tests/train/goldens/learning_rates.json");
  return nlohmann::json::parse(file).at("cases");
}

spec::OptimizerConfig config_of(const nlohmann::json& golden) {
  static const std::map<std::string, LearningRateSchedule> schedules{
      {"constant", LearningRateSchedule::constant},
      {"constant_with_warmup", LearningRateSchedule::constant_with_warmup},
      {"linear", LearningRateSchedule::linear},
      {"cosine", LearningRateSchedule::cosine}};
  spec::OptimizerConfig config;
  config.schedule = schedules.at(golden.at("schedule"));
  config.learning_rate = golden.at("learning_rate");
  config.warmup_steps = golden.at("warmup_steps");
  config.warmup_ratio = golden.at("warmup_ratio");
  return config;
}

TEST(LearningRate, IsWhatTransformersSchedulersGiveAtEveryStep) {
  const auto cases = golden_cases();
  ASSERT_GE(cases.size(), 16u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden.dump());
    const auto config = config_of(golden);
    const auto expected = golden.at("learning_rates").get<std::vector<double>>();
    const auto total_steps = static_cast<std::int64_t>(expected.size());

    for (std::int64_t step = 0; step < total_steps; ++step)
      EXPECT_DOUBLE_EQ(learning_rate_at(config, step, total_steps),
                       expected[static_cast<std::size_t>(step)])
          << "step " << step;
  }
}

TEST(LearningRate, MakesAsManyWarmupStepsOfARatioAsTrainingArguments) {
  for (const auto& golden : golden_cases()) {
    const auto config = config_of(golden);
    if (config.schedule == LearningRateSchedule::constant) continue;  // it has no warmup
    const auto total_steps = static_cast<std::int64_t>(golden.at("learning_rates").size());

    EXPECT_EQ(warmup_steps_of(config, total_steps), golden.at("resulting_warmup_steps"))
        << golden.dump();
  }
}

TEST(LearningRate, FollowsTheRatesOfTheGoldenCurves) {
  const auto names = test::golden_curve_names();
  ASSERT_FALSE(names.empty());
  for (const auto& name : names) {
    const auto curve = test::read_golden_curve(name);
    spec::OptimizerConfig config;
    config.schedule = LearningRateSchedule::cosine;
    config.learning_rate = curve.learning_rate;
    config.warmup_steps = curve.warmup_steps;

    ASSERT_EQ(std::ssize(curve.learning_rates), curve.steps);
    for (std::int64_t step = 0; step < curve.steps; ++step)
      EXPECT_DOUBLE_EQ(learning_rate_at(config, step, curve.steps),
                       curve.learning_rates[static_cast<std::size_t>(step)])
          << name << ", step " << step;
  }
}

TEST(LearningRate, StaysAtZeroWhenStepsGoOnAfterTheEnd) {
  spec::OptimizerConfig config;

  EXPECT_EQ(learning_rate_at(config, 10, 10), 0.0);
  EXPECT_EQ(learning_rate_at(config, 11, 10), 0.0);
}

TEST(LearningRate, StepValuesHoldTheBiasCorrectionsOfStepOneFirst) {
  spec::OptimizerConfig config;
  config.schedule = LearningRateSchedule::constant;
  config.learning_rate = 0.1;

  const auto first = step_values(config, 0, 10);
  const auto third = step_values(config, 2, 10);

  EXPECT_EQ(first[0], 0.1f);
  EXPECT_EQ(first[1], 0.1f);  // 1 - 0.9 in double, then rounded
  EXPECT_EQ(first[2], static_cast<float>(std::sqrt(1.0 - 0.999)));
  EXPECT_EQ(first[3], 0.0f);
  EXPECT_FLOAT_EQ(third[1], 0.271f);
  EXPECT_EQ(third[2], static_cast<float>(std::sqrt(1.0 - 0.999 * 0.999 * 0.999)));
}

}  // namespace
}  // namespace underkeel::train
