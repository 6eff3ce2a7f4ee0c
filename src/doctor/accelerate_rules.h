#pragma once
// Keys and values of an accelerate config.

#include <vector>

#include "doctor/document.h"
#include "doctor/finding.h"

namespace underkeel::doctor {

std::vector<Finding> check_accelerate(const Document& document);

}  // namespace underkeel::doctor
