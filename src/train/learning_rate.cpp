// transformers' schedules of the learning rate. Operations stand in its order: a rate is compared
// to the last bit.

#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace underkeel::train {
namespace {

using spec::LearningRateSchedule;
using spec::RampShape;
using std::numbers::pi;

/// `step` optimizer steps are complete, of `total`, `warmup` of them warmup.
struct Moment {
  double step = 0;
  double total = 0;
  double warmup = 0;

  double progress() const { return (step - warmup) / std::max(1.0, total - warmup); }
};

double cosine_wave(double cycles, double progress) {
  return 0.5 * (1.0 + std::cos(pi * cycles * 2.0 * progress));
}

double above(double least, double factor) {
  return std::max(0.0, factor * (1.0 - least) + least);
}

double cosine_from_nothing(const spec::ScheduleOptions& options, const Moment& at) {
  if (at.step < at.warmup) {
    if (!options.warmup_share) return (at.step + 1.0) / std::max(1.0, at.warmup);
    const double share = *options.warmup_share;
    return share + (1.0 - share) * at.step / std::max(1.0, at.warmup - 1.0);
  }
  const double progress = (at.step - at.warmup + 1.0) / std::max(1.0, at.total - at.warmup);
  return above(options.min_share, cosine_wave(options.cycles, progress));
}

double three_stages(const spec::ScheduleOptions& options, const Moment& at) {
  // LLaMA-Factory's division of what follows the warmup; Python's // rounds down.
  const double rest = at.total - at.warmup;
  const double third = std::floor(rest / 3.0);
  const double stable = options.stable_steps ? static_cast<double>(*options.stable_steps) : third;
  const double decay =
      options.decay_steps ? static_cast<double>(*options.decay_steps) : rest - third;
  if (at.step < at.warmup) {
    const double progress = at.step / std::max(1.0, at.warmup);
    double factor = progress;
    if (options.warmup_shape == RampShape::cosine) factor = 0.5 * (1.0 - std::cos(pi * progress));
    if (options.warmup_shape == RampShape::one_minus_sqrt) factor = 1.0 - std::sqrt(1.0 - progress);
    return above(options.min_share, factor);
  }
  if (at.step < at.warmup + stable) return 1.0;
  if (at.step >= at.warmup + stable + decay) return options.min_share;
  const double progress = (at.step - at.warmup - stable) / std::max(1.0, decay);
  double factor = 1.0 - progress;
  if (options.decay_shape == RampShape::cosine) factor = cosine_wave(options.cycles, progress);
  if (options.decay_shape == RampShape::one_minus_sqrt) factor = 1.0 - std::sqrt(progress);
  return above(options.min_share, factor);
}

double power_decay(const spec::ScheduleOptions& options, double base, const Moment& at) {
  if (at.step > at.total) return options.end_rate / base;
  const double left = 1.0 - (at.step - at.warmup) / (at.total - at.warmup);
  const double decay = (base - options.end_rate) * std::pow(left, options.power) + options.end_rate;
  return decay / base;
}

double root_decay(const spec::ScheduleOptions& options, const Moment& at) {
  const double timescale = options.timescale ? static_cast<double>(*options.timescale)
                           : at.warmup > 0   ? at.warmup
                                             : 10000.0;
  return 1.0 / std::sqrt((at.step + (timescale - at.warmup)) / timescale);
}

/// What the base rate is multiplied by.
double factor_at(const spec::OptimizerConfig& config, const Moment& at) {
  const spec::ScheduleOptions& options = config.schedule_options;
  using enum LearningRateSchedule;
  switch (config.schedule) {
    case constant:
    case reduce_lr_on_plateau:
      return 1.0;
    case cosine_warmup_with_min_lr:
      return cosine_from_nothing(options, at);
    case warmup_stable_decay:
      return three_stages(options, at);
    default:
      break;
  }
  if (at.step < at.warmup) return at.step / std::max(1.0, at.warmup);
  switch (config.schedule) {
    case linear:
      return std::max(0.0, (at.total - at.step) / std::max(1.0, at.total - at.warmup));
    case cosine:
      return std::max(0.0, cosine_wave(options.cycles, at.progress()));
    case cosine_with_restarts:
      return at.progress() >= 1.0
                 ? 0.0
                 : std::max(
                       0.0,
                       0.5 * (1.0 + std::cos(pi * std::fmod(options.cycles * at.progress(), 1.0))));
    case polynomial:
      return power_decay(options, config.learning_rate, at);
    case inverse_sqrt:
      return root_decay(options, at);
    case cosine_with_min_lr:
      return above(options.min_share, cosine_wave(options.cycles, at.progress()));
    default:
      return 1.0;  // constant_with_warmup
  }
}

}  // namespace

double learning_rate_at(const spec::OptimizerConfig& config, std::int64_t step_index,
                        std::int64_t total_steps) {
  UK_CHECK(step_index >= 0, "an optimizer step below 0");
  if (config.deepspeed_schedule)
    return deepspeed_rate_at(*config.deepspeed_schedule, config, step_index, total_steps);
  const Moment at{.step = static_cast<double>(step_index),
                  .total = static_cast<double>(total_steps),
                  .warmup = static_cast<double>(spec::warmup_steps_of(config, total_steps))};
  return config.learning_rate * factor_at(config, at);
}

PlateauRate::PlateauRate(const spec::OptimizerConfig& config)
    : options_(config.schedule_options),
      rate_(config.learning_rate),
      best_(options_.larger_is_better ? -std::numeric_limits<double>::infinity()
                                      : std::numeric_limits<double>::infinity()) {}

bool PlateauRate::is_better(double value) const {
  const double threshold = options_.threshold;
  if (options_.larger_is_better)
    return options_.threshold_is_relative ? value > best_ * (threshold + 1.0)
                                          : value > best_ + threshold;
  return options_.threshold_is_relative ? value < best_ * (1.0 - threshold)
                                        : value < best_ - threshold;
}

void PlateauRate::add(double value) {
  if (is_better(value)) {
    best_ = value;
    bad_count_ = 0;
  } else {
    ++bad_count_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_count_ = 0;
  }
  if (bad_count_ <= options_.patience) return;
  const double lower = std::max(rate_ * options_.factor, options_.min_rate);
  if (rate_ - lower > options_.least_change) rate_ = lower;
  cooldown_left_ = options_.cooldown;
  bad_count_ = 0;
}

std::array<float, 4> step_values(const spec::OptimizerConfig& config, std::int64_t step_index,
                                 std::int64_t total_steps) {
  return update_values(config, learning_rate_at(config, step_index, total_steps), step_index + 1);
}

std::array<float, 4> update_values(const spec::OptimizerConfig& config, double rate,
                                   std::int64_t update_count) {
  const auto t = static_cast<double>(update_count);
  return {static_cast<float>(rate), static_cast<float>(1.0 - std::pow(config.beta1, t)),
          static_cast<float>(std::sqrt(1.0 - std::pow(config.beta2, t))), 0.0f};
}

}  // namespace underkeel::train
