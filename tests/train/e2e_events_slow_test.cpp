// What a run does around its steps: the best model, early stopping, values in files, trackers, and
// numbers that are no longer finite.

#include <fstream>

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

nlohmann::json json_of(const fs::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

const std::vector<std::string> with_best = {
    "max_steps=6", "eval_strategy=steps",         "eval_steps=1",      "save_steps=1",
    "val_size=8",  "load_best_model_at_end=true", "save_total_limit=1"};

TEST(BestModel, IsKeptBeyondTheLimitAndIsTheModelAtTheEnd) {
  // A rate at which the loss soon rises: the best model is not the last one.
  const RunnableCase made = complete_case("accumulation_is_the_batch", {.type = "float32"});
  std::vector<std::string> changes = with_best;
  changes.insert(changes.end(), {"learning_rate=0.5", "lr_scheduler_type=constant"});

  for (const int ranks : {1, 2}) {
    const fs::path output = made.folder / ("best-" + std::to_string(ranks));
    const Ended ended = run_training(made, {.ranks = ranks, .output = output, .changes = changes});

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    const auto state = json_of(output / "trainer_state.json");
    const std::int64_t best = state["best_global_step"];
    ASSERT_LT(best, 6) << state.dump(1);
    EXPECT_THAT(complete_steps(output), ElementsAre(6, best));
    EXPECT_EQ(state["best_model_checkpoint"],
              (output / ("checkpoint-" + std::to_string(best))).string());
    EXPECT_EQ(read_text(output / "model.safetensors"),
              read_text(output / ("checkpoint-" + std::to_string(best)) / "model.safetensors"));
    // What is evaluated after the training is the best model.
    EXPECT_DOUBLE_EQ(json_of(output / "eval_results.json")["eval_loss"].get<double>(),
                     state["best_metric"].get<double>());
  }
}

TEST(EarlyStopping, EndsAfterEvaluationsThatAreNoBetterAndCountsOverAResume) {
  const RunnableCase made = complete_case("accumulation_is_the_batch", {.type = "float32"});
  std::vector<std::string> changes = with_best;
  changes.insert(changes.end(), {"learning_rate=0.5", "lr_scheduler_type=constant", "max_steps=40",
                                 "early_stopping_steps=3", "save_total_limit=40"});

  const Ended whole = run_training(made, {.output = made.folder / "whole", .changes = changes});

  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_THAT(whole.output, HasSubstr("early stopping after step"));
  const auto state = json_of(made.folder / "whole/trainer_state.json");
  const std::int64_t last = state["global_step"];
  EXPECT_EQ(last, state["best_global_step"].get<std::int64_t>() + 3);
  // Killed between two evaluations that are no better, it still ends at the same step.
  const fs::path resumed =
      with_checkpoint_of(made.folder / "whole", last - 1, made.folder / "resumed");
  with_checkpoint_of(made.folder / "whole", state["best_global_step"], resumed);
  const Ended again = run_training(made, {.output = resumed, .changes = changes});
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(json_of(resumed / "trainer_state.json")["global_step"], last);
}

TEST(RunFiles, HoldEveryValueAndTensorboardsEvents) {
  const RunnableCase made = complete_case("accumulation_is_the_batch", {.type = "float32"});

  const Ended ended =
      run_training(made, {.changes = {"report_to=tensorboard", "logging_steps=1", "save_steps=2"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("training_args.json"));
  const auto values = json_of(made.output / "training_args.json");
  EXPECT_EQ(values["logging_steps"]["value"], 1);
  EXPECT_EQ(values["logging_steps"]["source"], "command line");
  EXPECT_EQ(values["adam_beta1"]["value"], 0.9);
  EXPECT_EQ(values["adam_beta1"]["source"], "default");
  EXPECT_EQ(values["total steps"]["source"], "derived");
  EXPECT_TRUE(fs::exists(made.output / "checkpoint-2/training_args.json"));
  const auto runs = entries(made.output / "runs");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(entries(made.output / "runs" / runs[0], "events.out.tfevents.").size(), 1u);
}

TEST(NotFinite, SavesTheLastSoundStateNamesTheTensorsAndEndsWithACodeOfItsOwn) {
  const RunnableCase made = complete_case("accumulation_is_the_batch", {.type = "float32"});

  for (const int ranks : {1, 2}) {
    const fs::path output = made.folder / ("broken-" + std::to_string(ranks));
    const Ended ended =
        run_training(made, {.ranks = ranks,
                            .output = output,
                            .changes = {"learning_rate=1e6", "weight_decay=1e6", "max_steps=8",
                                        "lr_scheduler_type=constant", "save_steps=50"}});

    EXPECT_EQ(ended.exit_code, 4) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("are not both finite"));
    EXPECT_THAT(ended.output, HasSubstr("the first of them model.embed_tokens.weight"));
    EXPECT_THAT(complete_steps(output), ElementsAre(last_step(output)));
    EXPECT_THAT(damage(output), IsEmpty());
  }
}

// Checkpoints that hold sharded state and no weights, by the config's wish: said at the start and the end.
TEST(GatherFlag, SaysWhatTheFoldersHoldAndRemindsOfTheExport) {
  const RunnableCase made = complete_case("accumulation_is_the_batch", {.zero_stage = 3});

  const Ended ended = run_training(
      made,
      {.ranks = 2,
       .changes = {"deepspeed.zero_optimization.stage3_gather_16bit_weights_on_model_save=false"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("checkpoints hold sharded, resumable state and no weights "
                                      "file"));
  EXPECT_THAT(ended.output, HasSubstr("no weights file was written"));
  EXPECT_FALSE(fs::exists(made.output / "model.safetensors"));
  EXPECT_FALSE(fs::exists(made.output / "checkpoint-3/model.safetensors"));
  EXPECT_TRUE(fs::exists(made.output / "checkpoint-3/master.safetensors"));
}

TEST(Bf16WithoutDeepspeed, SavesTheF32MastersOnceAndResumesFromThem) {
  const RunnableCase made = complete_case("accumulation_is_the_batch");
  const std::vector<std::string> plain = {"bf16=true", "deepspeed=null", "save_steps=1"};

  const Ended ended = run_training(made, {.output = made.folder / "whole", .changes = plain});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("saved weights are f32, as there"));
  EXPECT_FALSE(fs::exists(made.folder / "whole/checkpoint-1/master.safetensors"));
  EXPECT_THAT(read_text(made.folder / "whole/model.safetensors").substr(0, 4096),
              HasSubstr("\"F32\""));
  EXPECT_EQ(json_of(made.folder / "whole/config.json")["torch_dtype"], "float32");
  const fs::path resumed = with_checkpoint_of(made.folder / "whole", 1, made.folder / "resumed");
  const Ended again = run_training(made, {.output = resumed, .changes = plain});
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(tensor_differences(made.folder / "whole", resumed), IsEmpty());
}

}  // namespace
}  // namespace underkeel::test
