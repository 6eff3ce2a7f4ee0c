// The loss scale's rule, and what an fp16 run makes of it.

#include "train/loss_scale.h"

#include <gtest/gtest.h>

#include "support/value_of.h"
#include "train/job.h"
#include "train/overflows.h"

namespace underkeel::train {
namespace {

using Outcome = LossScale::Outcome;
using test::value_of;

TEST(LossScale, KeepsTheFirstOverflowHalvesTheLaterOnesAndEndsAtTheLeast) {
  LossScale scale(spec::LossScaleConfig{});
  for (int step = 0; step < 19; ++step) (void)scale.step(false);
  EXPECT_EQ(scale.scale(), 65536);

  EXPECT_EQ(scale.step(true), Outcome::goes_on);
  EXPECT_EQ(scale.scale(), 65536);
  for (int overflow = 2; overflow <= 17; ++overflow) {
    EXPECT_EQ(scale.step(true), Outcome::goes_on) << overflow;
    EXPECT_EQ(scale.scale(), 65536 / (1 << (overflow - 1))) << overflow;
  }

  EXPECT_EQ(scale.scale(), 1);
  EXPECT_EQ(scale.step(true), Outcome::cannot_fall);
  EXPECT_EQ(scale.scale(), 1);
}

TEST(LossScale, DoublesAfterTheWindowAndOneMoreStep) {
  LossScale scale({.initial_power = 4, .window = 3});

  std::vector<double> scales;
  for (int step = 0; step < 8; ++step) {
    (void)scale.step(false);
    scales.push_back(scale.scale());
  }

  // it - last - 1 counts 0, 1, 2, ... in a run without overflow: 3 and 6 are multiples of the window.
  EXPECT_EQ(scales, (std::vector<double>{16, 16, 16, 32, 32, 32, 64, 64}));
}

TEST(LossScale, CountsTheWindowFromTheLastOverflow) {
  LossScale scale({.initial_power = 4, .window = 2, .hysteresis = 1});
  (void)scale.step(true);
  EXPECT_EQ(scale.scale(), 8);

  std::vector<double> scales;
  for (int step = 0; step < 5; ++step) {
    (void)scale.step(false);
    scales.push_back(scale.scale());
  }

  EXPECT_EQ(scales, (std::vector<double>{8, 8, 16, 16, 32}));
}

TEST(LossScale, RefillsHysteresisWhenTheScaleGrowsOrAtEachGoodStepWhenAsked) {
  LossScale at_growth({.initial_power = 4, .window = 1000, .hysteresis = 2});
  LossScale at_once(
      {.initial_power = 4, .window = 1000, .hysteresis = 2, .refills_hysteresis = true});

  for (LossScale* scale : {&at_growth, &at_once}) {
    (void)scale->step(true);
    (void)scale->step(false);
    (void)scale->step(true);
  }

  EXPECT_EQ(at_growth.scale(), 8);
  EXPECT_EQ(at_once.scale(), 16);
}

TEST(LossScale, StaysWhereItIsFixed) {
  LossScale scale({.fixed = 128});

  for (int step = 0; step < 40; ++step) EXPECT_EQ(scale.step(true), Outcome::goes_on);

  EXPECT_EQ(scale.scale(), 128);
}

TEST(LossScale, NeverFallsBelowALeastThatIsNoPowerOfTwo) {
  LossScale scale({.initial_power = 3, .hysteresis = 1, .least = 3});

  EXPECT_EQ(scale.step(true), Outcome::goes_on);
  EXPECT_EQ(scale.step(true), Outcome::goes_on);
  EXPECT_EQ(scale.scale(), 3);
  EXPECT_EQ(scale.step(true), Outcome::cannot_fall);
}

TEST(LossScale, StaysFiniteHoweverLongNothingOverflows) {
  LossScale scale({.initial_power = 126, .window = 1});

  for (int step = 0; step < 10; ++step) (void)scale.step(false);

  EXPECT_EQ(scale.scale(), 0x1p126);
}

spec::RunConfig fp16_run() {
  spec::RunConfig run;
  run.precision = spec::Precision::f16;
  return run;
}

TEST(Overflows, AreKeptInACheckpointAndTakenUpAgain) {
  Overflows overflows(fp16_run());
  for (const bool overflowed : {false, true, true, false, true}) (void)overflows.step(overflowed);
  Progress progress{.step = 5};
  overflows.keep_in(progress);

  Overflows resumed(fp16_run());
  resumed.resume(value_of(Progress::from_json(progress.to_json(), "manifest.json")));
  Progress again{.step = 5};
  resumed.keep_in(again);

  EXPECT_EQ(resumed.loss_scale(), 16384);
  EXPECT_EQ(resumed.skipped(), 3);
  EXPECT_EQ(again.loss_scale, progress.loss_scale);
}

TEST(Overflows, OfAnEarlierProcessStillCountInAnotherPrecision) {
  Overflows bf16{spec::RunConfig{.precision = spec::Precision::bf16}};

  bf16.resume({.step = 7, .skipped_steps = 2, .loss_scale = LossScaleState{.scale = 8}});

  EXPECT_EQ(bf16.skipped(), 2);
  EXPECT_EQ(bf16.loss_scale(), 1);
  EXPECT_FALSE(bf16.are_expected());
}

TEST(Overflows, AdviseOnceAtTheThirdInARow) {
  Overflows overflows(fp16_run());

  EXPECT_TRUE(overflows.step(true).is_first);
  EXPECT_TRUE(overflows.step(true).advice.empty());
  EXPECT_NE(overflows.step(true).advice.find("bf16: true"), std::string::npos);
  EXPECT_TRUE(overflows.step(true).advice.empty());
  (void)overflows.step(false);
  EXPECT_TRUE(overflows.step(true).is_first);
}

TEST(Progress, RefusesALossScaleThatIsNone) {
  const std::string good = Progress{.step = 3, .loss_scale = LossScaleState{.scale = 4}}.to_json();
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\"scale\":4.0", "\"scale\":-4.0"},
        {"\"scale\":4.0", "\"scale\":null"},
        {"\"steps\":0", "\"steps\":0.5"}}) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), std::string::npos) << bad;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(Progress::from_json(bad, "manifest.json")) << bad;
  }
  EXPECT_TRUE(Progress::from_json(good, "manifest.json"));
}

}  // namespace
}  // namespace underkeel::train
