// What comes out of real runs at every stage: trained, saved, exported, looked into.

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"
#include "support/tensor_files.h"
#include "support/value_of.h"
#include "train/inspect.h"

namespace underkeel {
namespace {

using test::Ran;
using test::run_underkeel;

struct Trained {
  std::string name;
  std::int64_t parameters = 0;
  bool has_head = false;
};

class ExportOfARun : public testing::TestWithParam<std::tuple<Trained, int>> {};

TEST_P(ExportOfARun, HoldsEveryParameterOnce) {
  const auto& [trained, stage] = GetParam();
  const auto run = test::complete_case(trained.name, {.zero_stage = stage});
  const std::string exported = (run.folder / "exported").string();

  const Ran training = run_underkeel("train " + run.run_file.string() + " --ranks 2");
  ASSERT_EQ(training.exit_code, 0) << training.error;
  const Ran exporting =
      run_underkeel("export " + run.output.string() + " " + exported + " --max-shard-size 64KiB");
  ASSERT_EQ(exporting.exit_code, 0) << exporting.error;

  io::FileSystem files;
  for (const std::string& folder : {run.output.string(), exported}) {
    const train::Inspection seen = test::value_of(train::inspect(files, folder, true));
    EXPECT_TRUE(seen.sound()) << train::to_text(seen);
    EXPECT_EQ(seen.totals->parameters_found, trained.parameters);
    std::set<std::string> names;
    for (const train::InspectedFile& file : seen.files)
      for (const train::InspectedTensor& tensor : file.tensors) names.insert(tensor.name);
    EXPECT_TRUE(names.contains("model.embed_tokens.weight"));
    EXPECT_EQ(names.contains("lm_head.weight"), trained.has_head);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, ExportOfARun,
                         testing::Combine(testing::Values(Trained{"tied_head", 90'432, false},
                                                          Trained{"empty_tensors", 106'816, true}),
                                          testing::Values(0, 1, 2, 3)),
                         [](const auto& made) {
                           return std::get<0>(made.param).name + "_stage" +
                                  std::to_string(std::get<1>(made.param));
                         });

}  // namespace
}  // namespace underkeel
