#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// out row = weight[token]. Shapes: tokens (rows) i32 in [0, V); weight (V, D); out (rows, D).
struct EmbeddingForwardArgs {
  TensorView tokens;
  TensorView weight;
  TensorView out;
};

/// dweight[token] += dout row, in row order for each token.
/// Types:   dout f32, bf16 or f16; dweight f32 (a gradient that is stored narrower is rounded
/// after). `accumulate` false clears dweight first.
struct EmbeddingBackwardArgs {
  TensorView tokens;
  TensorView dout;
  TensorView dweight;
  bool accumulate = false;
};

}  // namespace underkeel::kernels
