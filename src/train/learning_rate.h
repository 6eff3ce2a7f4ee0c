#pragma once
// The learning rate of each optimizer step, and the step values that the AdamW kernel reads.

#include <array>
#include <cstdint>

#include "spec/run_config.h"

namespace underkeel::train {

/// Steps of linear warmup: warmup_steps, else ceil(total_steps * warmup_ratio) as computed in
/// double. The constant schedule has none whatever the keys say.
std::int64_t warmup_steps_of(const spec::OptimizerConfig& config, std::int64_t total_steps);

/// The rate of optimizer step `step_index` (from 0) of `total_steps`. The first step of a warmup
/// has rate 0.
/// Source:  transformers' get_*_schedule_with_warmup, in the same order of double operations.
double learning_rate_at(const spec::OptimizerConfig& config, std::int64_t step_index,
                        std::int64_t total_steps);

/// AdamwArgs::step_values of optimizer step `step_index`: {rate, 1 - beta1^t, sqrt(1 - beta2^t), 0}
/// with t = step_index + 1; computed in double, rounded once.
std::array<float, 4> step_values(const spec::OptimizerConfig& config, std::int64_t step_index,
                                 std::int64_t total_steps);

}  // namespace underkeel::train
