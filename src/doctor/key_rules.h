#pragma once
// Holds a DeepSpeed config against the tables of its keys.

#include <vector>

#include "doctor/document.h"
#include "doctor/finding.h"

namespace underkeel::doctor {

struct KeyQuestion {
  const Document& config;
  /// The HF Trainer or accelerate fills in "auto" before DeepSpeed sees the file.
  bool auto_is_filled_in = true;
  bool is_compared =
      false;  // beside a run file, whose values the HF Trainer compares with those of the config
  bool passes_accelerate = false;  // which stops without a zero_optimization
};

/// One finding for each key that is unknown, misplaced, misspelt, out of use, without effect, of a wrong
/// type or out of range, with what DeepSpeed makes of it.
std::vector<Finding> check_keys(const KeyQuestion& question);

}  // namespace underkeel::doctor
