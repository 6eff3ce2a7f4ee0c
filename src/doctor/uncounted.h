#pragma once
// Settings that change DeepSpeed's memory and that the forecast has no formula for.

#include <string>
#include <vector>

#include "doctor/inputs.h"

namespace underkeel::doctor {

struct Uncounted {
  std::string file;
  std::string key;    // dotted
  std::string value;  // as the file gives it
  std::string why;    // a phrase, "@uncounted.mics"
};

/// Of the run file and the config at hand, in that order; empty when the forecast counts all.
std::vector<Uncounted> uncounted_settings(const Inputs& inputs);

}  // namespace underkeel::doctor
