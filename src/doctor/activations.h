#pragma once
// What a step needs besides model state under Hugging Face's own model code: activations that wait for the backward
// pass, logits and loss, the context. By architecture, micro-batch, length and recomputation. Pure functions.

#include "spec/model_spec.h"

namespace underkeel::doctor {

struct ActivationQuestion {
  const spec::ModelSpec& model;
  double sequences = 1;              // in a micro-batch, on one rank
  double tokens = 2048;              // of each: padded to the longest
  bool recomputes = true;            // one checkpoint per layer
  double element_bytes = 2;          // of activations
  bool has_eager_attention = false;  // scores are held whole
};

/// From what any implementation must keep to what transformers' eager code keeps. Bytes of one rank.
struct Range {
  double low = 0;
  double high = 0;
};

/// Kept at the end of the forward pass: layer inputs with recomputation, else all that each layer's backward reads.
Range kept_activations(const ActivationQuestion& question);
/// While one layer is recomputed and differentiated, besides what is kept.
Range layer_work(const ActivationQuestion& question);
/// Whole logits in 16 bit and in f32 (low), the loss's log-softmax and gradients on top (high).
Range logits_and_loss(const ActivationQuestion& question);
/// The peak of forward and backward.
Range activation_peak(const ActivationQuestion& question);
/// Of a forward pass alone, without gradients: one layer's working set, and logits.
Range evaluation_peak(const ActivationQuestion& question);

/// Values of one layer that its backward pass needs, for each token: the layer's input, q, k, v, the attention's output,
/// gate and up.
double least_values_per_token(const spec::ModelSpec& model);

}  // namespace underkeel::doctor
