// A rank that does not come ends the run with its name, a slow one is waited for.

#include <csignal>

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RankThatDoesNotCome : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    if (GetParam() == Ranks::processes && !UNDERKEEL_HAS_MPI) GTEST_SKIP() << "built without MPI";
    adopt_orphans();
  }

  /// Saves at 2 and 4 of 4 steps, with a limit of 2 s for everything.
  Ended run_with(const std::string& fault) {
    return run_training(
        made_, {.ranks = 2,
                .as = GetParam(),
                .changes = {"underkeel.save.time_limit=2", "underkeel.collective_time_limit=2"},
                .environment = {{"UNDERKEEL_FAULT", fault}}});
  }

  RunnableCase made_ = complete_case("rank_missing_at_save", {.zero_stage = 2});
};

TEST_P(RankThatDoesNotCome, IsNamedWithStepAndPhaseAndLeavesTheOlderCheckpoint) {
  const Ended ended = run_with("rank=1 phase=save step=4 delay=600s");

  EXPECT_EQ(ended.exit_code, 3) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("rank 1"));
  EXPECT_THAT(ended.output, HasSubstr("save at step 4"));
  EXPECT_THAT(complete_steps(made_.output), testing::ElementsAre(2));
  EXPECT_THAT(damage(made_.output), IsEmpty());
  EXPECT_THAT(children_left(), IsEmpty());
}

TEST_P(RankThatDoesNotCome, IsNamedInEveryOtherPhase) {
  // Each costs the limit and more; the transports share the phases out.
  const auto phases = GetParam() == Ranks::threads ? std::vector<std::string>{"load", "export"}
                                                   : std::vector<std::string>{"step", "commit"};
  for (const std::string& phase : phases) {
    SCOPED_TRACE(phase);
    const Ended ended = run_with("rank=1 phase=" + phase + " delay=600s");

    EXPECT_EQ(ended.exit_code, 3) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("rank 1"));
    EXPECT_THAT(ended.output, HasSubstr(phase == "commit" ? "save at step" : phase));
    EXPECT_THAT(children_left(), IsEmpty());
    fs::remove_all(made_.output);
  }
}

TEST_P(RankThatDoesNotCome, EndsAllWhenItDies) {
  const Ended ended = run_with("rank=1 phase=save step=4 kill");

  EXPECT_NE(ended.exit_code, 0) << ended.output;
  EXPECT_LT(ended.elapsed_s, 30);
  EXPECT_THAT(complete_steps(made_.output), testing::ElementsAre(2));
  EXPECT_THAT(damage(made_.output), IsEmpty());
  EXPECT_THAT(children_left(), IsEmpty());
}

TEST_P(RankThatDoesNotCome, IsWaitedForWhileItWrites) {
  // Rank 0 needs far longer than the limit for its part of the first save, and says so all the time.
  const Ended ended = run_training(
      made_,
      {.ranks = 2,
       .as = GetParam(),
       .changes = {"max_steps=3", "underkeel.save.time_limit=2",
                   "underkeel.collective_time_limit=2"},
       .environment = {{"UNDERKEEL_IO_FAULT", "delay:call=write,path=exp_avg,ms=120,times=all"}}});

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_GT(ended.elapsed_s, 2.5) << "the write was meant to be slow";
  EXPECT_THAT(ended.output, HasSubstr("to write ("));
  EXPECT_THAT(complete_steps(made_.output), Contains(2));
}

INSTANTIATE_TEST_SUITE_P(As, RankThatDoesNotCome, testing::Values(Ranks::threads, Ranks::processes),
                         [](const auto& chosen) {
                           return chosen.param == Ranks::threads ? "Thread" : "Process";
                         });

// Two folders stand for the disks of two nodes.
TEST(RanksOnNodesOfTheirOwn, AreRefusedBeforeTheFirstStepWhenTheySeeNoCommonFolder) {
  if (!UNDERKEEL_HAS_MPI) GTEST_SKIP() << "built without MPI";
  const RunnableCase made = complete_case("folder_per_node", {.zero_stage = 3});
  const fs::path first = made.output.string() + ".0";
  const fs::path second = made.output.string() + ".1";
  fs::create_directories(second);
  std::vector<std::string> words = {"mpirun", "--allow-run-as-root", "--oversubscribe"};
  for (const fs::path& output : {first, second}) {
    if (output == second) words.emplace_back(":");
    words.insert(words.end(), {"-n", "1", underkeel_binary(), "train", made.run_file.string(),
                               "output_dir=" + output.string(), "underkeel.threads=1"});
  }

  const Ended ended = run_program(words);

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the ranks do not share one output folder"));
  EXPECT_THAT(ended.output, HasSubstr("rank 1 (" + second.string() + " on "));
  EXPECT_TRUE(fs::is_empty(first)) << "not even the probe is left";
  EXPECT_TRUE(fs::is_empty(second));
}

}  // namespace
}  // namespace underkeel::test
