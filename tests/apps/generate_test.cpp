#include "train/generate.h"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/made_checkpoint.h"
#include "support/byte_tokenizer.h"
#include "support/model_folder.h"
#include "support/temporary_folder.h"
#include "support/tensor_files.h"
#include "support/text_files.h"
#include "support/value_of.h"
#include "train/model_source.h"

namespace underkeel::train {
namespace {

using test::value_of;
using testing::HasSubstr;

/// A model of two layers in f32 whose weights are wide enough for every token to differ.
class Generate : public testing::Test {
 protected:
  Generate() {
    auto json = nlohmann::json::parse(test::tiny_model_json());
    json["torch_dtype"] = "float32";
    json["initializer_range"] = 0.25;
    json["max_position_embeddings"] = 128;
    const std::string config = test::complete_config(json.dump());
    test::write_text(folder_ / "config.json", config);
    test::write_byte_tokenizer(folder_.path());
    const spec::ModelSpec model = value_of(spec::parse_model_config(config, "config.json"));
    FreshSource source(model, 3);
    test::StoredTensors tensors;
    for (const spec::Parameter& parameter : spec::parameters_of(model)) {
      std::vector<float> values(static_cast<std::size_t>(parameter.element_count()));
      const plan::UnitTensor tensor{.name = parameter.name,
                                    .shape = parameter.shape(),
                                    .element_count = parameter.element_count()};
      value_of(source.read(tensor, plan::StatePart::weights, 0, parameter.element_count(),
                           values.data()));
      tensors[parameter.name] = test::stored(DType::f32, parameter.shape(), values);
    }
    test::write_tensors(folder_ / "model.safetensors", tensors);
  }

  GenerateReport run(GenerateRequest request) {
    request.model = folder_.path();
    text_.clear();
    pieces_ = 0;
    return value_of(generate(request, [&](std::string_view piece) {
      text_ += piece;
      ++pieces_;
    }));
  }

