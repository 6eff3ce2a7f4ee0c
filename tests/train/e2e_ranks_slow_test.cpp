// Processes that were not given the same run are told apart before the first step.

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;

class DifferentRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!UNDERKEEL_HAS_MPI) GTEST_SKIP() << "built without MPI";
  }
  /// Rank 1 gets `change` behind the words that rank 0 has.
  Ended run(const std::string& change) {
    const std::vector<std::string> rank_0 = {underkeel_binary(),      "train",
                                             made_.run_file.string(), "underkeel.threads=1",
                                             "max_steps=2",           "overwrite_output_dir=true"};
    std::vector<std::string> words = {
        "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "1"};
    words.insert(words.end(), rank_0.begin(), rank_0.end());
    words.insert(words.end(), {":", "-n", "1"});
    words.insert(words.end(), rank_0.begin(), rank_0.end());
    words.push_back(change);
    return run_program(words, {}, 60);
  }
  void expect_refusal(const std::string& change, const std::string& reason) {
    const Ended ended = run(change);
    EXPECT_EQ(ended.exit_code, 2) << change << "\n" << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("rank 1 was given another run than rank 0"));
    EXPECT_THAT(ended.output, HasSubstr(reason));
    EXPECT_EQ(last_step(made_.output), 0);
  }
  RunnableCase made_ = complete_case("resume_without_state", {.zero_stage = 2});
};

TEST_F(DifferentRanks, AreNamedWithTheValueThatDiffers) {
  expect_refusal("learning_rate=2.0e-4", "learning_rate (0.0001 on rank 0, 0.0002 there)");
  expect_refusal("weight_decay=0.1", "weight_decay");
  expect_refusal("gradient_accumulation_steps=1", "gradient_accumulation_steps");
  expect_refusal("max_steps=3", "max_steps");
}

TEST_F(DifferentRanks, AreNamedWithOtherDataOrWeightsAtTheirPlace) {
  const fs::path data = made_.folder / "other_data";
  fs::copy(made_.data, data, fs::copy_options::recursive);
  std::string text = read_text(data / "sums.jsonl");
  text[text.find_first_of("123456789")] = '0';
  write_text(data / "sums.jsonl", text);
  expect_refusal("dataset_dir=" + data.string(), "training samples");

  const RunnableCase other = complete_case("resume_without_state", {.zero_stage = 2, .seed = 2});
  expect_refusal("model_name_or_path=" + other.model.string(), "weights of the model");
}

TEST_F(DifferentRanks, MayHaveTheSameFilesAtOtherPlaces) {
  const fs::path data = made_.folder / "copied_data";
  const fs::path model = made_.folder / "copied_model";
  fs::copy(made_.data, data, fs::copy_options::recursive);
  fs::copy(made_.model, model, fs::copy_options::recursive);

  EXPECT_EQ(run("dataset_dir=" + data.string()).exit_code, 0);
  EXPECT_EQ(run("model_name_or_path=" + model.string()).exit_code, 0);
}

}  // namespace
}  // namespace underkeel::test
