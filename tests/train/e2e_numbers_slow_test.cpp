// Accumulation and ranks are one batch, cut: the numbers do not depend on the cut.

#include <gmock/gmock.h>

#include "train/cut_of_a_batch.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::IsEmpty;

TEST(CutOfABatch, GivesTheSameLossesAndNormsHoweverItIsCut) {
  expect_same_numbers_however_cut("accumulation_is_the_batch");
}

TEST(WindowWithoutTargets, ChangesNothingAndIsToldOnce) {
  const RunnableCase made = complete_case("window_without_targets", {.type = "float32"});

  const Ended ended = run_training(made, {.changes = {"save_steps=1"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  ASSERT_EQ(steps(made.output).size(), 3u);
  EXPECT_THAT(tensor_differences(made.output / "checkpoint-1", made.output / "checkpoint-2"),
              IsEmpty());
  EXPECT_FALSE(
      tensor_differences(made.output / "checkpoint-2", made.output / "checkpoint-3").empty());
  int notices = 0;
  for (const auto& line : json_lines(made.output / "events.jsonl"))
    notices += line.dump().find("no trained token") != std::string::npos ? 1 : 0;
  EXPECT_EQ(notices, 1);
}

TEST(WindowWithoutTargets, LeavesTheOthersTheirMeans) {
  const RunnableCase made = complete_case("window_without_targets", {.type = "float32"});
  const std::vector<std::string> still = {"learning_rate=0"};
  const fs::path one_batch = made.folder / "one_batch";

  const Ended cut = run_training(made, {.changes = still});
  const Ended whole =
      run_training(made, {.output = one_batch,
                          .changes = {"learning_rate=0", "per_device_train_batch_size=4",
                                      "gradient_accumulation_steps=1"}});

  ASSERT_EQ(cut.exit_code, 0) << cut.output;
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const auto expected = steps(one_batch);
  const auto ours = steps(made.output);
  for (const std::int64_t step : {1, 3})
    for (const char* what : {"loss", "grad_norm"}) {
      const double value = expected.at(step)[what];
      EXPECT_NEAR(ours.at(step)[what], value, 1e-5 * value) << what << " " << step;
    }
}

TEST(UnequalBatches, GiveEveryRankTheSameNumberOfMicroBatches) {
  for (const auto& [drop_last, updates] : {std::pair{"false", 3u}, std::pair{"true", 2u}}) {
    const RunnableCase made = complete_case("unequal_batches", {.zero_stage = 2});

    const Ended ended = run_training(
        made, {.ranks = 4, .changes = {std::string("dataloader_drop_last=") + drop_last}});

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(steps(made.output).size(), updates);
  }
}

}  // namespace
}  // namespace underkeel::test
