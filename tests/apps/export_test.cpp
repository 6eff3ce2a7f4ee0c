#include "train/export.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/made_checkpoint.h"
#include "io/faults.h"
#include "io/model_files.h"
#include "io/verify_folder.h"
#include "support/temporary_folder.h"
#include "support/tensor_files.h"
#include "train/expected_tensors.h"

namespace underkeel::train {
namespace {

using test::value_of;
using testing::HasSubstr;

constexpr std::int64_t tiny_parameters = 90'432;

class Export : public testing::Test {
 protected:
  ExportReport run(ExportRequest request) {
    if (request.from.empty()) request.from = checkpoint();
    if (request.into.empty()) request.into = out();
    return value_of(export_checkpoint(files_, request));
  }
  std::string checkpoint() {
    if (checkpoint_.empty())
      checkpoint_ = test::make_checkpoint(folder_ / "run", test::tiny_model_json());
    return checkpoint_;
  }
  std::string out() const { return (folder_ / "out").string(); }
  test::StoredTensors exported() const {
    return test::read_tensors(folder_ / "out" / "model.safetensors");
  }

  io::FileSystem files_;
  test::TemporaryFolder folder_;
  std::string checkpoint_;
};

TEST_F(Export, IsTheMasterCopyExactlyInF32) {
  const ExportReport report = run({.type = DType::f32});

  const auto tensors = exported();
  EXPECT_TRUE(report.from_master);
  EXPECT_EQ(report.parameter_count, tiny_parameters);
  const std::vector<float> embedding = tensors.at("model.embed_tokens.weight").as_f32();
  for (std::size_t i = 0; i < embedding.size(); i += 97)
    ASSERT_EQ(embedding[i], test::made_value(0, static_cast<std::int64_t>(i)));
}

TEST_F(Export, KeepsTheStoredTypeWhenNoneIsAskedForAndRoundsOnce) {
  const ExportReport report = run({});

  const auto tensors = exported();
  EXPECT_EQ(report.type, DType::bf16);
  const auto& embedding = tensors.at("model.embed_tokens.weight");
  EXPECT_EQ(embedding.type, DType::bf16);
  const std::vector<float> values = embedding.as_f32();
  for (std::size_t i = 0; i < values.size(); i += 97)
    ASSERT_EQ(values[i], to_f32(to_bf16(test::made_value(0, static_cast<std::int64_t>(i)))));
  const auto config = nlohmann::json::parse(test::read_text(folder_ / "out" / "config.json"));
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
}

TEST_F(Export, ReadsNoMoments) {
  const ExportReport report = run({.type = DType::bf16});

  EXPECT_EQ(report.bytes_read, 4 * tiny_parameters);
  for (const auto& [name, tensor] : exported()) EXPECT_THAT(name, testing::StartsWith("model."));
}

TEST_F(Export, OfATiedModelHasOneEmbeddingAndNoHead) {
  run({});

  const auto tensors = exported();
  EXPECT_TRUE(tensors.contains("model.embed_tokens.weight"));
  EXPECT_FALSE(tensors.contains("lm_head.weight"));
}

TEST_F(Export, InSeveralShardsHasAnIndexOfExactlyWhatTheFilesHold) {
  const ExportReport report = run({.type = DType::bf16, .max_shard_bytes = 64 * kibibyte});

  ASSERT_GT(report.file_count, 1);
  const auto index =
      nlohmann::json::parse(test::read_text(folder_ / "out" / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 180'864);
  std::map<std::string, std::string> held;
  for (const auto& entry : std::filesystem::directory_iterator(out())) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto tensors = test::read_tensors(entry.path());
    EXPECT_FALSE(tensors.empty()) << entry.path();
    for (const auto& [name, tensor] : tensors) held[name] = entry.path().filename();
  }
  EXPECT_EQ(index["weight_map"].get<decltype(held)>(), held);
}

TEST_F(Export, TakesTheNewestCheckpointOfAnOutputFolder) {
  test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4);
  const std::string newest = test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 12);

  const ExportReport report = run({.from = (folder_ / "run").string()});

  EXPECT_EQ(report.from, newest);
}

// As load_best_model_at_end leaves it: the model of an older checkpoint, beside the newest one.
TEST_F(Export, OfAnOutputFolderIsTheModelThatItHoldsWithItsMasterCopy) {
  const std::string best = test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4);
  const std::string newest =
      test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 12, 0.5f);
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"})
    std::filesystem::copy_file(std::filesystem::path(best) / name, folder_ / "run" / name);

  const ExportReport report = run({.from = (folder_ / "run").string(), .type = DType::f32});

  EXPECT_EQ(report.from, best);
  EXPECT_TRUE(report.from_master);
  EXPECT_THAT(report.note, HasSubstr("that of " + best + " (the best one"));
  EXPECT_THAT(report.note, HasSubstr("name " + newest + " for that one"));
  const auto tensors = exported();
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").as_f32()[97], test::made_value(0, 97));
}

