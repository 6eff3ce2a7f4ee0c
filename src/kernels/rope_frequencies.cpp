#include "kernels/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/rope_wavelength.h"

namespace underkeel::kernels {

namespace {

// The pair whose wave turns `rotations` times within the original length.
double yarn_pair_of(const RopeConstants& constants, double head_width, double rotations) {
  const auto length = static_cast<double>(constants.original_max_position_embeddings);
  return head_width * std::log(length / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(constants.theta));
}

float blend_llama3(const RopeConstants& constants, float frequency) {
  const auto factor = static_cast<float>(constants.factor);
  const auto length = static_cast<double>(constants.original_max_position_embeddings);
  const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wavelength > length / constants.low_freq_factor) return frequency / factor;
  if (wavelength < length / constants.high_freq_factor) return frequency;
  const auto low = static_cast<float>(constants.low_freq_factor);
  const auto span = static_cast<float>(constants.high_freq_factor - constants.low_freq_factor);
  const float smooth = (static_cast<float>(length) / wavelength - low) / span;
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

float blend_yarn(const RopeFrequencies& frequencies, float wavelength, std::int64_t pair_index) {
  const auto low = static_cast<float>(frequencies.ramp_low);
  const auto span = static_cast<float>(frequencies.ramp_high - frequencies.ramp_low);
  const float ramp = std::clamp((static_cast<float>(pair_index) - low) / span, 0.0f, 1.0f);
  const float keep = 1.0f - ramp;
  const auto factor = static_cast<float>(frequencies.constants.factor);
  const float original = 1.0f / wavelength;
  const float stretched = 1.0f / (factor * wavelength);
  return stretched * (1.0f - keep) + original * keep;
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConstants& constants, std::int64_t head_width,
                                 std::int64_t longest_position) {
  RopeFrequencies result{.constants = constants,
                         .head_width = head_width,
                         .base = static_cast<float>(constants.theta)};
  const auto width = static_cast<double>(head_width);
  if (constants.kind == RopeKind::dynamic)
    result.base = raised_theta(constants, head_width, longest_position);
  if (constants.kind == RopeKind::yarn) {
    result.ramp_low = yarn_pair_of(constants, width, constants.beta_fast);
    result.ramp_high = yarn_pair_of(constants, width, constants.beta_slow);
    if (constants.truncate) {
      result.ramp_low = std::floor(result.ramp_low);
      result.ramp_high = std::ceil(result.ramp_high);
    }
    result.ramp_low = std::max(result.ramp_low, 0.0);
    result.ramp_high = std::min(result.ramp_high, width - 1);
    if (result.ramp_low == result.ramp_high) result.ramp_high += 0.001;  // as the paper's code
  }
  return result;
}

float inverse_frequency(const RopeFrequencies& frequencies, std::int64_t pair_index) {
  const RopeConstants& constants = frequencies.constants;
  const float wavelength = pair_wavelength(frequencies.base, frequencies.head_width, pair_index);
  const float frequency = 1.0f / wavelength;
  switch (constants.kind) {
    case RopeKind::plain:
    case RopeKind::dynamic:
      return frequency;
    case RopeKind::linear:
      return frequency / static_cast<float>(constants.factor);
    case RopeKind::llama3:
      return blend_llama3(constants, frequency);
    case RopeKind::yarn:
      return blend_yarn(frequencies, wavelength, pair_index);
  }
  return frequency;
}

}  // namespace underkeel::kernels
