#pragma once
// Two descriptions of one model: a config.json that was given by hand, and the one of the folder that a run names.

#include <string>

#include "spec/model_spec.h"

namespace underkeel::doctor {

/// Same names and shapes of all parameters.
bool have_same_tensors(const spec::ModelSpec& one, const spec::ModelSpec& other);

/// Of two with the same tensors what else computes differently: "rms_norm_eps 1e-06 / 1e-05, rope_theta ..."; empty where
/// nothing does.
std::string differing_fields(const spec::ModelSpec& one, const spec::ModelSpec& other);

}  // namespace underkeel::doctor
