#include "comm/fault.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace underkeel::comm {
namespace {

TEST(Fault, ReadsRankPhaseStepAndAction) {
  const auto fault = parse_fault("rank=1 phase=save step=2 delay=600s");

  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->rank, 1);
  EXPECT_EQ(fault->phase, "save");
  EXPECT_EQ(fault->step, 2);
  EXPECT_EQ(fault->action, Fault::Action::delay);
  EXPECT_EQ(fault->delay_s, 600);
  EXPECT_EQ(parse_fault("rank=0  phase=update kill")->action, Fault::Action::kill);
}

TEST(Fault, NamesTheWordThatItCannotRead) {
  for (const char* text :
       {"rank=one phase=save kill", "rank=1 phase=save explode", "rank=1 phase=save delay=soon",
        "rank=1 phase=save", "phase=save kill"}) {
    const auto fault = parse_fault(text);
    ASSERT_FALSE(fault) << text;
    EXPECT_EQ(fault.error().code, ErrorCode::bad_config);
  }
  EXPECT_EQ(parse_fault("rank=1 phase=save explode").error().what, "cannot read `explode`");
}

TEST(Fault, StrikesOneRankAtItsPhaseAndStep) {
  const Fault fault = *parse_fault("rank=1 phase=save step=2 fail");

  EXPECT_TRUE(strike(fault, 0, "save", 2));
  EXPECT_TRUE(strike(fault, 1, "update", 2));
  EXPECT_TRUE(strike(fault, 1, "save", 3));
  const auto struck = strike(fault, 1, "save", 2);
  ASSERT_FALSE(struck);
  EXPECT_EQ(struck.error().where, "save at step 2");
}

TEST(Fault, StrikesEveryStepWhenNoneIsNamed) {
  const Fault fault = *parse_fault("rank=1 phase=save fail");

  EXPECT_FALSE(strike(fault, 1, "save", 2));
  EXPECT_FALSE(strike(fault, 1, "save", 4));
}

TEST(Fault, DistortsALayerFromAStepOn) {
  const Fault fault = *parse_fault("rank=0 phase=forward step=20 layer=1 doublings=20");

  EXPECT_TRUE(strike(fault, 0, "forward", 20));
  EXPECT_FALSE(distortion_of(fault, 0, 19));
  EXPECT_FALSE(distortion_of(fault, 1, 20));
  for (const std::int64_t step : {20, 21}) {
    const auto distortion = distortion_of(fault, 0, step);
    ASSERT_TRUE(distortion);
    EXPECT_EQ(distortion->layer, 1);
    EXPECT_EQ(distortion->doublings, 20);
  }
  EXPECT_FALSE(parse_fault("rank=0 phase=forward doublings=20"));
}

TEST(Fault, DelaysAndThenGoesOn) {
  EXPECT_TRUE(strike(*parse_fault("rank=1 phase=save delay=0.001s"), 1, "save", 1));
}

TEST(FaultDeathTest, Kills) {
  EXPECT_EXIT((void)strike(*parse_fault("rank=1 phase=save kill"), 1, "save", 1),
              ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace underkeel::comm
