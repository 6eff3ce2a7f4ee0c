#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// One AdamW step on a run of elements (one tensor's part of one shard), in place.
/// Types:   master, moment1, moment2 f32; gradient f32, bf16 or f16; weight (the model's copy) f32,
/// bf16
///          or f16, or no data when master is the model's copy.
/// step_values (4) f32, read by the kernel: learning rate, 1 - beta1^t, sqrt(1 - beta2^t), unused.
/// clip (4) f32 as written by clip_factor: with finite = 0 nothing changes.
/// Order, with explicit fma (docs/numerics.md): g = gradient * factor; m = b1*m + (1-b1)*g;
///          v = b2*v + (1-b2)*g*g; p -= lr*wd*p; p -= (lr / c1) * m / (sqrt(v)/c2 + eps).
///          All f32 and the same on every backend, bit for bit.
/// The betas are double because 1 - 0.999f is 5e-5 away from 0.001; write 0.999, not 0.999f.
/// Source:  Loshchilov and Hutter 2019; torch.optim.AdamW's order.
struct AdamwArgs {
  TensorView master;
  TensorView moment1;
  TensorView moment2;
  TensorView gradient;
  TensorView weight;
  TensorView step_values;
  TensorView clip;
  double beta1 = 0.9;
  double beta2 = 0.999;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
};

}  // namespace underkeel::kernels
