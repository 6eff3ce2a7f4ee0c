#pragma once
// Measures what gathers between the GPUs of this machine take.

#include "base/result.h"

namespace underkeel::train {

struct LinkRate {
  double bytes_per_s =
      0;                 // that a GPU receives in a large gather, while the others receive as much
  double latency_s = 0;  // of a small one
};

/// All of the first `gpu_count` GPUs at once, each on a thread of its own; for about `seconds`.
/// Errors:  those of opening GPUs and joining them.
Result<LinkRate> measure_link(int gpu_count, double seconds);

}  // namespace underkeel::train
