// Four schedules of the learning rate.

#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace underkeel::train {

std::int64_t warmup_steps_of(const spec::OptimizerConfig& config, std::int64_t total_steps) {
  if (config.schedule == spec::LearningRateSchedule::constant) return 0;
  if (config.warmup_steps > 0) return config.warmup_steps;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(total_steps) * config.warmup_ratio));
}

double learning_rate_at(const spec::OptimizerConfig& config, std::int64_t step_index,
                        std::int64_t total_steps) {
  UK_CHECK(step_index >= 0, "an optimizer step below 0");
  using enum spec::LearningRateSchedule;
  const auto step = static_cast<double>(step_index);
  const auto total = static_cast<double>(total_steps);
  const auto warmup = static_cast<double>(warmup_steps_of(config, total_steps));
  if (step < warmup) return config.learning_rate * (step / warmup);
  const double decay_steps = std::max(1.0, total - warmup);
  switch (config.schedule) {
    case constant:
    case constant_with_warmup:
      return config.learning_rate;
    case linear:
      return config.learning_rate * std::max(0.0, (total - step) / decay_steps);
    case cosine: {
      // Half a cycle; transformers multiplies pi by 2 x 0.5 first, which is exact.
      const double progress = (step - warmup) / decay_steps;
      return config.learning_rate *
             std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
    }
  }
  UK_CHECK(false, "a schedule that is not one of the four");
}

std::array<float, 4> step_values(const spec::OptimizerConfig& config, std::int64_t step_index,
                                 std::int64_t total_steps) {
  const auto t = static_cast<double>(step_index + 1);
  return {static_cast<float>(learning_rate_at(config, step_index, total_steps)),
          static_cast<float>(1.0 - std::pow(config.beta1, t)),
          static_cast<float>(std::sqrt(1.0 - std::pow(config.beta2, t))), 0.0f};
}

}  // namespace underkeel::train
