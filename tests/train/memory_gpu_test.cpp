// Memory of a GPU as its driver reports it, while the training program runs in a process of its own: the cases of people who
// ran out of it after a save, on a resume, at the first update, in an evaluation, or late, with changing lengths.

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

/// The GPU of this machine, opened once; null without one.
device::Gpu* gpu(std::string* why_not = nullptr) {
  static const auto opened = device::open_gpu(0);
  if (opened) return opened->get();
  if (why_not != nullptr) *why_not = opened.error().what;
  return nullptr;
}

/// What the driver has given away beyond what it had when the program started.
struct Watched {
  std::vector<std::int64_t> loading;  // bytes, before the first step's line in the log
  std::vector<std::int64_t> running;  // from there on, until the program lets go of its memory
  bool rises_again = false;           // after it has let go
  Ended ended;

  std::int64_t most() const { return *std::max_element(running.begin(), running.end()); }
};

Watched watch(const RunnableCase& made, TrainOptions options) {
  options.changes.insert(options.changes.end(),
                         {"underkeel.device=cuda", "underkeel.matmul_timing=0", "logging_steps=1"});
  const fs::path log =
      (options.output.empty() ? made.output : options.output) / "trainer_log.jsonl";
  std::error_code ignored;
  const auto log_bytes = [&] {
    const auto size = fs::file_size(log, ignored);
    return ignored ? 0 : size;
  };
  const auto log_before = log_bytes();
  const std::int64_t free_before = value_of(gpu()->free_bytes());
  Watched watched;
  bool steps = false;
  bool lets_go = false;
  Program program(train_words(made, options), program_options(options));
  while (program.is_running()) {
    const std::int64_t used = free_before - value_of(gpu()->free_bytes());
    steps = steps || log_bytes() > log_before;
    if (!steps) {
      watched.loading.push_back(used);
    } else if (!watched.running.empty() && used < watched.running.back()) {
      lets_go = true;
    } else if (lets_go) {
      watched.rises_again = watched.rises_again || used > watched.running.back();
    } else {
      watched.running.push_back(used);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  watched.ended = program.wait(300);
  return watched;
}

class MemoryOfAGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (gpu(&why_not) == nullptr) GTEST_SKIP() << why_not;
  }
  /// From the first step to the end not one byte more or less.
  static void expect_sealed(const Watched& watched) {
    ASSERT_EQ(watched.ended.exit_code, 0) << watched.ended.output;
    ASSERT_GE(watched.running.size(), 3u) << "too few looks at the card";
    EXPECT_EQ(*std::min_element(watched.running.begin(), watched.running.end()), watched.most());
    EXPECT_FALSE(watched.rises_again);
    EXPECT_GT(watched.most(), 0);
  }
};

TEST_F(MemoryOfAGpu, IsTheSameBeforeAndAfterSavesAndWithoutThem) {
  const RunnableCase made = complete_case("save_between_epochs", {.zero_stage = 3});

  const Watched saving = watch(made, {.output = made.folder / "saving"});
  const Watched quiet =
      watch(made, {.output = made.folder / "quiet", .changes = {"save_strategy=no"}});

  expect_sealed(saving);
  expect_sealed(quiet);
  EXPECT_TRUE(fs::exists(made.folder / "saving" / "checkpoint-12"));
  EXPECT_FALSE(fs::exists(made.folder / "quiet" / "checkpoint-12"));
}

TEST_F(MemoryOfAGpu, IsTheSameForAFreshAndAResumedStartAndNeverMoreWhileLoading) {
  const RunnableCase made = complete_case("activations_above_state", {.zero_stage = 0});
  const Watched fresh = watch(made, {.output = made.folder / "fresh"});
  const fs::path checkpoint = with_checkpoint_of(made.folder / "fresh", 2, made.folder / "resumed");

  const Watched resumed = watch(made, {.output = checkpoint});

  expect_sealed(fresh);
  expect_sealed(resumed);
  EXPECT_THAT(resumed.ended.output, testing::HasSubstr("checkpoint-2"));
  EXPECT_EQ(fresh.most(), resumed.most());
  for (const Watched* start : {&fresh, &resumed})
    EXPECT_LE(*std::max_element(start->loading.begin(), start->loading.end()), start->most());
}

TEST_F(MemoryOfAGpu, IsFlatOverTheSamplesOfAnEvaluation) {
  const RunnableCase made = complete_case("evaluation_in_pieces");
  std::vector<std::int64_t> most;

  for (const char* samples : {"40", "400"}) {
    const Watched watched =
        watch(made, {.output = made.folder / samples,
                     .changes = {std::string("max_samples=") + samples, "max_steps=4"}});
    expect_sealed(watched);
    most.push_back(watched.most());
  }

  EXPECT_EQ(most[0], most[1]);
}

TEST_F(MemoryOfAGpu, StaysWhereItWasThroughFiveHundredStepsOfChangingLength) {
  const RunnableCase made = complete_case("lengths_up_to_970", {.zero_stage = 1});

  const Watched watched = watch(made, {.output = made.folder / "out"});

  expect_sealed(watched);
  EXPECT_GT(watched.running.size(), 100u);
}

TEST_F(MemoryOfAGpu, HoldsPiecesOfTheLogitsOfALargeVocabulary) {
  const RunnableCase made = complete_case("large_vocabulary");
  std::vector<std::int64_t> most;

  for (const char* tokens : {"2048", "4096"}) {
    const Watched watched =
        watch(made, {.output = made.folder / tokens,
                     .changes = {std::string("cutoff_len=") + tokens, "max_steps=2",
                                 "per_device_train_batch_size=1"}});
    expect_sealed(watched);
    most.push_back(watched.most());
  }

  // Whole f32 logits would need 1.2 GB more for the other 2,048 tokens.
  EXPECT_LT(most[1] - most[0], std::int64_t{2048} * 151'936 * 4 / 4);
}

TEST_F(MemoryOfAGpu, StaysUnderABudgetWithAllThatTheDriverTakes) {
  const RunnableCase made = complete_case("save_between_epochs", {.zero_stage = 2});
  constexpr std::int64_t budget = std::int64_t{1280} * 1024 * 1024;

  const Watched watched = watch(made, {.flags = {"--memory", "device=1280MiB"}});

  expect_sealed(watched);
  EXPECT_LE(watched.most(), budget);
  EXPECT_LE(*std::max_element(watched.loading.begin(), watched.loading.end()), budget);
}

// Out of memory in the first update is what people meet: the moments come with it. Here they are there from the start, and
// what does not fit is told before the card is asked for anything.
TEST_F(MemoryOfAGpu, HoldsTheMomentsBeforeTheFirstUpdateOrIsRefused) {
  const RunnableCase made = complete_case("activations_above_state", {.zero_stage = 2});

  const Watched one_step = watch(made, {.output = made.folder / "one", .changes = {"max_steps=1"}});
  const Watched refused =
      watch(made, {.output = made.folder / "none", .flags = {"--memory", "device=1025MiB"}});

  EXPECT_EQ(one_step.ended.exit_code, 0) << one_step.ended.output;
  EXPECT_EQ(refused.ended.exit_code, 2);
  EXPECT_THAT(refused.ended.output, testing::HasSubstr("allowed 1.0 MiB"));
  EXPECT_THAT(refused.ended.output, testing::HasSubstr("optimizer"));
  EXPECT_TRUE(refused.running.empty());
}

}  // namespace
}  // namespace underkeel::test
