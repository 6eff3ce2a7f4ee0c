// fp16 with a loss scale: overflows are passed over and counted, the scale follows them, and a run that
// can no longer be finite ends with a code of its own.

#include <gmock/gmock.h>

#include "support/tensor_files.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* scale_case = "scale_falls_to_least";

/// From step 20 on the output of layer 1 is a million times too large on rank 1.
const std::map<std::string, std::string> runs_away = {
    {"UNDERKEEL_FAULT", "rank=1 phase=forward step=20 layer=1 doublings=20"}};

std::int64_t skipped(const std::map<std::int64_t, nlohmann::json>& found) {
  return std::count_if(found.begin(), found.end(),
                       [](const auto& step) { return step.second.at("skipped") == true; });
}

std::vector<std::string> notices(const fs::path& output) {
  std::vector<std::string> texts;
  for (const auto& line : json_lines(output / "events.jsonl"))
    if (line.value("event", "") == "notice") texts.push_back(line["text"]);
  return texts;
}

TEST(Fp16, EndsAtTheEighteenthOverflowWithTheWeightsOfTheLastUpdate) {
  const RunnableCase made = complete_case(scale_case);

  const Ended ended = run_training(
      made,
      {.ranks = 2, .changes = {"save_strategy=steps", "save_steps=19"}, .environment = runs_away});

  EXPECT_EQ(ended.exit_code, 4) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("not both finite"));
  EXPECT_THAT(ended.output, HasSubstr("fp16 overflows at the least loss scale, 1, after 17 steps"));
  EXPECT_THAT(ended.output, HasSubstr("weights are as step 19 left them"));
  EXPECT_THAT(ended.output, HasSubstr("step 37 of 60"));
  const auto found = steps(made.output);
  ASSERT_EQ(found.size(), 36u);
  EXPECT_EQ(skipped(found), 17);
  EXPECT_EQ(found.at(20).at("loss_scale"), 65536.0);
  EXPECT_EQ(found.at(21).at("loss_scale"), 65536.0);
  EXPECT_EQ(found.at(22).at("loss_scale"), 32768.0);
  EXPECT_EQ(found.at(36).at("loss_scale"), 2.0);
  // The schedule stands still: the rate of the step that is tried again and again.
  for (std::int64_t step = 21; step <= 36; ++step)
    EXPECT_EQ(found.at(step).at("lr"), found.at(20).at("lr")) << step;
  const auto told = notices(made.output);
  EXPECT_THAT(told, testing::Contains(
                        testing::AllOf(HasSubstr("step 20 overflows at loss scale 65536"),
                                       HasSubstr("on rank "), HasSubstr("the first of them "))));
  EXPECT_THAT(told, testing::Contains(testing::AllOf(HasSubstr("3 steps in a row overflow"),
                                                     HasSubstr("bf16: true"))));
  EXPECT_EQ(complete_steps(made.output), (std::vector<std::int64_t>{36, 19}));
  EXPECT_THAT(tensor_differences(made.output / "checkpoint-19", made.output / "checkpoint-36"),
              IsEmpty());
}

/// A first scale far too high: the first steps overflow, then it is found.
const std::vector<std::string> starts_high = {"max_steps=14", "save_strategy=steps", "save_steps=5",
                                              "deepspeed.fp16.initial_scale_power=26",
                                              "deepspeed.fp16.loss_scale_window=2"};

