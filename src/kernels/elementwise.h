#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// to = from, converting between f32, bf16 and f16 with one rounding. Same shape.
struct CopyArgs {
  TensorView from;
  TensorView to;
};

/// into += from, sum in f32, rounded once to into's type. Same shape; types may differ.
struct AddArgs {
  TensorView from;
  TensorView into;
};

/// Every element becomes `value`. Types: f32, bf16, f16, f64, i32.
struct FillArgs {
  TensorView to;
  double value = 0;
};

}  // namespace underkeel::kernels
