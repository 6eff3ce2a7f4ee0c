#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// out = silu(gate) * up. Shapes: all (rows, F). Types: f32, bf16 or f16. out may be gate or up.
struct SwigluForwardArgs {
  TensorView gate;
  TensorView up;
  TensorView out;
};

/// dgate, dup from dout. dgate may be gate, dup may be up or dout. `out`, unless it is empty, is set as
/// swiglu_forward() sets it; it may be dout if dup is not.
struct SwigluBackwardArgs {
  TensorView gate;
  TensorView up;
  TensorView dout;
  TensorView dgate;
  TensorView dup;
  TensorView out;
};

}  // namespace underkeel::kernels
