#pragma once
// Files that were given together and say different things: which of them who reads, and in what they differ.

#include <string>
#include <vector>

#include "doctor/inputs.h"

namespace underkeel::doctor {

/// A DeepSpeed config beside a run file that names another one or none, and an accelerate config beside either.
std::vector<Finding> check_conflicts(const Inputs& inputs);

/// "zero_optimization.stage: 3 / 2; bf16.enabled: true / -": keys whose values differ, with what `a` and `b` have, at most
/// eight and then how many more; "" where all are alike.
std::string differences(const spec::Value& a, const spec::Value& b);

}  // namespace underkeel::doctor
