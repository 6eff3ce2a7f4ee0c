#pragma once
// Under which names a checkpoint keeps the parts of a tensor's state.

#include <string>

#include "plan/operations.h"

namespace underkeel::plan {

/// "model.norm.weight" for weights; "exp_avg.model.norm.weight" and so on for the other parts.
inline std::string stored_name(StatePart part, const std::string& tensor) {
  return part == StatePart::weights ? tensor : std::string(name_of(part)) + "." + tensor;
}

}  // namespace underkeel::plan
