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

}  // namespace underkeel::train
