#include "train/learning_rate.h"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/golden.h"
#include "support/places.h"
#include "support/temporary_folder.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using spec::LearningRateSchedule;

nlohmann::json goldens() {
  std::ifstream file(test::in_source("tests/train/goldens/learning_rates.json"));
  return nlohmann::json::parse(file);
}

nlohmann::json golden_cases() {
  return goldens().at("cases");
}

/// What the run file's reader makes of a schedule and its options.
spec::OptimizerConfig config_of(const std::string& schedule, const nlohmann::json& golden) {
  test::TemporaryFolder folder;
  nlohmann::json run = {{"model_name_or_path", "m"},
                        {"output_dir", "o"},
                        {"stage", "pt"},
                        {"finetuning_type", "full"},
                        {"do_train", true},
                        {"dataset", "d"},
                        {"val_size", 0.1},
                        {"eval_strategy", "steps"},
                        {"lr_scheduler_type", schedule},
                        {"lr_scheduler_kwargs", golden.value("options", nlohmann::json::object())}};
  for (const char* key : {"learning_rate", "warmup_steps", "warmup_ratio"})
    if (golden.contains(key)) run[key] = golden[key];
  std::ofstream(folder / "run.json") << run;
  return test::value_of(spec::read_run_file(folder / "run.json", {})).optimizer;
}

spec::OptimizerConfig config_of(const nlohmann::json& golden) {
  return config_of(golden.at("schedule"), golden);
}

