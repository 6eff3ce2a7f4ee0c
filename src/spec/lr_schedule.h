#pragma once
// How the learning rate moves over the steps: the schedules of transformers with their options, and
// those of DeepSpeed. Plain data; train/learning_rate.h computes the rates.

#include <cstdint>
#include <optional>

namespace underkeel::spec {

enum class LearningRateSchedule {
  constant,
  constant_with_warmup,
  linear,
  cosine,
  cosine_with_restarts,
  polynomial,
  inverse_sqrt,
  cosine_with_min_lr,
  cosine_warmup_with_min_lr,
  warmup_stable_decay,
  reduce_lr_on_plateau
};

/// Shapes of warmup and decay in warmup_stable_decay.
enum class RampShape { linear, cosine, one_minus_sqrt };

/// lr_scheduler_kwargs, with the defaults of transformers 5.17 and torch 2.11.
struct ScheduleOptions {
  double cycles = 0.5;                       // num_cycles; cosine_with_restarts: 1
  double end_rate = 1e-7;                    // lr_end of polynomial
  double power = 1;                          // of polynomial
  std::optional<std::int64_t> timescale;     // of inverse_sqrt; none: the warmup, else 10,000
  double min_share = 0;                      // of the base rate: min_lr_rate, min_lr_ratio
  std::optional<double> warmup_share;        // warmup_lr_rate
  std::optional<std::int64_t> stable_steps;  // none: a third of what follows the warmup
  std::optional<std::int64_t> decay_steps;   // none: the rest of it
  RampShape warmup_shape = RampShape::linear;
  RampShape decay_shape = RampShape::cosine;
  // reduce_lr_on_plateau
  bool larger_is_better = false;  // mode: max
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  bool threshold_is_relative = true;
  std::int64_t cooldown = 0;
  double min_rate = 0;         // min_lr
  double least_change = 1e-8;  // eps
};

enum class DeepspeedScheduleKind { warmup, warmup_decay, warmup_cosine, one_cycle, range_test };

/// `scheduler` of a DeepSpeed config, with DeepSpeed's defaults; it takes the place of
/// lr_scheduler_type. nullopt: "auto", what the run file gives.
struct DeepspeedSchedule {
  DeepspeedScheduleKind kind = DeepspeedScheduleKind::warmup;
  double min_rate = 0;                       // warmup_min_lr, cycle_min_lr, lr_range_test_min_lr
  std::optional<double> max_rate;            // warmup_max_lr, cycle_max_lr; nullopt: learning_rate
  std::optional<std::int64_t> warmup_steps;  // warmup_num_steps
  std::optional<std::int64_t> total_steps;   // total_num_steps
  bool warmup_is_logarithmic = true;         // warmup_type
  double warmup_min_ratio = 0;
  double cos_min_ratio = 1e-4;
  std::int64_t first_steps = 2000;  // cycle_first_step_size
  std::int64_t second_steps = 2000;
  std::int64_t first_stairs = 0;  // cycle_first_stair_count
  std::int64_t second_stairs = 0;
  double decay_rate = 0;         // decay_lr_rate
  std::int64_t decay_steps = 0;  // decay_step_size
  double test_steps = 2000;      // lr_range_test_step_size
  double test_rate = 1;          // lr_range_test_step_rate
  bool test_is_staircase = false;
};

}  // namespace underkeel::spec
