#pragma once
// Inverse frequencies of the rotary embedding, shared by all backends.

#include <cstdint>

#include "kernels/rope.h"

namespace underkeel::kernels {

/// Constants of one table that do not depend on the pair; made once for each call of rope_table.
struct RopeFrequencies {
  RopeConstants constants;
  std::int64_t head_width = 0;
  float base = 0;       // theta, or dynamic's raised theta
  double ramp_low = 0;  // yarn
  double ramp_high = 0;
};

/// `longest_position` (of all rows) matters for `dynamic` only.
RopeFrequencies rope_frequencies(const RopeConstants& constants, std::int64_t head_width,
                                 std::int64_t longest_position);

/// Inverse frequency of pair `pair_index` in [0, E/2), f32. Every step rounds to f32 as in Hugging
/// Face, because an angle is position * frequency: one unit in the last place here is 1e-4 radians
/// at position 2,000. Source: the papers of Su et al. 2021 and Peng et al. 2023; Llama 3.1's
/// release.
float inverse_frequency(const RopeFrequencies& frequencies, std::int64_t pair_index);

}  // namespace underkeel::kernels
