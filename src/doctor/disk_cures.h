#pragma once
// Which keys make checkpoints fit a disk that they do not fit, each with what it then takes.

#include <cstdint>
#include <optional>
#include <string>

#include "io/checkpoint_space.h"

namespace underkeel::doctor {

/// What saves of weights alone take, and the words that ask for them.
struct WeightsOnly {
  io::SpaceNeed need;
  std::string words;  // "save_only_model: true"
};

/// Of a need that is beyond `free_bytes`: fewer checkpoints, weights alone (with fewer, where it takes that), in words that
/// a finding may hold.
std::string disk_cures(const io::SpaceNeed& need, std::int64_t free_bytes,
                       const std::optional<WeightsOnly>& weights_only);

}  // namespace underkeel::doctor
