#include "train/inspect.h"

#include <filesystem>
#include <iterator>
#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "apps/made_checkpoint.h"
#include "support/temporary_folder.h"
#include "support/tensor_files.h"
#include "support/text_files.h"

namespace underkeel::train {
namespace {

using test::value_of;
using testing::HasSubstr;

class Inspect : public testing::Test {
 protected:
  Inspection look(const std::filesystem::path& path, bool verify = true) {
    return value_of(inspect(files_, path.string(), verify));
  }
  std::filesystem::path model_folder(std::string_view json) {
    std::filesystem::create_directories(folder_ / "model");
    test::write_model_folder(folder_ / "model", json);
    return folder_ / "model";
  }
  static std::string untied() {
    auto json = nlohmann::json::parse(test::tiny_model_json());
    json["tie_word_embeddings"] = false;
    return json.dump();
  }

  io::FileSystem files_;
  test::TemporaryFolder folder_;
};

TEST_F(Inspect, FindsNothingWrongWithASoundFolder) {
  const Inspection seen = look(model_folder(test::tiny_model_json()));

  EXPECT_TRUE(seen.sound());
  EXPECT_EQ(seen.kind, PathKind::model_folder);
  EXPECT_EQ(seen.totals->parameters_found, 90'432);
  EXPECT_THAT(to_text(seen), HasSubstr("verified: 90,432 parameters expected, 90,432 found"));
}

TEST_F(Inspect, NamesTheFirstPlaceholderOfAFolderThatHoldsNoneElse) {
  const auto folder = model_folder(untied());
  auto tensors = test::read_tensors(folder / "model.safetensors");
  for (auto& [name, tensor] : tensors) tensor = test::stored(DType::bf16, {0}, {});
  test::write_tensors(folder / "model.safetensors", tensors);

  const Inspection seen = look(folder);

  ASSERT_EQ(seen.problems.size(), 1u);
  EXPECT_THAT(seen.problems[0].what, HasSubstr("expected [256, 64], found [0]"));
  EXPECT_THAT(seen.problems[0].what, HasSubstr("106,816 parameters expected, 0 found"));
  EXPECT_THAT(seen.problems[0].where, HasSubstr("tensor model.embed_tokens.weight"));
}

TEST_F(Inspect, WarnsOfATiedHeadThatIsThereTwiceAndFailsWhenTheTwoDiffer) {
  const auto folder = model_folder(test::tiny_model_json());
  auto tensors = test::read_tensors(folder / "model.safetensors");
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  test::write_tensors(folder / "model.safetensors", tensors);
  const Inspection equal = look(folder);
  tensors["lm_head.weight"].bytes[8] ^= std::byte{1};
  test::write_tensors(folder / "model.safetensors", tensors);
  const Inspection different = look(folder);

  EXPECT_TRUE(equal.sound());
  EXPECT_THAT(equal.warnings, testing::ElementsAre(HasSubstr("is a second copy")));
  ASSERT_EQ(different.problems.size(), 1u);
  EXPECT_THAT(different.problems[0].what, HasSubstr("differ, though the model ties them"));
}

TEST_F(Inspect, OfAnUnreadableHeadOfATiedModelSaysWhatDoctorSays) {
  const auto model = model_folder(test::tiny_model_json());
  const std::string header = R"({"lm_head.weight":{"dtype":"","shape":[],"data_offsets":[0,0]}})";
  std::string content(8, '\0');
  content[0] = static_cast<char>(header.size());
  test::write_text(model / "model.safetensors", content + header);

  const Inspection seen = look(model);
  const std::string told = test::run_underkeel("doctor " + model.string()).out;

  ASSERT_FALSE(seen.problems.empty());
  const Error& problem = seen.problems.front();
  EXPECT_THAT(problem.what, HasSubstr("the head is tied to `model.embed_tokens.weight`"));
  EXPECT_THAT(problem.fix, HasSubstr("another copy of these files has the same entry"));
  EXPECT_THAT(told, HasSubstr("do: " + problem.fix));
}

TEST_F(Inspect, TellsWhatACheckpointHoldsAndVerifiesItsChecksums) {
  const std::string checkpoint = test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4);
  const Inspection sound = look(checkpoint);
  auto moments = files_.open_for_update(checkpoint + "/exp_avg.safetensors");
  const std::int64_t size_bytes = value_of(moments->size_bytes());
  const std::byte wrong[1] = {std::byte{7}};
  value_of(moments->write(wrong, size_bytes - 5));
  const Inspection damaged = look(checkpoint);

  EXPECT_EQ(sound.kind, PathKind::checkpoint);
  EXPECT_EQ(sound.step, 4);
  EXPECT_TRUE(sound.sound()) << to_text(sound);
  ASSERT_EQ(damaged.problems.size(), 1u) << to_text(damaged);
  EXPECT_THAT(damaged.problems[0].where, HasSubstr("exp_avg.safetensors"));
}

TEST_F(Inspect, DescribesAdaptersAndWarnsOfThoseThatWereNeverTrained) {
  const auto folder = folder_ / "adapter";
  std::filesystem::create_directories(folder);
  test::write_text(folder / "adapter_config.json", R"({"peft_type": "LORA", "r": 4})");
  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
  const auto written = [&](float second) {
    test::write_tensors(folder / "adapter_model.safetensors",
                        {{name + "A.weight", test::stored(DType::f32, {1, 2}, {1, 2})},
                         {name + "B.weight", test::stored(DType::f32, {2, 1}, {0, second})}});
    return look(folder, false);
  };

  const Inspection zero = written(0), trained = written(3);
  const Inspection file = look(folder / "adapter_model.safetensors", false);
  test::write_tensors(folder / "adapter_model.safetensors", {});
  const Inspection empty = look(folder, false);

  EXPECT_EQ(zero.kind, PathKind::adapter_folder);
  EXPECT_TRUE(zero.sound()) << to_text(zero);
  EXPECT_THAT(zero.warnings, testing::ElementsAre(HasSubstr("lora_B) are zero")));
  EXPECT_THAT(to_text(zero), HasSubstr("2 tensors, 4 elements"));
  EXPECT_TRUE(trained.warnings.empty());
  EXPECT_TRUE(file.warnings.empty());
  ASSERT_EQ(empty.problems.size(), 1u);
  EXPECT_THAT(empty.problems[0].what, HasSubstr("holds no tensor"));
}

TEST_F(Inspect, VerifiesPairsRankAndValuesOfAdapters) {
  const auto folder = folder_ / "adapter";
  std::filesystem::create_directories(folder);
  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
  const auto verified = [&](const char* config, float value, bool is_alone) {
    test::write_text(folder / "adapter_config.json", config);
    test::StoredTensors tensors = {
        {name + "A.weight", test::stored(DType::f32, {2, 3}, {1, 2, 3, 4, 5, value})},
        {name + "B.weight", test::stored(DType::f32, {4, 2}, std::vector<float>(8, 1))}};
    if (is_alone) tensors.erase(std::prev(tensors.end()));
    test::write_tensors(folder / "adapter_model.safetensors", tensors);
    return look(folder, true);
  };

  const Inspection sound = verified(R"({"r": 2})", 6, false);
  const Inspection other_rank = verified(R"({"r": 8})", 6, false);
  const Inspection of_patterns = verified(R"({"r": 8, "rank_pattern": {"q_proj": 2}})", 6, false);
  const Inspection alone = verified(R"({"r": 2})", 6, true);
  const Inspection infinite =
      verified(R"({"r": 2})", std::numeric_limits<float>::infinity(), false);

  EXPECT_TRUE(sound.sound()) << to_text(sound);
  EXPECT_TRUE(sound.verified);
  EXPECT_THAT(to_text(sound), HasSubstr("against the base were not"));
  EXPECT_TRUE(of_patterns.sound()) << to_text(of_patterns);
  ASSERT_EQ(other_rank.problems.size(), 1u);
  EXPECT_THAT(other_rank.problems[0].what, HasSubstr("1 pair of the adapters' matrices does not go "
                                                     "together at rank 8"));
  ASSERT_EQ(alone.problems.size(), 1u);
  EXPECT_THAT(alone.problems[0].what,
              HasSubstr("1 of the adapters' matrices stands without a partner"));
  ASSERT_EQ(infinite.problems.size(), 1u);
  EXPECT_THAT(infinite.problems[0].what, HasSubstr("element 5 is not a finite number"));
}

TEST_F(Inspect, ListsCompleteCheckpointsAndWhyOthersAreSkipped) {
  test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4);
  test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 12);
  std::filesystem::remove(folder_ / "run" / "checkpoint-12" / "manifest.json");