TEST_F(Export, OfAnOutputFolderWhoseModelIsThatOfNoCheckpointIsThatModelAndSaysSo) {
  const std::string other = test::make_checkpoint(folder_ / "gone", test::tiny_model_json(), 4);
  const std::string newest =
      test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 12, 0.5f);
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"})
    std::filesystem::copy_file(std::filesystem::path(other) / name, folder_ / "run" / name);

  const ExportReport report = run({.from = (folder_ / "run").string()});

  EXPECT_EQ(report.from, (folder_ / "run").string());
  EXPECT_FALSE(report.from_master);
  EXPECT_THAT(report.note, HasSubstr("that of no checkpoint which stands there"));
  EXPECT_THAT(report.note, HasSubstr("name " + newest));
  const auto tensors = exported();
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").as_f32()[97],
            to_f32(to_bf16(test::made_value(0, 97))));
}

TEST_F(Export, OfAnOutputFolderWithTheModelOfItsNewestCheckpointHasNothingToSay) {
  test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4, 0.5f);
  const std::string newest = test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 12);
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(std::filesystem::path(newest) / name, folder_ / "run" / name);

  const ExportReport report = run({.from = (folder_ / "run").string()});

  EXPECT_EQ(report.from, newest);
  EXPECT_TRUE(report.from_master);
  EXPECT_EQ(report.note, "");
}

TEST_F(Export, CopiesTheTokenizer) {
  run({});

  EXPECT_EQ(test::read_text(folder_ / "out" / "tokenizer.json"),
            test::read_text(std::filesystem::path(checkpoint()) / "tokenizer.json"));
}

TEST_F(Export, TurnsAModelFolderIntoAnotherType) {
  std::filesystem::create_directories(folder_ / "model");
  test::write_model_folder(folder_ / "model", test::tiny_model_json());

  const ExportReport report = run({.from = (folder_ / "model").string(), .type = DType::f32});

  EXPECT_FALSE(report.from_master);
  EXPECT_EQ(exported().at("model.norm.weight").type, DType::f32);
}

// The base's weights alone would be written, and what was trained be lost.
TEST_F(Export, OfAModelFolderWithAdaptersIsRefusedByName) {
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors"}) {
    SCOPED_TRACE(file);
    const std::filesystem::path model = folder_ / file / "model";
    std::filesystem::create_directories(model);
    test::write_model_folder(model, test::tiny_model_json());
    test::write_text(model / file, "{}");

    const auto result = export_checkpoint(files_, {.from = model.string(), .into = out()});

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::unsupported);
    EXPECT_THAT(result.error().what, HasSubstr(file));
    EXPECT_FALSE(std::filesystem::exists(out()));
  }
}

TEST_F(Export, OfAFileIsAMistakeInWhatWasGiven) {
  test::write_text(folder_ / "export.yaml", "export_dir: out\n");

  const auto result =
      export_checkpoint(files_, {.from = (folder_ / "export.yaml").string(), .into = out()});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_config);
}

TEST_F(Export, NeverTouchesAFolderThatIsThere) {
  test::write_text(folder_ / "out" / "mine.txt", "mine");

  const auto result = export_checkpoint(files_, {.from = checkpoint(), .into = out()});

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("is there already"));
  EXPECT_EQ(test::read_text(folder_ / "out" / "mine.txt"), "mine");
}

TEST_F(Export, ThatDoesNotFitTheDiskIsRefusedBeforeAnythingIsWritten) {
  const std::string from = checkpoint();
  const auto calls = std::make_shared<io::FaultyCalls>(
      io::posix_calls(), std::vector<io::FaultRule>{{.action = io::FaultAction::quota,
                                                     .path_part = folder_.path().string(),
                                                     .size_bytes = 300 * kibibyte}});
  io::FileSystem full(calls);

  const auto result = export_checkpoint(full, {.from = from, .into = out(), .type = DType::f32});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::does_not_fit);
  EXPECT_THAT(result.error().what, HasSubstr("the export needs 355 KiB of disk, "));
  EXPECT_THAT(result.error().fix, HasSubstr("--dtype bf16"));
  for (const io::SeenCall& call : calls->seen_calls()) EXPECT_EQ(call.kind, io::CallKind::read);
}

TEST_F(Export, ThatOverflowsF16FailsAndLeavesNothing) {
  const std::string from =
      test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4, 100'000.0f);

  const auto result = export_checkpoint(files_, {.from = from, .into = out(), .type = DType::f16});

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("not a finite number"));
  EXPECT_THAT(result.error().fix, HasSubstr("--dtype bf16"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Export, OfAnotherModelsConfigNamesTheTensorAndBothShapes) {
  auto config = nlohmann::json::parse(test::complete_config(test::tiny_model_json()));
  config["vocab_size"] = 300;
  std::filesystem::create_directories(folder_ / "model");
  test::write_model_folder(folder_ / "model", test::tiny_model_json());
  test::write_text(folder_ / "model" / "config.json", config.dump());

  const auto result =
      export_checkpoint(files_, {.from = (folder_ / "model").string(), .into = out()});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what,
            "tensor `model.embed_tokens.weight` has shape [256, 64], config.json needs [300, 64]");
}

}  // namespace
}  // namespace underkeel::train
