// A checkpoint goes on at other numbers of ranks and other splits of the same global batch.

#include <cmath>

#include <gmock/gmock.h>

#include "io/file.h"
#include "spec/run_config.h"
#include "support/engine.h"
#include "train/checkpoint_source.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;

/// Losses of steps 5 to 8 agree with the unbroken run's.
void expect_same_losses(const fs::path& unbroken, const fs::path& resumed, double relative) {
  const auto expected = steps(unbroken);
  const auto ours = steps(resumed);
  ASSERT_EQ(ours.size(), 4u);
  for (std::int64_t step = 5; step <= 8; ++step) {
    ASSERT_TRUE(ours.contains(step));
    const double loss = expected.at(step)["loss"];
    EXPECT_NEAR(ours.at(step)["loss"], loss, relative * loss) << "step " << step;
    EXPECT_EQ(ours.at(step)["lr"], expected.at(step)["lr"]) << "step " << step;
  }
}

class OtherRankCount : public testing::TestWithParam<int> {};

TEST_P(OtherRankCount, GoesOnWithTheLossesOfTheUnbrokenRun) {
  for (const std::string type : {"float32", ""}) {
    const RunnableCase made =
        complete_case("other_rank_counts", {.zero_stage = GetParam(), .type = type});
    const fs::path unbroken = made.folder / "unbroken";
    const Ended whole = run_training(
        made, {.ranks = 4, .output = unbroken, .changes = {"gradient_accumulation_steps=3"}});
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    const std::vector<std::pair<int, int>> splits = {{6, 2}, {2, 6}, {1, 12}};
    for (const auto& [ranks, accumulation] : splits) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + type);
      const fs::path output =
          with_checkpoint_of(unbroken, 4, made.folder / ("ranks-" + std::to_string(ranks)));

      const Ended ended = run_training(
          made, {.ranks = ranks,
                 .output = output,
                 .changes = {"gradient_accumulation_steps=" + std::to_string(accumulation)}});

      ASSERT_EQ(ended.exit_code, 0) << ended.output;
      expect_same_losses(unbroken, output, type.empty() ? 1e-3 : 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AtStage, OtherRankCount, testing::Values(1, 2, 3));

TEST(OtherSplit, TakesTheSameSamplesAtTheSameLearningRates) {
  // Every sample is a text of its own: the losses of the updates tell which samples were in them.
  const RunnableCase narrow =
      complete_case("other_batch_split", {.run_file = "train_narrow.yaml", .type = "float32"});
  const RunnableCase wide =
      complete_case("other_batch_split", {.run_file = "train_wide.yaml", .type = "float32"});
  const Ended whole = run_training(narrow);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  ASSERT_EQ(steps(narrow.output).size(), 8u);
  with_checkpoint_of(narrow.output, 4, wide.output);

  const Ended ended = run_training(wide);

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  expect_same_losses(narrow.output, wide.output, 1e-6);
}

class ResumeWithoutState : public testing::Test {
 protected:
  void SetUp() override {
    const Ended whole = run_training(made_, {.output = made_.folder / "unbroken"});
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    with_checkpoint_of(made_.folder / "unbroken", 4, made_.output);
    for (const std::string& name : entries(made_.output / "checkpoint-4", "exp_avg"))
      fs::remove(made_.output / "checkpoint-4" / name);
  }
  RunnableCase made_ = complete_case("resume_without_state", {.zero_stage = 2});
  std::string from_ = "resume_from_checkpoint=" + (made_.output / "checkpoint-4").string();
};

TEST_F(ResumeWithoutState, IsRefusedByNameWithTheOption) {
  const Ended ended = run_training(made_, {.changes = {from_}});

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("exp_avg"));
  EXPECT_THAT(ended.output, HasSubstr("underkeel.resume_weights_only=true"));
}

