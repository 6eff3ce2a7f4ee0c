#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// Loss of one chunk of rows, and its gradient written over the logits.
/// Shapes:  logits (rows, V); targets (rows) i32, already shifted, ignore_target = not trained;
///          loss (1) f64: the sum over trained rows is added to it; gradient_scale (1) f32: what
///          each row's gradient is multiplied by (1 / trained tokens of the whole window).
/// Types:   logits f32, bf16 or f16; the softmax is f32 with its sum in f32 or wider.
/// `with_gradient` false (evaluation) leaves the logits undefined. Ignored rows get zero gradient.
/// Rows are added to the loss in order, in double.
struct CrossEntropyArgs {
  TensorView logits;
  TensorView targets;
  TensorView loss;
  TensorView gradient_scale;
  bool with_gradient = true;
  TensorView scratch;  // CUDA: cross_entropy_scratch_bytes(rows), the loss of each row
};

constexpr std::int32_t ignore_target = -100;

}  // namespace underkeel::kernels
