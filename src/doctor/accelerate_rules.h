#pragma once
// Keys and values of an accelerate config, and the DeepSpeed config that accelerate makes of them.

#include <optional>
#include <vector>

#include "doctor/document.h"
#include "doctor/finding.h"

namespace underkeel::doctor {

std::vector<Finding> check_accelerate(const Document& document);

/// What `accelerate launch` makes of the settings in deepspeed_config where no deepspeed_config_file is named; nullopt without
/// them. `run` is the root of the run file, whose precision holds over mixed_precision; null without one. Every key that
/// accelerate was given stands at its line.
std::optional<spec::Value> config_of_plugin(const Document& document, const spec::Value* run);

}  // namespace underkeel::doctor
