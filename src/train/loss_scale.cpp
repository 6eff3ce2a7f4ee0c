#include "train/loss_scale.h"

#include <algorithm>
#include <cmath>

namespace underkeel::train {

namespace {

// Gradients that are all zero never overflow: the scale must stop growing before f32 ends.
constexpr double largest_scale = 0x1p126;

}  // namespace

LossScale::LossScale(const spec::LossScaleConfig& config)
    : config_(config),
      state_{.scale = config.fixed > 0 ? config.fixed : std::ldexp(1.0, config.initial_power),
             .hysteresis_left = config.hysteresis} {}

LossScale::LossScale(const spec::LossScaleConfig& config, const LossScaleState& state)
    : LossScale(config) {
  if (config.fixed > 0) return;
  state_ = state;
  state_.scale = std::clamp(state_.scale, config.least, largest_scale);
  state_.hysteresis_left = std::clamp<std::int64_t>(state_.hysteresis_left, 1, config.hysteresis);
}

LossScale::Outcome LossScale::step(bool overflowed) {
  if (config_.fixed > 0) return Outcome::goes_on;
  if (overflowed) {
    if (state_.hysteresis_left > 1) {
      --state_.hysteresis_left;
    } else if (state_.scale <= config_.least) {
      return Outcome::cannot_fall;
    } else {
      state_.scale = std::max(state_.scale / 2, config_.least);
    }
    state_.last_overflow_step = state_.steps;
  } else {
    if (config_.refills_hysteresis) state_.hysteresis_left = config_.hysteresis;
    const std::int64_t good_steps = state_.steps - state_.last_overflow_step - 1;
    if (good_steps > 0 && good_steps % config_.window == 0) {
      state_.hysteresis_left = config_.hysteresis;
      state_.scale = std::min(state_.scale * 2, largest_scale);
    }
  }
  ++state_.steps;
  return Outcome::goes_on;
}

}  // namespace underkeel::train
