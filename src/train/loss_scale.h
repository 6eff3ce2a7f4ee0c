#pragma once
// The loss scale of an fp16 run: what the loss is multiplied by so that small gradients do not vanish, and
// how it follows overflows.

#include <cstdint>

#include "base/result.h"
#include "spec/run_config.h"

namespace underkeel::train {

/// What the rule remembers between steps; a checkpoint keeps it.
struct LossScaleState {
  double scale = 1;
  std::int64_t hysteresis_left = 1;
  std::int64_t steps = 0;                // with and without overflow
  std::int64_t last_overflow_step = -1;  // counted from 0

  bool operator==(const LossScaleState&) const = default;
};

/// DeepSpeed's rule, at every ZeRO stage: an overflow uses up hysteresis, then halves; `window` good steps
/// in a row double. A fixed scale never changes.
/// Source:  DeepSpeed 0.19, runtime/fp16/loss_scaler.py.
class LossScale {
 public:
  /// As at the first step.
  explicit LossScale(const spec::LossScaleConfig& config);
  /// As it was when the state was kept. A scale that the config has fixed since then stays fixed.
  LossScale(const spec::LossScaleConfig& config, const LossScaleState& state);

  double scale() const { return state_.scale; }
  const LossScaleState& state() const { return state_; }

  enum class Outcome { goes_on, cannot_fall };
  /// After a step. cannot_fall: it overflowed at the least scale, nothing is left to try.
  Outcome step(bool overflowed);

 private:
  spec::LossScaleConfig config_;
  LossScaleState state_;
};

}  // namespace underkeel::train
