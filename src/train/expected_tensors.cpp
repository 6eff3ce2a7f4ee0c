#include "train/expected_tensors.h"

#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "io/model_files.h"
#include "spec/tied_copy.h"

namespace underkeel::train {

ExpectedTensors expected_tensors(const spec::ModelSpec& model) {
  ExpectedTensors expected;
  for (const spec::Parameter& parameter : spec::parameters_of(model))
    expected.tensors.push_back({parameter.name, parameter.shape()});
  if (const auto tied = spec::tied_copy(model))
    expected.tied.push_back({.copy = tied->copy, .kept = tied->kept});
  return expected;
}

Result<std::vector<std::string>> check_weights(io::FileSystem& files, const std::string& folder,
                                               const spec::ModelSpec& model) {
  UK_TRY_VOID(io::refuse_adapters(files, folder));
  const ExpectedTensors expected = expected_tensors(model);
  UK_TRY(report, io::verify_folder(files, folder, expected.tensors,
                                   {.tied = expected.tied,
                                    .read_values = false,
                                    .allow_unexpected = true,
                                    .buffer_bytes = mebibyte}));
  if (report.sound()) {
    UK_TRY(found, io::open_model_files(files, folder));
    for (const io::ExpectedTensor& tensor : expected.tensors) {
      const auto place = found.find(tensor.name);
      const auto& type = place->entry.type;
      if (type != DType::f32 && type != DType::bf16 && type != DType::f16)
        return fail(ErrorCode::unsupported,
                    fmt::format("tensor `{}` has type {}", tensor.name, place->entry.dtype_text),
                    place->path, "store the weights as F32, BF16 or F16");
    }
    return std::move(report.warnings);
  }
  Error problem = report.problems.front();
  if (problem.fix.empty())
    problem.fix = fmt::format(
        "use a whole folder of this model; `underkeel inspect --verify {}` lists all "
        "that is wrong",
        folder);
  return tl::unexpected(std::move(problem));
}

}  // namespace underkeel::train
