// Runs of texts of unequal length: planned for the largest micro-batch that they meet, on any ranks, after any resume.

#include <cmath>

#include <gmock/gmock.h>

#include "planner/planner.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

/// One epoch of 200 texts, 4 a micro-batch, in f32 at a rate that does not know the end of the run.
class UnequalTexts : public testing::Test {
 protected:
  std::vector<std::string> changes(std::vector<std::string> more) const {
    std::vector<std::string> all = {"max_steps=-1",
                                    "num_train_epochs=1",
                                    "per_device_train_batch_size=4",
                                    "gradient_accumulation_steps=1",
                                    "lr_scheduler_type=constant",
                                    "save_steps=25"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Trains, and expects of every rank that memory was as planned. The planned peak of the first.
  std::int64_t train(const fs::path& output, int ranks, std::vector<std::string> more) {
    const Ended ended = run_training(
        made_, {.ranks = ranks, .output = output, .changes = changes(std::move(more))});
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    const auto memory = nlohmann::json::parse(read_text(output / "memory.json"));
    for (const auto& rank : memory["ranks"]) {
      const auto& device = rank["spaces"]["device"];
      EXPECT_NEAR(device["measured_peak_bytes"], device["planned_peak_bytes"], page_bytes);
    }
    return memory["ranks"][0]["spaces"]["device"]["planned_peak_bytes"];
  }
  /// The peak if every text were as long as the longest.
  std::int64_t peak_of_the_longest() const {
    auto run = value_of(spec::read_run_file(made_.run_file, changes({})));
    constexpr std::int64_t longest = 255;
    run.data.samples = spec::SampleSizes{.training = {.longest = longest}};
    const plan::Plan plan = planner::make_plan(
        planner::request_of(value_of(spec::read_model_config(made_.model)), run, 1));
    return plan.layout.size_bytes[static_cast<std::size_t>(plan::MemorySpace::device)];
  }
  static void expect_close_losses(const fs::path& unbroken, const fs::path& resumed) {
    const auto expected = steps(unbroken);
    for (const auto& [step, event] : steps(resumed)) {
      ASSERT_TRUE(expected.contains(step));
      const double loss = expected.at(step)["loss"];
      EXPECT_NEAR(event["loss"], loss, 1e-5 * loss) << "step " << step;
    }
  }

  RunnableCase made_ = complete_case("random_lengths", {.zero_stage = 1, .type = "float32"});
  fs::path whole_ = made_.folder / "whole";
};

TEST_F(UnequalTexts, NeedLessThanAsManyOfTheLongest) {
  const std::int64_t planned = train(whole_, 1, {});

  EXPECT_EQ(last_step(whole_), 50);
  EXPECT_LT(planned, peak_of_the_longest());
  // All ranks and all splits of a step share the bound.
  EXPECT_EQ(train(made_.folder / "accumulated", 1, {"gradient_accumulation_steps=3"}),
            train(made_.folder / "once_more", 1, {"gradient_accumulation_steps=5"}));
}

TEST_F(UnequalTexts, GoOnOnOtherRanksAndInOtherMicroBatches) {
  train(whole_, 1, {});
  struct Split {
    int ranks;
    const char* micro_batch;
    const char* accumulation;
    bool is_same_step;
  };
  for (const Split& split : std::vector<Split>{
           {2, "2", "1", true}, {1, "1", "4", true}, {2, "1", "2", true}, {1, "7", "1", false}}) {
    SCOPED_TRACE(std::to_string(split.ranks) + " x " + split.micro_batch);
    const fs::path output = with_checkpoint_of(
        whole_, 25, made_.folder / (std::to_string(split.ranks) + "x" + split.micro_batch));

    train(output, split.ranks,
          {std::string("per_device_train_batch_size=") + split.micro_batch,
           std::string("gradient_accumulation_steps=") + split.accumulation});

    EXPECT_GE(steps(output).size(), split.is_same_step ? 25u : 4u);
    if (split.is_same_step) expect_close_losses(whole_, output);
    fs::remove_all(output);
  }
}

TEST_F(UnequalTexts, GoOnIntoEpochsThatWereNotPlannedFor) {
  const std::int64_t of_one_epoch = train(made_.folder / "short", 1, {});
  const std::int64_t of_four = train(whole_, 1, {"num_train_epochs=4"});
  const fs::path longer = with_checkpoint_of(made_.folder / "short", 50, made_.folder / "longer");

  const std::int64_t resumed = train(longer, 1, {"num_train_epochs=4"});

  EXPECT_LT(of_one_epoch, of_four);
  EXPECT_EQ(resumed, of_four);
  EXPECT_EQ(last_step(longer), 200);
  // Other shape classes change no bit of the first epoch.
  EXPECT_THAT(tensor_differences(whole_, longer), testing::IsEmpty());
}

TEST_F(UnequalTexts, WithFewerSequencesAStepMeetMoreEpochsThanTheyAskFor) {
  train(whole_, 2, {"num_train_epochs=2"});
  const fs::path output = with_checkpoint_of(whole_, 50, made_.folder / "narrow");

  // Step 50 of 100 of the new size, at the end of epoch 2: another epoch is met.
  train(output, 1, {"num_train_epochs=2"});

  EXPECT_EQ(last_step(output), 100);
  EXPECT_GT(steps(output).at(100)["epoch"].get<double>(), 2.5);
}

}  // namespace
}  // namespace underkeel::test
