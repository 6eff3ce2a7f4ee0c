#include "train/expected_tensors.h"

#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::train {

ExpectedTensors expected_tensors(const spec::ModelSpec& model) {
  ExpectedTensors expected;
  for (const spec::Parameter& parameter : spec::parameters_of(model))
    expected.tensors.push_back({parameter.name, parameter.shape()});
  if (model.tied_head)
    expected.tied.push_back({.copy = "lm_head.weight", .kept = "model.embed_tokens.weight"});
  return expected;
}

Result<std::vector<std::string>> check_weights(io::FileSystem& files, const std::string& folder,
                                               const spec::ModelSpec& model) {
  const ExpectedTensors expected = expected_tensors(model);
  UK_TRY(report, io::verify_folder(files, folder, expected.tensors,
                                   {.tied = expected.tied,
                                    .read_values = false,
                                    .allow_unexpected = true,
                                    .buffer_bytes = mebibyte}));
  if (report.sound()) return std::move(report.warnings);
  Error problem = report.problems.front();
  if (problem.fix.empty())
    problem.fix = fmt::format(
        "use a whole folder of this model; `underkeel inspect --verify {}` lists all "
        "that is wrong",
        folder);
  return tl::unexpected(std::move(problem));
}

}  // namespace underkeel::train