TEST(LearningRate, IsWhatTransformersSchedulersGiveAtEveryStep) {
  const auto cases = golden_cases();
  ASSERT_GE(cases.size(), 31u);
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

TEST(LearningRate, HasTheFactorsOfTransformersOverTenSteps) {
  struct Row {
    const char* schedule;
    nlohmann::json options;
    std::vector<double> factors;
  };
  const std::vector<double> least = {0,       1. / 3,  2. / 3, 1,       .955436, .83057,
                                     .650134, .449866, .26943, .144564, .1};
  for (const Row& row : std::vector<Row>{
           {"linear",
            {},
            {0, 1. / 3, 2. / 3, 1, 6. / 7, 5. / 7, 4. / 7, 3. / 7, 2. / 7, 1. / 7, 0}},
           {"cosine",
            {},
            {0, 1. / 3, 2. / 3, 1, .950484, .811745, .61126, .38874, .188255, .049516, 0}},
           {"cosine_with_restarts",
            {{"num_cycles", 2}},
            {0, 1. / 3, 2. / 3, 1, .811745, .38874, .049516, .950484, .61126, .188255, 0}},
           {"inverse_sqrt",
            {},
            {0, 1. / 3, 2. / 3, 1, .866025, .774597, .707107, .654654, .612372, .57735, .547723}},
           {"cosine_with_min_lr", {{"min_lr_rate", 0.1}}, least},
           {"warmup_stable_decay",
            {{"num_stable_steps", 3}, {"num_decay_steps", 4}},
            {0, 1. / 3, 2. / 3, 1, 1, 1, 1, .853553, .5, .146447, 0}},
           // Its warmup is a step ahead, so that it rises again at the end.
           {"cosine_warmup_with_min_lr",
            {{"min_lr_rate", 0.1}},
            {1. / 3, 2. / 3, 1, .955436, .83057, .650134, .449866, .26943, .144564, .1,
             .144564}}}) {
    nlohmann::json golden = {{"learning_rate", 1.0}, {"warmup_steps", 3}};
    if (!row.options.is_null()) golden["options"] = row.options;
    const auto config = config_of(row.schedule, golden);
    for (std::int64_t step = 0; step <= 10; ++step)
      EXPECT_NEAR(learning_rate_at(config, step, 10), row.factors[static_cast<std::size_t>(step)],
                  6e-7)
          << row.schedule << ", step " << step;
  }
}

TEST(LearningRate, MakesAsManyWarmupStepsOfARatioAsTrainingArguments) {
  for (const auto& golden : golden_cases()) {
    const auto config = config_of(golden);
    if (config.schedule == LearningRateSchedule::constant) continue;  // it has no warmup
    const auto total_steps = static_cast<std::int64_t>(golden.at("learning_rates").size());

    EXPECT_EQ(spec::warmup_steps_of(config, total_steps), golden.at("resulting_warmup_steps"))
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

TEST(LearningRate, FallsOnAPlateauAsTorchsScheduler) {
  for (const auto& golden : goldens().at("plateaus")) {
    PlateauRate plateau(config_of("reduce_lr_on_plateau", golden));
    const auto losses = golden.at("losses").get<std::vector<double>>();
    const auto rates = golden.at("learning_rates").get<std::vector<double>>();

    for (std::size_t i = 0; i < losses.size(); ++i) {
      plateau.add(losses[i]);
      EXPECT_DOUBLE_EQ(plateau.rate(), rates[i]) << golden.at("options") << ", evaluation " << i;
    }
  }
}

// Rates by hand from DeepSpeed's rules: the first update has the constructor's rate, update n the rate of
// counter n - 2.
struct DeepspeedCase {
  std::string name;
  spec::DeepspeedSchedule schedule;
  std::vector<double> rates;
};

TEST(DeepspeedRate, StartsOneStepLateAndFollowsEachSchedulesRule) {
  using Kind = spec::DeepspeedScheduleKind;
  const double log4 = std::log(4.0);
  const double pi = std::acos(-1.0);
  const std::vector<DeepspeedCase> cases = {
      {"WarmupLR, log",
       {.kind = Kind::warmup, .max_rate = 0.1, .warmup_steps = 4},
       {0, 0, 0.1 * std::log(2.0) / log4, 0.1 * std::log(3.0) / log4, 0.1, 0.1, 0.1}},
      {"WarmupLR, linear, from a least rate",
       {.kind = Kind::warmup,
        .min_rate = 0.02,
        .max_rate = 0.1,
        .warmup_steps = 4,
        .warmup_is_logarithmic = false},
       {0.02, 0.02, 0.04, 0.06, 0.08, 0.1, 0.1}},
      {"WarmupLR, one step is taken as two",
       {.kind = Kind::warmup, .max_rate = 0.1, .warmup_steps = 1, .warmup_is_logarithmic = false},
       {0, 0, 0.05, 0.1}},
      {"WarmupDecayLR",
       {.kind = Kind::warmup_decay,
        .max_rate = 0.1,
        .warmup_steps = 2,
        .total_steps = 6,
        .warmup_is_logarithmic = false},
       {0, 0, 0.05, 0.1, 0.075, 0.05, 0.025, 0, 0}},
      {"WarmupCosineLR, of the optimizer's rate",
       {.kind = Kind::warmup_cosine,
        .warmup_steps = 2,
        .total_steps = 6,
        .warmup_is_logarithmic = false,
        .warmup_min_ratio = 0.5,
        .cos_min_ratio = 0.2},
       {0, 0.1, 0.15, 0.2 * (0.2 + 0.8 * (1 + std::cos(pi / 4)) / 2), 0.2 * 0.6,
        0.2 * (0.2 + 0.8 * (1 + std::cos(3 * pi / 4)) / 2), 0.04, 0.04}},
      {"OneCycle with decay",
       {.kind = Kind::one_cycle,
        .min_rate = 0.1,
        .max_rate = 0.5,
        .first_steps = 2,
        .second_steps = 4,
        .decay_rate = 1,
        .decay_steps = 2},
       {0.1, 0.3, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1 / 1.5, 0.1 / 2}},
      {"OneCycle in stairs",
       {.kind = Kind::one_cycle,
        .min_rate = 0.1,
        .max_rate = 0.5,
        .first_steps = 4,
        .second_steps = 4,
        .first_stairs = 2,
        .second_stairs = 2},
       {0.1, 0.1, 0.3, 0.3, 0.5, 0.3, 0.3, 0.1}},
      {"LRRangeTest",
       {.kind = Kind::range_test, .min_rate = 0.1, .test_steps = 2, .test_rate = 3},
       {0.1, 0.25, 0.4, 0.55}},
      {"LRRangeTest in stairs",
       {.kind = Kind::range_test,
        .min_rate = 0.1,
        .test_steps = 2,
        .test_rate = 3,
        .test_is_staircase = true},
       {0.1, 0.1, 0.4, 0.4, 0.7}}};
  for (const DeepspeedCase& one : cases) {
    spec::OptimizerConfig config{.learning_rate = 0.2};
    config.deepspeed_schedule = one.schedule;
    for (std::size_t step = 0; step < one.rates.size(); ++step)
      EXPECT_NEAR(learning_rate_at(config, static_cast<std::int64_t>(step), 100), one.rates[step],
                  1e-15)
          << one.name << ", update " << step + 1;
  }
}

TEST(DeepspeedRate, TakesAutoFromTheRunFile) {
  spec::OptimizerConfig config{.learning_rate = 0.2, .warmup_ratio = 0.2};
  config.deepspeed_schedule = spec::DeepspeedSchedule{
      .kind = spec::DeepspeedScheduleKind::warmup_decay, .warmup_is_logarithmic = false};

  EXPECT_EQ(learning_rate_at(config, 2, 10), 0.1);  // 2 steps of warm-up
  EXPECT_EQ(learning_rate_at(config, 3, 10), 0.2);
  EXPECT_EQ(learning_rate_at(config, 9, 10), 0.2 * (2.0 / 8.0));
}

TEST(LearningRate, StepValuesHoldTheBiasCorrectionsOfStepOneFirst) {
  spec::OptimizerConfig config;

  const auto first = update_values(config, 0.1, 1);
  const auto third = update_values(config, 0.1, 3);

  EXPECT_EQ(first[0], 0.1f);
  EXPECT_EQ(first[1], 0.1f);  // 1 - 0.9 in double, then rounded
  EXPECT_EQ(first[2], static_cast<float>(std::sqrt(1.0 - 0.999)));
  EXPECT_EQ(first[3], 0.0f);
  EXPECT_FLOAT_EQ(third[1], 0.271f);
  EXPECT_EQ(third[2], static_cast<float>(std::sqrt(1.0 - 0.999 * 0.999 * 0.999)));
}

}  // namespace
}  // namespace underkeel::train
