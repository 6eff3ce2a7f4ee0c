// pure_bf16: no f32 copy of anything, and the same bits at every stage and after a resume.

#include <gmock/gmock.h>

#include "support/tensor_files.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::IsEmpty;

const std::vector<std::string> pure = {
    "fp16=false",          "pure_bf16=true", "deepspeed.fp16.enabled=auto", "max_steps=12",
    "save_strategy=steps", "save_steps=5",   "deepspeed.bf16.enabled=true"};

TEST(PureBf16, HasTheSameBitsAtEveryStageAndAfterAResume) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  const fs::path expected = made.folder / "stage2";
  const Ended ended = run_training(made, {.ranks = 2, .output = expected, .changes = pure});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  for (const auto& [name, tensor] : read_tensors(expected / "checkpoint-5/exp_avg_sq.safetensors"))
    EXPECT_EQ(tensor.type, DType::bf16) << name;
  EXPECT_FALSE(fs::exists(expected / "checkpoint-5/master.safetensors"));
  for (const auto& [name, tensor] : read_tensors(expected / "model.safetensors"))
    EXPECT_EQ(tensor.type, DType::bf16) << name;

  for (const int stage : {0, 1, 3}) {
    SCOPED_TRACE(stage);
    const fs::path output = made.folder / ("stage" + std::to_string(stage));
    std::vector<std::string> changes = pure;
    changes.push_back("deepspeed.zero_optimization.stage=" + std::to_string(stage));
    const Ended other = run_training(made, {.ranks = 2, .output = output, .changes = changes});
    ASSERT_EQ(other.exit_code, 0) << other.output;
    EXPECT_THAT(tensor_differences(expected, output), IsEmpty());
    EXPECT_THAT(tensor_differences(expected / "checkpoint-10", output / "checkpoint-10"),
                IsEmpty());
  }

  const fs::path resumed = with_checkpoint_of(expected, 5, made.folder / "resumed");
  const Ended again = run_training(made, {.ranks = 2, .output = resumed, .changes = pure});
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(tensor_differences(expected, resumed), IsEmpty());
}

TEST(PureBf16, ResumesFromWeightsThatWereNotExported) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  std::vector<std::string> sharded = pure;
  sharded.emplace_back("deepspeed.zero_optimization.stage=3");
  sharded.emplace_back(
      "deepspeed.zero_optimization.stage3_gather_16bit_weights_on_model_save=false");
  const fs::path expected = made.folder / "whole";
  const fs::path kept = made.folder / "kept";
  ASSERT_EQ(run_training(made, {.output = expected, .changes = pure}).exit_code, 0);
  const Ended ended = run_training(made, {.output = kept, .changes = sharded});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  ASSERT_FALSE(fs::exists(kept / "checkpoint-5/model.safetensors"));

  const fs::path resumed = with_checkpoint_of(kept, 5, made.folder / "resumed");
  const Ended again = run_training(made, {.output = resumed, .changes = pure});

  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(tensor_differences(expected, resumed), IsEmpty());
}

// Updates of 1e-5 are far below the spacing of most weights: rounding to nearest would lose them all.
TEST(PureBf16, LearnsAsTheRunWithMastersDoes) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  const std::vector<std::string> slow = {"fp16=false", "deepspeed=null", "max_steps=60",
                                         "learning_rate=1e-4"};
  const fs::path with_masters = made.folder / "masters";
  std::vector<std::string> ours = slow;
  ours.emplace_back("pure_bf16=true");
  std::vector<std::string> theirs = slow;
  theirs.emplace_back("bf16=true");
  const Ended pure_run = run_training(made, {.changes = ours});
  const Ended reference = run_training(made, {.output = with_masters, .changes = theirs});
  ASSERT_EQ(pure_run.exit_code, 0) << pure_run.output;
  ASSERT_EQ(reference.exit_code, 0) << reference.output;

  const auto found = steps(made.output);
  const auto expected = steps(with_masters);

  const double fall =
      expected.at(1).at("loss").get<double>() - expected.at(60).at("loss").get<double>();
  ASSERT_GT(fall, 0.2);
  double distance = 0;
  for (std::int64_t step = 51; step <= 60; ++step)
    distance +=
        found.at(step).at("loss").get<double>() - expected.at(step).at("loss").get<double>();
  EXPECT_LT(std::abs(distance / 10), 0.05 * fall);
}

}  // namespace
}  // namespace underkeel::test