TEST(Fp16, HasTheSameBitsAtEveryStageAndAfterAResumeAmongOverflows) {
  const RunnableCase made = complete_case(scale_case);
  const fs::path expected = made.folder / "stage2";
  const Ended ended = run_training(made, {.ranks = 2, .output = expected, .changes = starts_high});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("without an update, as gradients were not finite"));
  const auto unbroken = steps(expected);
  ASSERT_EQ(unbroken.size(), 14u);
  ASSERT_GE(skipped(unbroken), 6);
  ASSERT_LT(skipped(unbroken), 14);
  EXPECT_EQ(unbroken.at(5).at("skipped"), true);

  for (const int stage : {0, 1, 3}) {
    SCOPED_TRACE(stage);
    const fs::path output = made.folder / ("stage" + std::to_string(stage));
    std::vector<std::string> changes = starts_high;
    changes.push_back("deepspeed.zero_optimization.stage=" + std::to_string(stage));

    const Ended other = run_training(made, {.ranks = 2, .output = output, .changes = changes});

    ASSERT_EQ(other.exit_code, 0) << other.output;
    EXPECT_THAT(tensor_differences(expected, output), IsEmpty());
    EXPECT_THAT(tensor_differences(expected / "checkpoint-10", output / "checkpoint-10"),
                IsEmpty());
  }

  const fs::path resumed = with_checkpoint_of(expected, 5, made.folder / "resumed");
  const Ended again = run_training(made, {.ranks = 2, .output = resumed, .changes = starts_high});
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(tensor_differences(expected, resumed), IsEmpty());
  const auto later = steps(resumed);
  ASSERT_EQ(later.begin()->first, 6);
  for (const auto& [step, event] : later)
    for (const char* what : {"loss", "grad_norm", "lr", "loss_scale", "skipped"})
      EXPECT_EQ(event.at(what), unbroken.at(step).at(what)) << what << " " << step;
}

TEST(Fp16, FollowsTheF32Run) {
  const RunnableCase made = complete_case(scale_case);
  const std::vector<std::string> short_run = {"max_steps=20", "learning_rate=1e-3"};
  const fs::path wide = made.folder / "wide";
  std::vector<std::string> in_f32 = short_run;
  in_f32.emplace_back("fp16=false");

  const Ended ours = run_training(made, {.changes = short_run});
  const Ended reference = run_training(made, {.output = wide, .changes = in_f32});

  ASSERT_EQ(ours.exit_code, 0) << ours.output;
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  const auto expected = steps(wide);
  ASSERT_LT(expected.at(20).at("loss"), 0.9 * expected.at(1).at("loss").get<double>());
  for (const auto& [step, event] : steps(made.output)) {
    EXPECT_EQ(event.at("skipped"), false) << step;
    for (const char* what : {"loss", "grad_norm"}) {
      const double value = expected.at(step).at(what);
      EXPECT_NEAR(event.at(what).get<double>(), value, 1e-2 * value) << what << " " << step;
    }
  }
}

TEST(Fp16, WithoutADeepspeedConfigTakesItsDefaultsAndSavesF32) {
  const RunnableCase made = complete_case(scale_case);

  const Ended ended = run_training(made, {.changes = {"max_steps=2", "deepspeed=null"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("DeepSpeed's loss-scale rule"));
  EXPECT_EQ(steps(made.output).at(1).at("loss_scale"), 65536.0);
  EXPECT_EQ(read_tensors(made.output / "model.safetensors").begin()->second.type, DType::f32);
}

TEST(Fp16, RefusesAWeightThatItCannotHold) {
  const RunnableCase made = complete_case(scale_case);
  const fs::path weights = made.model / "model.safetensors";
  StoredTensors tensors = read_tensors(weights);
  for (auto& [name, tensor] : tensors) {
    std::vector<float> values = tensor.as_f32();
    if (name == "model.layers.1.mlp.down_proj.weight") values[3 * 128 + 5] = 70'144;
    tensor = stored(DType::bf16, tensor.shape, values);
  }
  write_tensors(weights, tensors);
  std::string config = read_text(made.model / "config.json");
  config.replace(config.find("float16"), 7, "bfloat16");
  write_text(made.model / "config.json", config);

  const Ended ended = run_training(made, {.ranks = 2});

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the weights are stored in bf16 and train in fp16"));
  EXPECT_THAT(ended.output, HasSubstr("the weight 70144 at [3, 5] of "
                                      "model.layers.1.mlp.down_proj.weight is beyond what fp16 "
                                      "holds, 65,504"));
}

}  // namespace
}  // namespace underkeel::test
