#include "support/case.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/safetensors.h"
#include "spec/model_spec.h"
#include "support/model_folder.h"
#include "support/tensor_files.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Case, BecomesAModelFolderWithSeededWeightsInTheDescribedType) {
  const auto made = complete_case("save_between_epochs");

  const auto model = value_of(spec::read_model_config(made.model));
  const auto weights = read_tensors(made.model / "model.safetensors");

  EXPECT_EQ(spec::parameter_count(model), 90'432);
  EXPECT_EQ(weights.at("model.embed_tokens.weight").type, DType::bf16);
  EXPECT_FALSE(weights.contains("lm_head.weight"));
  for (const float value : weights.at("model.norm.weight").as_f32()) EXPECT_EQ(value, 1.0f);
  double sum_squares = 0;
  const auto embedding = weights.at("model.embed_tokens.weight").as_f32();
  for (const float value : embedding) sum_squares += double{value} * double{value};
  EXPECT_NEAR(std::sqrt(sum_squares / static_cast<double>(embedding.size())), 0.02, 0.0005);
}

TEST(Case, TheSameSeedGivesTheSameWeightsAndAnotherGivesOthers) {
  const auto first = complete_case("tied_head");
  const auto second = complete_case("tied_head");
  const auto third = complete_case("tied_head", {.seed = 2});

  const auto text = [](const RunnableCase& made) {
    return read_text(made.model / "model.safetensors");
  };

  EXPECT_EQ(text(first), text(second));
  EXPECT_NE(text(first), text(third));
}

TEST(Case, AddsTheKeysThatDependOnWhereThingsLie) {
  const auto made = complete_case("save_between_epochs", {.zero_stage = 3});

  const auto run = read_text(made.run_file);

  EXPECT_THAT(run, HasSubstr("stage: pt"));
  EXPECT_THAT(run, HasSubstr("save_steps: 2"));
  EXPECT_THAT(run, HasSubstr("model_name_or_path: " + made.model.string()));
  EXPECT_THAT(run, HasSubstr("dataset_dir: " + made.data.string()));
  EXPECT_THAT(run, HasSubstr("output_dir: " + made.output.string()));
  EXPECT_THAT(run, HasSubstr("deepspeed: " + (made.folder / "ds_config.json").string()));
  EXPECT_THAT(read_text(made.folder / "ds_config.json"), HasSubstr("\"stage\": 3"));
  EXPECT_FALSE(std::filesystem::exists(made.output));
}

TEST(Case, CanBeTurnedIntoAnF32Run) {
  const auto made = complete_case("tied_head", {.type = "float32"});

  EXPECT_THAT(read_text(made.run_file), Not(HasSubstr("bf16")));
  EXPECT_EQ(read_tensors(made.model / "model.safetensors").at("model.norm.weight").type,
            DType::f32);
}

TEST(Case, MakesADataSetToShapeWhereNoneIsThere) {
  const auto made = complete_case("activations_above_state", {.with_weights = false});

  const auto data = read_text(made.data / "long.jsonl");

  EXPECT_EQ(std::ranges::count(data, '\n'), 64);
  EXPECT_EQ(data.size(), 64 * (300 + std::string_view("{\"text\":\"\"}\n").size()));
  EXPECT_THAT(read_text(made.data / "dataset_info.json"), HasSubstr("long.jsonl"));
}

TEST(Case, EveryCaseOfTheFolderCanBeCompleted) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(UNDERKEEL_SOURCE_DIR "/tests/cases")) {
    if (!entry.is_directory()) continue;
    const auto name = entry.path().filename().string();
    SCOPED_TRACE(name);
    for (const auto* run_file : {"train.yaml", "train_narrow.yaml", "train_wide.yaml"}) {
      if (!std::filesystem::exists(entry.path() / run_file)) continue;
      const auto made = complete_case(name, {.run_file = run_file, .with_weights = false});
      EXPECT_GT(spec::parameter_count(value_of(spec::read_model_config(made.model))), 0);
      ++count;
    }
  }
  EXPECT_GE(count, 29);  // 28 folders, one with two run files
}

}  // namespace
}  // namespace underkeel::test
