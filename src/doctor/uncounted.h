#pragma once
// Settings that change DeepSpeed's memory and that the forecast has no formula for.

#include <string>
#include <vector>

#include "doctor/inputs.h"

namespace underkeel::doctor {

/// Of what the figures still are a bound from below where a setting is not counted.
struct Bound {
  bool of_device = true;
  bool of_host = true;  // and of NVMe
  bool of_moments = true;
  bool of_activations = true;
  bool of_training = true;  // of all that is not weights

  Bound operator&(const Bound& other) const {
    return {of_device && other.of_device, of_host && other.of_host, of_moments && other.of_moments,
            of_activations && other.of_activations, of_training && other.of_training};
  }
};

struct Uncounted {
  std::string file;
  std::string key;    // dotted
  std::string value;  // as the file gives it
  std::string why;    // a phrase, "@uncounted.mics"
  Bound bound = {};
};

/// Of the run file and the config at hand, in that order; empty when the forecast counts all.
std::vector<Uncounted> uncounted_settings(const Inputs& inputs);

}  // namespace underkeel::doctor
