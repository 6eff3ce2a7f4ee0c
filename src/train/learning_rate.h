#pragma once
// The learning rate of each optimizer step, and the step values that the AdamW kernel reads.

#include <array>
#include <cstdint>

#include "spec/run_config.h"

namespace underkeel::train {

/// The rate of optimizer step `step_index` (from 0) of `total_steps`. The first step of a warmup
/// has rate 0. DeepSpeed's schedule when the run has one. reduce_lr_on_plateau is the base rate
/// here: PlateauRate follows the evaluations.
/// Source:  transformers' get_*_schedule_with_warmup, in the same order of double operations.
double learning_rate_at(const spec::OptimizerConfig& config, std::int64_t step_index,
                        std::int64_t total_steps);

/// The same for DeepSpeed's schedules, whose counter starts one step late: the first update has the
/// constructor's rate, update n the rate of counter n - 2.
/// Source:  DeepSpeed 0.19, runtime/lr_schedules.py, in the same order of double operations.
double deepspeed_rate_at(const spec::DeepspeedSchedule& schedule,
                         const spec::OptimizerConfig& config, std::int64_t step_index,
                         std::int64_t total_steps);

/// reduce_lr_on_plateau: the rate falls by a factor when evaluations have stopped getting better.
/// A function of the evaluations alone, so a resumed run finds it from its history.
/// Source:  torch.optim.lr_scheduler.ReduceLROnPlateau.
class PlateauRate {
 public:
  explicit PlateauRate(const spec::OptimizerConfig& config);

  void add(double value);  // of one evaluation
  double rate() const { return rate_; }

 private:
  bool is_better(double value) const;

  spec::ScheduleOptions options_;
  double rate_;
  double best_;
  std::int64_t bad_count_ = 0;
  std::int64_t cooldown_left_ = 0;
};

/// AdamwArgs::step_values of the `update_count`-th update (from 1): {rate, 1 - beta1^t,
/// sqrt(1 - beta2^t), 0} with t = update_count; computed in double, rounded once.
std::array<float, 4> update_values(const spec::OptimizerConfig& config, double rate,
                                   std::int64_t update_count);
/// The same of optimizer step `step_index` (from 0) at its rate by learning_rate_at().
std::array<float, 4> step_values(const spec::OptimizerConfig& config, std::int64_t step_index,
                                 std::int64_t total_steps);

}  // namespace underkeel::train