  const Inspection seen = look(folder_ / "run");

  EXPECT_EQ(seen.kind, PathKind::output_folder);
  ASSERT_EQ(seen.checkpoints.complete.size(), 1u);
  EXPECT_EQ(seen.checkpoints.complete[0].step, 4);
  ASSERT_EQ(seen.checkpoints.skipped.size(), 1u);
  EXPECT_THAT(to_text(seen), HasSubstr("checkpoint-12: "));
  const auto json = nlohmann::json::parse(to_json(seen));
  EXPECT_EQ(json["checkpoints"][0]["step"], 4);
  EXPECT_EQ(json["skipped"].size(), 1u);
}

TEST_F(Inspect, OfOneFileListsItsTensors) {
  const auto folder = model_folder(test::tiny_model_json());

  const Inspection seen = look(folder / "model.safetensors", false);

  EXPECT_EQ(seen.kind, PathKind::safetensors_file);
  ASSERT_EQ(seen.files.size(), 1u);
  EXPECT_EQ(seen.files[0].tensors.size(), 20u);
  const auto json = nlohmann::json::parse(to_json(seen));
  EXPECT_EQ(json["files"][0]["tensors"][0]["type"], "BF16");
}

TEST_F(Inspect, OfABrokenHeaderSaysWhatIsWrong) {
  test::write_text(folder_ / "model.safetensors", "none of it");

  const Inspection seen = look(folder_ / "model.safetensors", false);

  EXPECT_EQ(seen.problems.size(), 1u);
}

TEST_F(Inspect, WithoutConfigSaysThatNothingTellsWhatTheWeightsAre) {
  const auto folder = model_folder(test::tiny_model_json());
  std::filesystem::remove(folder / "config.json");

  const Inspection seen = look(folder);

  ASSERT_EQ(seen.problems.size(), 1u);
  EXPECT_THAT(seen.problems[0].what, HasSubstr("no config.json"));
}

}  // namespace
}  // namespace underkeel::train
