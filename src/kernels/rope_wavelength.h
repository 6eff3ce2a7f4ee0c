#pragma once
// The two formulas of the rotary embedding that a GPU evaluates itself, because with `dynamic` they depend
// on positions that only it has.

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "kernels/rope.h"

namespace underkeel::kernels {

/// Theta as `dynamic` raises it for a batch whose longest position this is; theta itself up to the model's
/// own length. Steps round to f32 as in Hugging Face.
UK_HOST_DEVICE inline float raised_theta(const RopeConstants& constants, std::int64_t head_width,
                                         std::int64_t longest_position) {
  if (head_width <= 2) return static_cast<float>(constants.theta);
  const auto width = static_cast<double>(head_width);
  const std::int64_t known = constants.max_position_embeddings;
  const std::int64_t length = longest_position + 1 > known ? longest_position + 1 : known;
  const float stretch = static_cast<float>(constants.factor) * static_cast<float>(length) /
                            static_cast<float>(known) -
                        static_cast<float>(constants.factor - 1);
  const auto power = static_cast<float>(pow(
      static_cast<double>(stretch), static_cast<double>(static_cast<float>(width / (width - 2)))));
  return static_cast<float>(constants.theta) * power;
}

/// base^(2j/E), with the exponent and the power each rounded to f32.
UK_HOST_DEVICE inline float pair_wavelength(float base, std::int64_t head_width,
                                            std::int64_t pair_index) {
  const float exponent = static_cast<float>(2 * pair_index) / static_cast<float>(head_width);
  return static_cast<float>(pow(static_cast<double>(base), static_cast<double>(exponent)));
}

}  // namespace underkeel::kernels
