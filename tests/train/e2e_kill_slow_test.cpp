// SIGKILL at any moment: what is left is resumable, and the resumed run is the unbroken one, bit for bit.

#include <csignal>

#include <gmock/gmock.h>

#include "base/random.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* steps_and_saves[] = {"max_steps=6", "save_steps=2"};

class KilledRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunnableCase(complete_case("killed_in_save", {.zero_stage = 2}));
    unbroken_ = made_->folder / "unbroken";
    const Ended ended = run_training(*made_, options(unbroken_));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }
  static void TearDownTestSuite() {
    delete made_;
    made_ = nullptr;
  }

  static TrainOptions options(const fs::path& output) {
    return {.ranks = 2,
            .as = Ranks::threads,
            .output = output,
            .changes = {std::begin(steps_and_saves), std::end(steps_and_saves)}};
  }

  /// What a killed run must have left, and that it goes on to the unbroken run's end.
  static void expect_resumes_to_the_same_end(const fs::path& output,
                                             const std::vector<std::string>& changes = {}) {
    const auto complete = complete_steps(output);
    for (const std::string& name : entries(output, "checkpoint-"))
      EXPECT_TRUE(fs::exists(output / name / io::manifest_file)) << name;
    EXPECT_THAT(damage(output), IsEmpty());

    TrainOptions again = options(output);
    again.changes.insert(again.changes.end(), changes.begin(), changes.end());
    const Ended ended = run_training(*made_, again);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(tensor_differences(unbroken_, output), IsEmpty());
    EXPECT_THAT(tensor_differences(unbroken_ / "checkpoint-6", output / "checkpoint-6"), IsEmpty());
    EXPECT_THAT(entries(output, "tmp-"), IsEmpty());
    const auto resumed_from = complete.empty() ? 0 : complete.front();
    const auto ours = steps(output);
    for (const auto& [step, event] : steps(unbroken_)) {
      ASSERT_TRUE(ours.contains(step));
      EXPECT_EQ(ours.at(step)["loss"], event["loss"]) << "step " << step;
    }
    std::int64_t began_at = 0;
    for (const auto& line : json_lines(output / "events.jsonl"))
      if (line.value("event", "") == "resume") began_at = line["step"];
    EXPECT_EQ(began_at, resumed_from);
    fs::remove_all(output);
  }

  /// Kills runs at every `stride`-th call that changes something on a path with `path_part`, lets each go on,
  /// and returns how many were killed.
  static int kill_and_resume_at_each_call(const std::string& path_part, int stride,
                                          const std::vector<std::string>& changes = {}) {
    if (is_thorough()) stride = 1;
    int count = 0;
    for (int at = 1; at < 1000; at += stride, ++count) {
      const fs::path output = made_->folder / ("killed-at-" + std::to_string(at));
      SCOPED_TRACE(path_part + ", call " + std::to_string(at));
      TrainOptions killed = options(output);
      killed.changes.insert(killed.changes.end(), changes.begin(), changes.end());
      killed.environment["UNDERKEEL_IO_FAULT"] =
          "kill:path=" + path_part + ",at=" + std::to_string(at);
      const Ended ended = run_training(*made_, killed);
      if (ended.exit_code == 0) break;  // no such call any more
      EXPECT_EQ(ended.signal, SIGKILL) << ended.output;
      expect_resumes_to_the_same_end(output, changes);
      if (HasFatalFailure()) break;
    }
    RecordProperty("killed_runs", count);
    return count;
  }

  static RunnableCase* made_;
  static fs::path unbroken_;
};

RunnableCase* KilledRun::made_ = nullptr;
fs::path KilledRun::unbroken_;

TEST_F(KilledRun, ResumesToTheSameBitsWhereverASaveWasKilled) {
  // The save of step 4; a complete checkpoint of step 2 stands before it.
  EXPECT_GT(kill_and_resume_at_each_call("checkpoint-4", 4), 4);
}

TEST_F(KilledRun, ResumesToTheSameBitsWhereverTheFirstSaveWasKilled) {
  EXPECT_GT(kill_and_resume_at_each_call("checkpoint-2", 9), 2);
}

TEST_F(KilledRun, ResumesToTheSameBitsWhereverTheNameOfTheNewestWasBeingWritten) {
  EXPECT_GT(kill_and_resume_at_each_call("latest", 2), 1);
}

TEST_F(KilledRun, ResumesToTheSameBitsWhereverAnOldCheckpointWasBeingRemoved) {
  // Its own save comes first in the count.
  EXPECT_GT(kill_and_resume_at_each_call("checkpoint-2", 11, {"save_total_limit=1"}), 3);
}

TEST_F(KilledRun, ResumesToTheSameBitsWhereverTheFinalModelWasBeingWritten) {
  EXPECT_GT(kill_and_resume_at_each_call("tmp-model", 3), 1);
}

TEST_F(KilledRun, ResumesToTheSameBitsAfterAKillAtAnyMoment) {
  const int moments = is_thorough() ? 50 : 15;
  const Ended whole = run_training(*made_, options(made_->folder / "timed"));
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  constexpr std::uint64_t seed = 50;
  int killed = 0;
  for (int i = 0; i < moments; ++i) {
    const double at_s = whole.elapsed_s * random_uniform(seed, 0, static_cast<std::uint64_t>(i));
    const fs::path output = made_->folder / ("killed-at-moment-" + std::to_string(i));
    SCOPED_TRACE("killed after " + std::to_string(at_s) + " s");
    {
      Program program(train_words(*made_, options(output)));
      (void)program.wait_until([&] { return program.elapsed_s() >= at_s; });
      if (program.is_running()) ++killed;
      program.send_to_group(SIGKILL);
      (void)program.wait();
    }
    expect_resumes_to_the_same_end(output);
    if (HasFatalFailure()) return;
  }
  RecordProperty("killed_runs", killed);
  EXPECT_GT(killed, moments / 2) << "the moments were meant to lie within the run";
}

}  // namespace
}  // namespace underkeel::test
