// Four families on LLaMA-Factory's own samples, apart and in packs, and on blocks of texts: the curve of the
// Trainer, which is given a mask that keeps the samples of a row apart.
// The goldens are made by scripts/make_sample_curves.py.

#include <cmath>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "spec/model_spec.h"
#include "support/places.h"
#include "support/tensor_files.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using nlohmann::json;

const fs::path& curves() {
  static const fs::path folder = test::in_source("tests/train/goldens/curves");
  return folder;
}

std::vector<std::string> curve_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(curves()))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The script's weights_of(): a hash of name and element, spread evenly; norms near 1.
std::vector<float> weights_of(const std::string& name, std::int64_t count) {
  std::uint32_t start = 2166136261u;
  for (const char byte : name) start = (start ^ static_cast<unsigned char>(byte)) * 16777619u;
  const bool is_norm = name.find("norm") != std::string::npos;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9E3779B9u + start;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    x ^= x >> 16;
    const double unit = static_cast<double>(x >> 8) / 0x1p23 - 1;
    values.push_back(static_cast<float>(is_norm ? 1 + unit / 8 : unit / 8));
  }
  return values;
}

void write_model(const fs::path& folder, const json& golden) {
  const std::string config = golden.at("config").dump();
  write_text(folder / "config.json", config);
  StoredTensors tensors;
  for (const spec::Parameter& parameter :
       spec::parameters_of(value_of(spec::parse_model_config(config, "config.json"))))
    tensors[parameter.name] = stored(DType::f32, parameter.shape(),
                                     weights_of(parameter.name, parameter.element_count()));
  write_tensors(folder / "model.safetensors", tensors);
  const fs::path tokenizer = test::in_source(golden.at("tokenizer").get<std::string>());
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(tokenizer / file, folder / file);
}

class SampleCurve : public testing::TestWithParam<std::string> {};

TEST_P(SampleCurve, IsThatOfTheTrainer) {
  const json golden = json::parse(read_text(curves() / (GetParam() + ".json")));
  TemporaryFolder folder;
  write_model(folder / "model", golden);
  json run = golden.at("run");
  run["model_name_or_path"] = (folder / "model").string();
  run["dataset_dir"] = test::in_source(golden.at("dataset_dir").get<std::string>());
  run["output_dir"] = (folder / "out").string();
  write_text(folder / "run.json", run.dump());

  const Ended ended =
      run_program({underkeel_binary(), "train", (folder / "run.json").string(), "--ranks",
                   std::to_string(golden.at("ranks").get<int>()), "underkeel.threads=1"},
                  {}, 300);

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const json ours = json::parse(read_text(folder / "out/trainer_state.json")).at("log_history");
  const json& theirs = golden.at("log_history");
  ASSERT_EQ(ours.size(), theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i)
    for (const auto& [name, value] : theirs[i].items()) {
      const double own = ours[i].at(name).get<double>();
      const double their = value.get<double>();
      SCOPED_TRACE(name + " of " + theirs[i].dump());
      if (name == "loss" || name == "train_loss") {
        worst = std::max(worst, std::abs(own - their) / their);
        EXPECT_NEAR(own, their, 1e-5 * their);
      } else if (name == "grad_norm") {
        EXPECT_NEAR(own, their, 1e-4 * their);
      } else {
        EXPECT_DOUBLE_EQ(own, their);
      }
    }
  RecordProperty("worst_loss_difference", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Of, SampleCurve, testing::ValuesIn(curve_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace underkeel::test
