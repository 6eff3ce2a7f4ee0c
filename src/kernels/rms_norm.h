#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// y = x * rstd * weight, with rstd = 1 / sqrt(mean(x^2) + epsilon) for each row.
/// Shapes:  x, y (rows, C); weight (C); rstd (rows). For a norm per head (Qwen3) the caller passes
///          rows * heads rows of C = E. y may be x.
/// Types:   x, y, weight share f32, bf16 or f16; rstd is f32. x * rstd is rounded to the storage
/// type
///          before the weight is applied, as in Hugging Face.
/// Source:  Zhang and Sennrich 2019, eq. 4; epsilon inside the root, as in Llama.
struct RmsNormForwardArgs {
  TensorView x;
  TensorView weight;
  TensorView y;
  TensorView rstd;
  float epsilon = 1e-5f;
};

/// dx [+]= gradient with respect to x; dweight [+]= gradient with respect to weight.
/// Shapes:  x, dy, dx (rows, C); weight (C); rstd (rows); dweight (C). dx may be dy, unless
///          accumulate_dx.
/// Scratch: rms_norm_backward_scratch_bytes() bytes, f32 partial sums per fixed block of rows,
/// added
///          in block order.
/// `accumulate_dx` adds to dx (the residual stream's gradient); `accumulate_dweight` adds to
/// dweight.
struct RmsNormBackwardArgs {
  TensorView x;
  TensorView weight;
  TensorView rstd;
  TensorView dy;
  TensorView dx;
  TensorView dweight;
  TensorView scratch;
  bool accumulate_dx = false;
  bool accumulate_dweight = false;
};

}  // namespace underkeel::kernels
