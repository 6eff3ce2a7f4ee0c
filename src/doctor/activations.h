#pragma once
// What a step needs besides model state under Hugging Face's own model code: activations that wait for the backward
// pass, logits and loss, by architecture, micro-batch, length and recomputation. Pure functions; the counts of bytes are
// those that scripts/measure_activations.py measured (bench/results/2026-12-activations.md).

#include "spec/model_spec.h"

namespace underkeel::doctor {

struct ActivationQuestion {
  const spec::ModelSpec& model;
  double sequences = 1;              // in a micro-batch, on one rank
  double tokens = 2048;              // of each: padded to the longest
  bool recomputes = true;            // one checkpoint per layer
  double element_bytes = 2;          // of activations
  bool has_eager_attention = false;  // scores are held whole
  bool has_fused_kernels = false;    // norms, SwiGLU and loss that keep less (Liger, Unsloth)
  bool is_lora = false;              // the base, its norms too, is frozen
  bool adapts_all = true;            // of LoRA: each linear layer has an adapter
  bool has_adapter_dropout = false;
};

/// From the least to the most over versions of transformers and torch; with kernels that keep less, from what any
/// implementation must keep. Bytes of one rank.
struct Range {
  double low = 0;
  double high = 0;
};

/// Kept at the end of the forward pass, logits apart: layer inputs with recomputation, else all that each layer's backward
/// reads, and the last norm's.
Range kept_activations(const ActivationQuestion& question);
/// While one layer is differentiated, and computed again before where it is: besides layer inputs, or what is kept.
Range layer_work(const ActivationQuestion& question);
/// Logits, log-softmax and their gradients where the loss's backward begins.
Range logits_and_loss(const ActivationQuestion& question);
/// The peak of forward and backward.
Range activation_peak(const ActivationQuestion& question);

/// Of a backward pass: where it begins, and while it goes through the layers.
struct BackwardActivations {
  Range loss;    // all that is kept, with logits and loss
  Range layers;  // of layers that it has not come to: in proportion to their number
  Range work;    // of the layer that it is at
};
BackwardActivations backward_activations(const ActivationQuestion& question);
/// Of a forward pass alone, without gradients: one layer's working set, or logits.
Range evaluation_peak(const ActivationQuestion& question);

/// Values of one layer that its backward pass needs, for each token: the layer's input, q, k, v, the attention's output,
/// gate and up.
double least_values_per_token(const spec::ModelSpec& model);

/// What eager attention keeps of one layer's scores for its backward pass.
double score_bytes_of_layer(const ActivationQuestion& question);

/// Whether scores may be held whole though nobody asked for it: torch's fused kernels want 16 bit where keys are shared by
/// query heads.
bool may_fall_back_to_scores(const ActivationQuestion& question);

}  // namespace underkeel::doctor
