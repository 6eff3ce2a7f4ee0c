#pragma once
// Memory of the HF Trainer's own loop, where no DeepSpeed config is given: nothing is split, and every rank holds all.
// Not here: what the terms mean for a user (memory_rules.cpp).

#include "doctor/deepspeed_sizes.h"
#include "doctor/forecast.h"

namespace underkeel::doctor {

/// Of a trained element: f32 where the run computes in 16 bit under autocast too, 16 bit in pure_bf16.
struct LoopBytes {
  double weight = 4;
  double gradient = 4;
  double moments = 8;  // both
  double total() const { return weight + gradient + moments; }
};
LoopBytes loop_bytes(const DeepspeedSettings& settings);

/// All phases, as deepspeed_memory() gives them. Limits are those given; the verdict is left unknown.
Forecast trainer_loop_memory(const DeepspeedRun& run);

}  // namespace underkeel::doctor
