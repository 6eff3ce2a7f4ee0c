// The same run file as the Trainer of transformers had, and the same curve: rates to the last bit, losses
// and norms closely, the same log entries, evaluations, checkpoints and best model.
// The goldens are made by scripts/make_trainer_goldens.py.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/places.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using nlohmann::json;

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::in_source("tests/train/goldens/trainer")))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

json json_of(const fs::path& file) {
  std::ifstream stream(file);
  return json::parse(stream);
}

/// Names of what is timed, or counted by progress bars: not compared.
bool is_timed(const std::string& name) {
  return name.find("runtime") != std::string::npos ||
         name.find("per_second") != std::string::npos || name == "total_flos";
}

/// Two f32 computations of one curve drift apart as rounding goes through the updates; measured:
/// below 2e-6 for losses after 60 steps (docs/numerics.md).
constexpr double loss_bound = 1e-5;
constexpr double norm_bound = 1e-4;

void expect_same_entry(const json& ours, const json& theirs) {
  SCOPED_TRACE(theirs.dump());
  std::vector<std::string> names;
  for (const auto& [name, value] : ours.items())
    if (!is_timed(name)) names.push_back(name);
  std::vector<std::string> wanted;
  for (const auto& [name, value] : theirs.items()) wanted.push_back(name);
  EXPECT_EQ(names, wanted);
  for (const auto& [name, value] : theirs.items()) {
    if (!ours.contains(name)) continue;
    const double own = ours.at(name).get<double>();
    const double their = value.get<double>();
    if (name == "learning_rate" || name == "epoch" || name == "step")
      EXPECT_DOUBLE_EQ(own, their) << name;
    else
      EXPECT_NEAR(own, their, (name == "grad_norm" ? norm_bound : loss_bound) * std::abs(their))
          << name;
  }
}

class TrainerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TrainerGolden, IsReproducedFromTheSameRunFile) {
  const json golden =
      json_of(fs::path(test::in_source("tests/train/goldens/trainer")) / (GetParam() + ".json"));
  TemporaryFolder folder;
  json run = golden.at("run");
  run["model_name_or_path"] = test::in_source("examples/tiny/model");
  run["dataset_dir"] = test::in_source("examples/tiny");
  run["output_dir"] = (folder / "out").string();
  std::ofstream(folder / "run.json") << run;

  const Ended ended =
      run_program({underkeel_binary(), "train", (folder / "run.json").string(), "--ranks",
                   std::to_string(golden.at("ranks").get<int>()), "underkeel.threads=1"},
                  {}, 300);

  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const json state = json_of(folder / "out/trainer_state.json");
  const json& entries = state.at("log_history");
  ASSERT_EQ(entries.size(), golden.at("log_history").size()) << entries.dump(1);
  for (std::size_t i = 0; i < entries.size(); ++i)
    expect_same_entry(entries[i], golden.at("log_history")[i]);
  for (const auto& [name, value] : golden.at("state").items())
    if (value.is_number_float() && state.at(name).is_number())
      EXPECT_NEAR(state.at(name).get<double>(), value.get<double>(), 1e-5) << name;
    else
      EXPECT_EQ(state.at(name), value) << name;
  auto left = complete_steps(folder / "out");
  std::sort(left.begin(), left.end());
  auto wanted = golden.at("checkpoints").get<std::vector<std::int64_t>>();
  // The Trainer ends a run with save_total_limit 1 by removing all but the best; here the newest stays.
  if (run.value("load_best_model_at_end", false) && wanted.back() != state.at("global_step"))
    wanted.push_back(state.at("global_step"));
  EXPECT_EQ(left, wanted);
  const json& best = state.at("best_model_checkpoint");
  EXPECT_EQ(best.is_null() ? "" : fs::path(best.get<std::string>()).filename().string(),
            golden.at("best_model_checkpoint").get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Of, TrainerGolden, testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace underkeel::test
