// Stage sft from the run file to the saved folder: losses, packs, masks, ends.

#include <gmock/gmock.h>

#include "train/cut_of_a_batch.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void write_answers(const RunnableCase& made, const std::vector<std::array<std::string, 2>>& pairs) {
  std::string lines;
  for (const auto& [instruction, output] : pairs)
    lines +=
        nlohmann::json{{"instruction", instruction}, {"input", ""}, {"output", output}}.dump() +
        "\n";
  write_text(made.data / "answers.jsonl", lines);
}

double first_loss(const fs::path& output) {
  const auto found = steps(output);
  return found.empty() ? -1 : found.begin()->second["loss"].get<double>();
}

TEST(AnswersOfUnequalLength, GiveTheSameLossesAndNormsHoweverTheBatchIsCut) {
  expect_same_numbers_however_cut("answers_of_unequal_length");
}

TEST(WindowOfEmptyAnswers, ChangesNothingAndIsToldOnceAndInTheReport) {
  const RunnableCase made = complete_case("window_of_empty_answers", {.type = "float32"});

  const Ended ended = run_training(made, {.changes = {"save_strategy=steps", "save_steps=1"}});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  ASSERT_EQ(steps(made.output).size(), 3u);
  EXPECT_THAT(ended.output, HasSubstr("3 updates, the last from 2 micro-batches; 1 update without "
                                      "a trained token"));
  EXPECT_THAT(tensor_differences(made.output / "checkpoint-1", made.output / "checkpoint-2"),
              IsEmpty());
  EXPECT_FALSE(
      tensor_differences(made.output / "checkpoint-2", made.output / "checkpoint-3").empty());
}

TEST(WindowOfEmptyAnswers, LeavesTheOthersTheirMeans) {
  const RunnableCase made = complete_case("window_of_empty_answers", {.type = "float32"});
  const fs::path one_batch = made.folder / "one_batch";

  const Ended cut = run_training(made, {.changes = {"learning_rate=0"}});
  const Ended whole =
      run_training(made, {.output = one_batch,
                          .changes = {"learning_rate=0", "per_device_train_batch_size=4",
                                      "gradient_accumulation_steps=1"}});

  ASSERT_EQ(cut.exit_code, 0) << cut.output;
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const auto expected = steps(one_batch);
  for (const std::int64_t step : {1, 3})
    for (const char* what : {"loss", "grad_norm"}) {
      const double value = expected.at(step)[what];
      EXPECT_NEAR(steps(made.output).at(step)[what], value, 1e-5 * value) << what << " " << step;
    }
}

TEST(UnequalAnswers, GiveEveryRankTheSameNumberOfMicroBatches) {
  for (const auto& [drop_last, updates, told] :
       {std::tuple{"false", 3u, "24 places, so 3 samples come twice"},
        std::tuple{"true", 2u, "16 samples are used and 5 left out"}}) {
    const RunnableCase made = complete_case("unequal_answers", {.zero_stage = 2});

    const Ended ended = run_training(
        made, {.ranks = 4, .changes = {std::string("dataloader_drop_last=") + drop_last}});

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(steps(made.output).size(), updates);
    EXPECT_THAT(ended.output, HasSubstr(told));
  }
}

TEST(LongestComesLast, IsPlannedForAndEndsUnderThePlan) {
  const RunnableCase made = complete_case("longest_comes_last");

  const Ended ended = run_training(made);

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("longest 2,048"));
  const auto memory = nlohmann::json::parse(read_text(made.output / "memory.json"));
  const auto& device = memory["ranks"][0]["spaces"]["device"];
  EXPECT_NEAR(device["measured_peak_bytes"], device["planned_peak_bytes"], page_bytes);
  // A batch of average length would need far less: planning for it would have failed at the end.
  const Ended average = run_training(
      made, {.output = made.folder / "average", .changes = {"cutoff_len=41", "max_steps=1"}});
  ASSERT_EQ(average.exit_code, 0) << average.output;
  const auto less = nlohmann::json::parse(read_text(made.folder / "average" / "memory.json"));
  EXPECT_LT(less["ranks"][0]["spaces"]["device"]["planned_peak_bytes"].get<std::int64_t>() * 3,
            memory["ranks"][0]["spaces"]["device"]["measured_peak_bytes"].get<std::int64_t>());
}

