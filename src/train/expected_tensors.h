#pragma once
// What the files of a model must hold, as io's check wants it told.

#include <vector>

#include "io/verify_folder.h"
#include "spec/model_spec.h"

namespace underkeel::train {

struct ExpectedTensors {
  std::vector<io::ExpectedTensor> tensors;  // in state-dict order
  std::vector<io::TiedTensor> tied;
};

ExpectedTensors expected_tensors(const spec::ModelSpec& model);

/// Whether a folder's weights can be loaded into `model`, from the files' headers alone (and from both copies of
/// a tied head). Returns notes for the user, such as tensors that are passed over.
/// Errors: the first problem of io::verify_folder().
Result<std::vector<std::string>> check_weights(io::FileSystem& files, const std::string& folder,
                                               const spec::ModelSpec& model);

}  // namespace underkeel::train
