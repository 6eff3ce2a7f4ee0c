#include "support/case.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "support/model_folder.h"
#include "support/places.h"
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

TEST(Case, HasATokenizerWhoseIdsAreBytes) {
  const auto made = complete_case("tied_head", {.with_weights = false});

  const auto tokenizer = value_of(data::Tokenizer::load(made.model));
  const std::string text = "The tide's 12 \xC3\xA9\n\n  x";
  const auto ids = value_of(tokenizer.encode(text));

  ASSERT_EQ(ids.size(), text.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(ids[i], static_cast<unsigned char>(text[i])) << i;
}

TEST(Case, EveryCaseOfTheFolderIsAcceptedOnceCompleted) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::in_source("tests/cases"))) {
    if (!entry.is_directory()) continue;
    const auto name = entry.path().filename().string();
    for (const auto* run_file : {"train.yaml", "train_narrow.yaml", "train_wide.yaml"}) {
      if (!std::filesystem::exists(entry.path() / run_file)) continue;
      SCOPED_TRACE(name + "/" + run_file);
      const auto made =
          complete_case(name, {.run_file = run_file, .with_weights = false, .zero_stage = 2});

      const auto run = value_of(spec::read_run_file(made.run_file, {}));

      EXPECT_EQ(run.zero.stage, 2);
      EXPECT_EQ(run.precision,
                name == "scale_falls_to_least" ? spec::Precision::f16 : spec::Precision::bf16);
      EXPECT_GT(spec::parameter_count(value_of(spec::read_model_config(run.model))), 0);
      if (made.hardware_file) value_of(spec::read_hardware_file(*made.hardware_file));
      ++count;
    }
  }
  EXPECT_EQ(count, 36);  // 35 folders, one with two run files
}

TEST(Examples, EveryRunFileIsAccepted) {
  std::filesystem::current_path(in_source(""));

  for (const auto* file : {"examples/tiny/pretrain.yaml", "examples/tiny/finetune.yaml",
                           "examples/own_text/train.yaml", "examples/instructions/train.yaml"}) {
    SCOPED_TRACE(file);
    const auto run = value_of(spec::read_run_file(file, {}));
    EXPECT_GT(spec::parameter_count(value_of(spec::read_model_config(run.model))), 900'000);
    EXPECT_EQ(value_of(data::Tokenizer::load(run.model)).vocabulary_size(), 1536);
  }
}

}  // namespace
}  // namespace underkeel::test