TEST_F(ResumeWithoutState, GoesOnWithWeightsAloneWhenAsked) {
  const Ended ended =
      run_training(made_, {.changes = {from_, "underkeel.resume_weights_only=true"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const auto ours = steps(made_.output);
  const auto whole = steps(made_.folder / "unbroken");
  EXPECT_EQ(ours.begin()->first, 5);
  EXPECT_EQ(ours.at(5)["lr"], whole.at(5)["lr"]);
  EXPECT_EQ(ours.at(5)["loss"], whole.at(5)["loss"]) << "the weights are those saved";
  EXPECT_NE(ours.at(7)["loss"], whole.at(7)["loss"]) << "the moments are not";
  bool is_told = false;
  for (const auto& line : json_lines(made_.output / "events.jsonl"))
    is_told |= line.dump().find("moments start from zero") != std::string::npos;
  EXPECT_TRUE(is_told);
}

class ResumeOfAChangedRun : public testing::Test {
 protected:
  void SetUp() override {
    const Ended whole = run_training(made_, {.changes = {"max_steps=4"}});
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
  }
  Ended resume(std::vector<std::string> changes = {}) {
    return run_training(made_, {.changes = std::move(changes)});
  }
  void expect_refusal(const Ended& ended, std::string_view reason) {
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(std::string(reason)));
    EXPECT_THAT(ended.output, HasSubstr("model_name_or_path: "));
    EXPECT_EQ(last_step(made_.output), 4);
  }
  RunnableCase made_ = complete_case("resume_without_state", {.zero_stage = 2});
};

TEST_F(ResumeOfAChangedRun, GoesOnWhenNothingChanged) {
  const Ended ended = resume();

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(last_step(made_.output), 8);
}

TEST_F(ResumeOfAChangedRun, IsRefusedWithMoreOrOtherSamples) {
  const fs::path data = made_.data / "sums.jsonl";
  const std::string before = read_text(data);
  write_text(data, before + before.substr(0, before.find('\n') + 1));
  expect_refusal(resume(), "training samples, now there are");

  std::string other = before;
  other[other.find_first_of("123456789")] = '0';
  write_text(data, other);
  expect_refusal(resume(), "training samples are not the same ones");

  write_text(data, before);
  EXPECT_EQ(resume().exit_code, 0);
}

TEST_F(ResumeOfAChangedRun, IsRefusedWithAnotherOrderNamingTheValue) {
  expect_refusal(resume({"seed=7"}), "seed was 42, is 7");
  expect_refusal(resume({"cutoff_len=8"}), "cutoff_len was 256, is 8");
  expect_refusal(resume({"val_size=4"}), "val_size was");
}

TEST_F(ResumeOfAChangedRun, IsRefusedWithAnotherModelOfTheSameShapes) {
  const fs::path config = made_.model / "config.json";
  std::string text = read_text(config);
  auto json = nlohmann::json::parse(text);
  json["rms_norm_eps"] = 1e-3;
  write_text(config, json.dump());

  expect_refusal(resume(), "rms_norm_eps was");
}

TEST_F(ResumeOfAChangedRun, GoesOnWhenOnlyWhatMakesNoSamplesChanged) {
  const Ended ended =
      resume({"preprocessing_num_workers=4", "preprocessing_batch_size=100", "cutoff_len=300",
              "underkeel.packing_attention=shared", "save_steps=2"});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(last_step(made_.output), 8);
}

TEST_F(ResumeOfAChangedRun, IsRefusedWhenNoCheckpointIsWholeInsteadOfBeginningAnew) {
  fs::remove(made_.output / "checkpoint-4" / "config.json");
  fs::remove(made_.output / "model.safetensors");

  const Ended ended = resume();

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("none of them is whole"));
  EXPECT_THAT(ended.output, HasSubstr("config.json"));
  EXPECT_TRUE(fs::exists(made_.output / "checkpoint-4"));
  EXPECT_EQ(resume({"overwrite_output_dir=true"}).exit_code, 0);
}

TEST_F(ResumeOfAChangedRun, SaysWhereCheckpointsAreWhenTheOutputFolderIsNamed) {
  const Ended ended = resume({"resume_from_checkpoint=" + made_.output.string()});

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("checkpoint-4"));
}

TEST_F(ResumeOfAChangedRun, SaysWhichValuesOfTheCurveChanged) {
  const Ended ended = resume({"learning_rate=2.0e-4"});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("learning_rate was 0.0001, is 0.0002"));
}

TEST_F(ResumeOfAChangedRun, IsRefusedWhenTheManifestContradictsItself) {
  const fs::path manifest = made_.output / "checkpoint-4" / "manifest.json";
  auto json = nlohmann::json::parse(read_text(manifest));
  json["step"] = 3;
  write_text(manifest, json.dump());

  const Ended ended = resume();

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_EQ(last_step(made_.output), 4);
}

TEST(ResumeOnMoreRanks, ReadsEachRanksShareAndNoMore) {
  const RunnableCase made = complete_case("resume_on_more_ranks", {.zero_stage = 2});
  const Ended ended = run_training(made, {.ranks = 2, .changes = {"max_steps=4"}});
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const spec::RunConfig run = value_of(spec::read_run_file(made.run_file, {}));
  const spec::ModelSpec model = value_of(spec::read_model_config(made.model));
  const plan::Plan plan = planner::make_plan(planner::request_of(model, run, 4));
  std::vector<std::int64_t> read(4), own(4);

  run_ranks(plan, {}, [&](Rank& rank) {
    io::FileSystem files;
    train::CheckpointSource source(files,
                                   *value_of(io::newest_complete(files, made.output.string())));
    exec::Inputs inputs;
    inputs.source = &source;
    value_of(rank.executor.run(plan::SegmentKind::resume, inputs));
    const auto i = static_cast<std::size_t>(rank.rank);
    read[i] = source.bytes_read();
    for (const plan::Unit& unit : plan.schedule.units)
      own[i] += 12 * shard_of(unit.element_count, 4, rank.rank).size();
  });

  EXPECT_EQ(read, own);
  EXPECT_EQ(read[0] + read[1] + read[2] + read[3], 1'085'184) << "12 bytes a parameter, each once";
}

}  // namespace
}  // namespace underkeel::test
