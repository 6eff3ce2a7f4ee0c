#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// sum (1) f64 [+]= sum of x^2 over a run of elements.
/// Order:   blocks of sum_squares_block elements from the start of x; inside a block 16 interleaved
/// f32
///          accumulators by fma, added pairwise in double; blocks added in order in double. The
///          same on every backend.
struct SumSquaresArgs {
  TensorView x;    // one row; f32, bf16 or f16
  TensorView sum;  // (1) f64
  bool accumulate = false;
  TensorView scratch;  // CUDA: sum_squares_scratch_bytes(elements), the sum of each block
};

constexpr std::int64_t sum_squares_block = 16'384;

/// From the per-shard sums of all ranks: the global gradient norm and what to multiply gradients
/// by. Shapes:  sums (S) f64, added in order; out (4) f32: norm, clip factor, finite (1 or 0),
/// unused; loss_scale (1) f32, what the gradients are larger by, or no data for 1.
/// norm = sqrt(sum) / loss_scale; factor = min(1, max_norm / (norm + 1e-6)) / loss_scale as torch
/// and DeepSpeed do; max_norm <= 0: no clipping, factor 1 / loss_scale. Not finite: finite = 0 and
/// factor 0.
struct ClipFactorArgs {
  TensorView sums;
  TensorView out;
  TensorView loss_scale;
  float max_norm = 0;
};

}  // namespace underkeel::kernels