  test::TemporaryFolder folder_;
  std::string text_;
  int pieces_ = 0;
};

TEST_F(Generate, ContinuesGreedilyAsTransformersDoes) {
  const GenerateReport report = run({.prompt = "The tide turns", .max_new_tokens = 24});

  // transformers 5.17, f32, eager: generate(do_sample=False, max_new_tokens=24) on this folder.
  EXPECT_THAT(report.tokens,
              testing::ElementsAre(190, 225, 78, 145, 164, 3, 108, 104, 69, 19, 48, 48, 140, 15,
                                   138, 98, 253, 53, 246, 118, 229, 207, 49, 104));
  EXPECT_EQ(report.prompt_tokens, 14);
  EXPECT_FALSE(report.ended);
}

TEST_F(Generate, GivesTheSameTokensWithAndWithoutACache) {
  for (const char* prompt :
       {"T", "The tide turns", "A pilot knows the water left beneath a ship."}) {
    SCOPED_TRACE(prompt);
    const GenerateReport cached = run({.prompt = prompt, .max_new_tokens = 70});
    const GenerateReport whole =
        run({.prompt = prompt, .max_new_tokens = 70, .keeps_cache = false});

    EXPECT_EQ(cached.tokens, whole.tokens);
    // Two layers, two key heads of width 16, keys and values, f32; the last token is not kept.
    EXPECT_EQ(cached.memory.cache_bytes, 2 * 2 * 2 * 16 * 4 * (cached.memory.positions - 1));
    EXPECT_EQ(whole.memory.cache_bytes, 0);
  }
}

TEST_F(Generate, PlansItsCacheAndIsRefusedWhereItDoesNotFit) {
  GenerationMemory seen;
  GenerateRequest request{.model = folder_.path(), .prompt = "The tide turns"};
  request.max_new_tokens = 50;
  request.check_memory = [&](const GenerationMemory& memory) -> Result<void> {
    seen = memory;
    return fail(ErrorCode::does_not_fit, "no", "", "");
  };

  const auto report = generate(request, [](std::string_view) {});

  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::does_not_fit);
  EXPECT_EQ(seen.positions, 64);
  EXPECT_EQ(seen.new_tokens, 50);
  EXPECT_GT(seen.arena_bytes, seen.cache_bytes + 4 * 90'432);
  EXPECT_LE(seen.device_bytes, seen.arena_bytes);
}

TEST_F(Generate, TellsTextAsItComes) {
  run({.prompt = "The tide turns", .max_new_tokens = 24});

  EXPECT_GT(pieces_, 5);
}

TEST_F(Generate, IsTheSameWithAnyNumberOfThreads) {
  run({.prompt = "The tide turns", .max_new_tokens = 12, .thread_count = 1});
  const std::string one = text_;
  run({.prompt = "The tide turns", .max_new_tokens = 12, .thread_count = 3});

  EXPECT_EQ(text_, one);
}

TEST_F(Generate, StopsAtAnEndTokenAndDoesNotShowIt) {
  run({.prompt = "The tide turns", .max_new_tokens = 24});
  const std::string whole = text_;
  const auto last =
      static_cast<unsigned char>(whole[whole.find_first_of("abcdefghijklmnopqrstuvwxyz")]);
  test::write_text(folder_ / "generation_config.json",
                   nlohmann::json{{"eos_token_id", {int{last}, 0}}}.dump());

  const GenerateReport report = run({.prompt = "The tide turns", .max_new_tokens = 24});

  EXPECT_TRUE(report.ended);
  EXPECT_LT(report.tokens.size(), 24u);
  EXPECT_EQ(text_, whole.substr(0, text_.size()));
  EXPECT_EQ(text_.find(static_cast<char>(last)), std::string::npos);
}

TEST_F(Generate, DrawsTheSameTextForTheSameSeed) {
  const auto draw = [&](std::uint64_t seed) {
    run({.prompt = "The tide", .max_new_tokens = 16, .sampling = {.temperature = 1, .seed = seed}});
    return text_;
  };

  const std::string first = draw(1);
  EXPECT_EQ(draw(1), first);
  EXPECT_NE(draw(2), first);
}

TEST_F(Generate, SaysHowManyTokensTheModelHasRoomFor) {
  const auto result = generate(
      {.model = folder_.path(), .prompt = "The tide turns", .max_new_tokens = 200}, [](auto) {});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what,
            "14 prompt tokens and 200 new ones are 214, the model has 128 positions");
  EXPECT_EQ(result.error().fix, "--max-new-tokens 114");
}

TEST_F(Generate, TakesTheNewestCheckpointOfARunThatHasNotEnded) {
  const std::filesystem::path output = folder_ / "run";
  const std::string checkpoint = test::make_checkpoint(output, test::tiny_model_json(), 4);
  const auto text_of = [&](const std::filesystem::path& model) {
    std::string text;
    value_of(generate({.model = model, .prompt = "The tide", .max_new_tokens = 4},
                      [&](std::string_view piece) { text += piece; }));
    return text;
  };

  EXPECT_EQ(text_of(output), text_of(checkpoint));
}

TEST_F(Generate, ReadsMasterCopiesOfACheckpointThatExportsNoWeights) {
  const std::string checkpoint = test::make_checkpoint(folder_ / "run", test::tiny_model_json(), 4);
  const auto tokens = [&] {
    return value_of(generate({.model = checkpoint, .prompt = "The tide", .max_new_tokens = 4},
                             [](auto) {}))
        .tokens;
  };
  const auto whole = tokens();
  io::FileSystem files;
  auto manifest = value_of(io::read_manifest(files, checkpoint));
  std::erase_if(manifest.files, [](const auto& file) { return file.name == "model.safetensors"; });
  std::erase_if(manifest.tensors,
                [](const auto& tensor) { return tensor.file == "model.safetensors"; });
  test::write_text(checkpoint + "/manifest.json", value_of(io::to_json(manifest)));
  std::filesystem::remove(checkpoint + "/model.safetensors");

  EXPECT_EQ(tokens(), whole);
}

TEST_F(Generate, EndsWithoutATokenWhenTheLogitsAreNoNumbers) {
  auto tensors = test::read_tensors(folder_ / "model.safetensors");
  auto& norm = tensors.at("model.norm.weight");
  norm = test::stored(DType::f32, norm.shape,
                      std::vector<float>(static_cast<std::size_t>(norm.element_count()), NAN));
  test::write_tensors(folder_ / "model.safetensors", tensors);

  const auto result = generate({.model = folder_.path(), .prompt = "The tide"}, [](auto) {});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::not_finite);
}

TEST_F(Generate, RefusesWeightsThatAreNotTheModels) {
  auto tensors = test::read_tensors(folder_ / "model.safetensors");
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  test::write_tensors(folder_ / "model.safetensors", tensors);

  const auto result = generate({.model = folder_.path(), .prompt = "The tide"}, [](auto) {});

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("model.layers.1.mlp.up_proj.weight"));
}

TEST_F(Generate, ReadsNoWeightsWhenTheMemoryIsRefused) {
  std::filesystem::remove(folder_ / "model.safetensors");

  const auto result = generate({.model = folder_.path(),
                                .prompt = "The tide turns",
                                .check_memory = [](const GenerationMemory&) -> Result<void> {
                                  return fail(ErrorCode::does_not_fit, "too large");
                                }},
                               [](auto) {});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "too large");
}

}  // namespace
}  // namespace underkeel::train