nlohmann::json device_memory(const fs::path& output) {
  return nlohmann::json::parse(read_text(output / "memory.json"))["ranks"][0]["spaces"]["device"];
}

// Wherever the longest sample lies, in training or held out, the plan covers it, and no smaller budget is taken.
TEST(LongestComesLast, IsPlannedForWhereverItLies) {
  const RunnableCase made = complete_case("longest_comes_last");
  const std::string lines = read_text(made.data / "answers.jsonl");
  const std::size_t begin = lines.rfind('\n', lines.size() - 2) + 1;
  write_text(made.data / "short.jsonl", lines.substr(0, begin));
  write_text(made.data / "long.jsonl", lines.substr(begin));
  write_text(made.data / "dataset_info.json",
             R"({"short": {"file_name": "short.jsonl"}, "long": {"file_name": "long.jsonl"}})");
  struct Place {
    const char* name;
    std::vector<std::string> changes;
  };
  for (const Place& place : std::vector<Place>{
           {"second set", {"dataset=short,long"}},
           {"held out", {"dataset=short", "eval_dataset=long", "eval_strategy=epoch"}},
           {"held out in a batch",
            {"dataset=short", "eval_dataset=short,long", "eval_strategy=steps", "eval_steps=4"}},
           {"held out of one set", {"dataset=long,short", "val_size=0.5", "do_eval=true"}},
           {"packed", {"dataset=short,long", "packing=true", "per_device_train_batch_size=1"}}}) {
    SCOPED_TRACE(place.name);
    const fs::path output = made.folder / place.name;
    const Ended ended = run_training(made, {.output = output, .changes = place.changes});
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    const auto memory = device_memory(output);
    const std::int64_t planned = memory["planned_peak_bytes"];
    EXPECT_LE(memory["measured_peak_bytes"].get<std::int64_t>(), planned + 4096);

    const auto with_budget = [&](std::int64_t bytes) {
      return run_training(made, {.output = made.folder / "again",
                                 .changes = place.changes,
                                 .flags = {"--memory", "device=" + std::to_string(bytes) + "B"}});
    };
    EXPECT_EQ(with_budget(planned).exit_code, 0);
    fs::remove_all(made.folder / "again");
    const Ended refused = with_budget(planned - 1);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("the plan does not fit"));
  }
}

TEST(EndTokenOfTheTemplate, IsToldAndSavedInFrontOfTheModelsOwn) {
  const RunnableCase made = complete_case("end_token_of_template");

  const Ended ended = run_training(made);

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("template `chatml` ends an answer with `<|im_end|>` (id 2)"));
  const auto saved = nlohmann::json::parse(read_text(made.output / "generation_config.json"));
  EXPECT_THAT(saved["eos_token_id"], ElementsAre(2, 0));
  const auto tokenizer = nlohmann::json::parse(read_text(made.output / "tokenizer_config.json"));
  EXPECT_EQ(tokenizer["eos_token"], "<|im_end|>");
}

// What a run under a template has saved says which template that was.
TEST(EndTokenOfTheTemplate, IsKnownFromTheFolderThatARunHasSaved) {
  const RunnableCase made = complete_case("end_token_of_template");
  ASSERT_EQ(run_training(made, {.changes = {"max_steps=2"}}).exit_code, 0);
  const fs::path again = made.folder / "again";
  const std::vector<std::string> without = {"max_steps=2", "template=null",
                                            "model_name_or_path=" + made.output.string()};

  const Ended ended = run_training(made, {.output = again, .changes = without});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              HasSubstr("no template is named: `chatml`, which the tokenizer's chat template"));
  const fs::path named = made.folder / "named";
  std::vector<std::string> with = without;
  with[1] = "template=chatml";
  ASSERT_EQ(run_training(made, {.output = named, .changes = with}).exit_code, 0);
  EXPECT_EQ(tensor_differences(again, named), std::vector<std::string>());
}

