#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// c = op(a) op(b) [+ c or + addend] [+ bias], with op(x) = x or its transpose.
/// Shapes:  op(a) (M, K); op(b) (K, N); c, addend (M, N); bias (N) or none. Views may have row strides.
/// Types:   a, b share f32, bf16 or f16; c is that type or f32; bias has the type of a, addend
///          that of c. Sums are f32 in one fixed order: depth is cut at multiples of a constant, never by thread count.
/// K = 0:   c is zero, or the addend (or stays, when accumulating).
struct MatmulArgs {
  TensorView a;
  TensorView b;
  TensorView c;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  TensorView bias;     // data == nullptr: none
  TensorView scratch;  // CUDA: what the matrix library may use, cuda_matmul_workspace_bytes
  TensorView addend;   // data == nullptr: none; not with accumulate, and no memory of c's
};

/// sum (C) [+]= column sums of x (rows, C): the gradient of a bias.
/// Types:   x f32, bf16 or f16; sum that type or f32.
struct ColumnSumArgs {
  TensorView x;
  TensorView sum;
  bool accumulate = false;
};

}  // namespace underkeel::kernels
