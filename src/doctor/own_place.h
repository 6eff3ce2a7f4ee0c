#pragma once
// Where a problem of our own reader stands, in the files that were given.

#include <string>

#include "doctor/inputs.h"
#include "spec/problems.h"

namespace underkeel::doctor {

struct ProblemPlace {
  std::string file, key;
  int line = 0;          // 0: not known
  bool is_given = true;  // false: of a value that no file has, where a config stands for a run file
};

/// "ds_config.json: zero_optimization.stage (line 4)" as file, key and line. `inputs` have a run file or a config.
ProblemPlace place_of(const spec::Problem& problem, const Inputs& inputs);

}  // namespace underkeel::doctor