// Another one is not guessed at.
TEST(EndTokenOfTheTemplate, IsAskedForWhereTheChatTemplateIsAnother) {
  const RunnableCase made = complete_case("end_token_of_template");
  write_text(made.model / "chat_template.jinja", "{{ '<|im_start|>' + messages[0]['content'] }}");

  const Ended ended = run_training(made, {.changes = {"template=null"}});

  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.output, HasSubstr("is none that a known template writes"));
  EXPECT_THAT(ended.output, HasSubstr("template: chatml looks like the model's own"));
}

TEST(PacksOfAnswers, GiveTheLossOfTheSamplesApart) {
  const RunnableCase made = complete_case("packs_of_answers", {.type = "float32"});
  const fs::path apart = made.folder / "apart";

  const Ended packed = run_training(made, {.changes = {"learning_rate=0"}});
  const Ended single = run_training(
      made, {.output = apart,
             .changes = {"learning_rate=0", "packing=false", "per_device_train_batch_size=12"}});

  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  ASSERT_EQ(single.exit_code, 0) << single.output;
  EXPECT_THAT(packed.output, HasSubstr("2 packs of 64 positions"));
  const double expected = first_loss(apart);
  EXPECT_NEAR(first_loss(made.output), expected, 1e-5 * expected);
}

// The first sample has no trained token, so that the loss is the second one's alone.
TEST(PacksOfAnswers, NeverLetASampleSeeTheOneBeforeUnlessAsked) {
  const RunnableCase made = complete_case("packs_of_answers", {.type = "float32"});
  const auto loss_after = [&](const std::string& first, const std::string& attention) {
    write_answers(made, {{first, ""}, {"deep", " is it"}});
    const fs::path output = made.folder / ("after-" + first + attention);
    const Ended ended =
        run_training(made, {.output = output,
                            .changes = {"learning_rate=0", "max_steps=1",
                                        "underkeel.packing_attention=" + attention}});
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return first_loss(output);
  };

  // The longer sample comes first in a pack.
  EXPECT_EQ(loss_after("fathoms under the keel", "separate"),
            loss_after("anchors on the shore !", "separate"));
  EXPECT_NE(loss_after("fathoms under the keel", "shared"),
            loss_after("anchors on the shore !", "shared"));
}

TEST(SftRun, ResumesWithTheSameBitsAndReadsItsTokensFromTheCache) {
  const RunnableCase made = complete_case("answers_of_unequal_length");
  const fs::path whole = made.folder / "whole";
  const std::vector<std::string> saves = {"save_strategy=steps", "save_steps=1"};

  const Ended unbroken = run_training(made, {.output = whole, .changes = saves});
  with_checkpoint_of(whole, 1, made.output);
  fs::copy(whole / "token_cache", made.output / "token_cache");
  const Ended resumed = run_training(made, {.changes = saves});

  ASSERT_EQ(unbroken.exit_code, 0) << unbroken.output;
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("tokens from the cache"));
  EXPECT_THAT(tensor_differences(whole / "checkpoint-3", made.output / "checkpoint-3"), IsEmpty());
}

TEST(SftRun, OfProcessesTokenisesOnce) {
  const RunnableCase made = complete_case("unequal_answers");

  const Ended ended = run_training(made, {.ranks = 2, .as = Ranks::processes});

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(entries(made.output / "token_cache", "answers-").size(), 1u);
}

}  // namespace
}  // namespace underkeel::test
