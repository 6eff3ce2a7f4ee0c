#include "train/expected_tensors.h"

namespace underkeel::train {

ExpectedTensors expected_tensors(const spec::ModelSpec& model) {
  ExpectedTensors expected;
  for (const spec::Parameter& parameter : spec::parameters_of(model))
    expected.tensors.push_back({parameter.name, parameter.shape()});
  if (model.tied_head)
    expected.tied.push_back({.copy = "lm_head.weight", .kept = "model.embed_tokens.weight"});
  return expected;
}

}  // namespace underkeel::train
