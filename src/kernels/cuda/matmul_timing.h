#pragma once
// Which of several ways to do the same work is the quickest while the GPU is at its power limit, as it is in a step:
// there a way that needs less energy wins, which one call alone does not show.

#include <functional>

#include <cuda_runtime_api.h>

namespace underkeel::kernels::cuda {

struct Timing {
  int best = 0;
  double seconds = 0;  // that went into it
};

/// Runs the candidates, which queue their work on `stream`, one after the other: a few calls each to leave out the
/// slow ones, then rounds of the best four. The first stays unless another is quicker by more than clocks vary.
/// A candidate that returns false does not work and is left out; all of them: the first.
Timing time_candidates(int count, cudaStream_t stream, const std::function<bool(int)>& run);

}  // namespace underkeel::kernels::cuda
