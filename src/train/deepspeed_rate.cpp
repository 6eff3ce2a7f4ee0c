// DeepSpeed's schedules of the learning rate.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/learning_rate.h"

namespace underkeel::train {
namespace {

using spec::DeepspeedSchedule;

/// The rising part: 0 to 1 over `warmup` counts.
double warmup_share(const DeepspeedSchedule& schedule, double counter, double warmup) {
  return schedule.warmup_is_logarithmic ? 1.0 / std::log(warmup) * std::log(counter + 1.0)
                                        : counter / warmup;
}

double cosine_ratio(const DeepspeedSchedule& schedule, double counter, double warmup,
                    double total) {
  if (counter < warmup)
    return schedule.warmup_min_ratio +
           warmup_share(schedule, counter, warmup) * (1.0 - schedule.warmup_min_ratio);
  const double progress = std::min(1.0, (counter - warmup + 1.0) / std::max(1.0, total - warmup));
  const double wave = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return std::max(0.0, schedule.cos_min_ratio + (1.0 - schedule.cos_min_ratio) * wave);
}

double cycle_share(const DeepspeedSchedule& schedule, double batch) {
  const auto first = static_cast<double>(schedule.first_steps);
  const auto second = static_cast<double>(schedule.second_steps);
  const double total = first + second;
  const double ratio = first / total;
  const double x = 1.0 + batch / total - std::floor(1.0 + batch / total);
  const bool rises = x <= ratio;
  const auto stairs = static_cast<double>(rises ? schedule.first_stairs : schedule.second_stairs);
  if (stairs == 0) return rises ? x / ratio : (x - 1.0) / (ratio - 1.0);
  const double place = std::fmod(batch, total);
  const double position =
      place <= first ? place * stairs / first : (total - place) * stairs / second;
  return std::floor(position) / stairs;
}

double one_cycle(const DeepspeedSchedule& schedule, double max_rate, double counter) {
  const auto total = static_cast<double>(schedule.first_steps + schedule.second_steps);
  if (counter < total)
    return schedule.min_rate +
           (max_rate - schedule.min_rate) * cycle_share(schedule, counter + 1.0);
  if (schedule.decay_steps == 0 || schedule.decay_rate == 0) return schedule.min_rate;
  const double intervals = (counter - total + 1.0) / static_cast<double>(schedule.decay_steps);
  return schedule.min_rate / (1.0 + schedule.decay_rate * intervals);
}

}  // namespace

double deepspeed_rate_at(const DeepspeedSchedule& schedule, const spec::OptimizerConfig& config,
                         std::int64_t step_index, std::int64_t total_steps) {
  using Kind = spec::DeepspeedScheduleKind;
  const bool is_first = step_index == 0;
  const auto counter = static_cast<double>(step_index - 1);
  const double max_rate = schedule.max_rate.value_or(config.learning_rate);
  const auto warmup = static_cast<double>(std::max<std::int64_t>(
      2, schedule.warmup_steps.value_or(spec::warmup_steps_of(config, total_steps))));
  const auto total = static_cast<double>(schedule.total_steps.value_or(total_steps));
  const double rise = max_rate - schedule.min_rate;
  switch (schedule.kind) {
    case Kind::warmup_cosine:
      return is_first ? 0.0 : config.learning_rate * cosine_ratio(schedule, counter, warmup, total);
    case Kind::one_cycle:
      return is_first ? schedule.min_rate : one_cycle(schedule, max_rate, counter);
    case Kind::range_test: {
      if (is_first) return schedule.min_rate;
      const double intervals = (counter + 1.0) / schedule.test_steps;
      return schedule.min_rate *
             (1.0 + schedule.test_rate *
                        (schedule.test_is_staircase ? std::floor(intervals) : intervals));
    }
    case Kind::warmup:
    case Kind::warmup_decay:
      break;
  }
  if (is_first) return schedule.min_rate;
  double share = 1.0;
  if (counter < warmup)
    share = warmup_share(schedule, counter, warmup);
  else if (schedule.kind == Kind::warmup_decay)
    share = std::max(0.0, (total - counter) / std::max(1.0, total - warmup));
  return schedule.min_rate + rise * share;
}

}  // namespace underkeel::train
