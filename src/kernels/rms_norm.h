#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// y = x * rstd * weight, with rstd = 1 / sqrt(mean(x^2) + epsilon) for each group of a row.
/// Shapes:  x, y (rows, groups*C); weight (C); rstd (rows, groups). One group is the usual norm; a norm
///          per head (Qwen3) has as many groups as heads and C = E. y may be x.
/// Types:   x, y, weight share f32, bf16 or f16; rstd is f32. x * rstd is rounded to the storage
///          type before the weight is applied, as in Hugging Face.
/// Source:  Zhang and Sennrich 2019, eq. 4; epsilon inside the root, as in Llama.
struct RmsNormForwardArgs {
  TensorView x;
  TensorView weight;
  TensorView y;
  TensorView rstd;
  std::int64_t groups = 1;
  float epsilon = 1e-5f;
};

/// dx [+]= gradient with respect to x; dweight [+]= gradient with respect to weight.
/// Shapes:  x, dy, dx (rows, groups*C); weight (C); rstd (rows, groups); dweight (C). dx may be dy,
///          unless accumulate_dx.
/// Types:   as forward; dweight has the type of x, or f32.
/// Scratch: rms_norm_backward_scratch_bytes(rows, C) bytes: f32 partial sums per fixed block of rows
///          (all groups of a row together), added in block order.
/// `accumulate_dx` adds to dx (the residual stream's gradient); `accumulate_dweight` to dweight.
/// y, where there is one, gets what the forward pass gave once more, with the same bits; it may be dy.
struct RmsNormBackwardArgs {
  TensorView x;
  TensorView weight;
  TensorView rstd;
  TensorView dy;
  TensorView dx;
  TensorView dweight;
  TensorView scratch;
  TensorView y{};
  std::int64_t groups = 1;
  bool accumulate_dx = false;
  bool accumulate_dweight = false;
};

}  // namespace underkeel::kernels
