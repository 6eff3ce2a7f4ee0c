#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

/// Causal attention inside each sequence of the flat micro-batch, in tiles: no S x S matrix exists.
/// Shapes:  q, out (rows, H*E); k, v (rows, K*E); lse (rows, H), log of the sum of exponentials;
///          sequence_starts (rows + 1) i32, ascending from 0; entries after the last sequence equal
///          `rows`, so a sequence may be empty and their count need not be known.
/// Types:   q, k, v, out share f32, bf16 or f16; lse is f32.
/// `window` > 0: key j is visible to query i only when i - j < window. Head h reads key head h /
/// (H/K).
struct AttentionForwardArgs {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView sequence_starts;
  TensorView out;
  TensorView lse;
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t window = 0;
  float scale = 1.0f;
};

/// Attention of the newest rows of one sequence, whose earlier keys and values a cache holds. The new ones are
/// added to it first.
/// Shapes:  q, out (rows, H*E); k, v (rows, K*E); keys, values (most, K*E), of which the first positions[0] rows
///          are read and the next `rows` written; positions (rows) i32: row i has position positions[0] + i.
/// Types:   all share f32, bf16 or f16.
/// Order:   that of attention_forward over the whole sequence, so results have the same bits.
/// `window` and heads as in attention_forward.
struct AttentionCachedArgs {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView positions;
  TensorView keys;
  TensorView values;
  TensorView out;
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t window = 0;
  float scale = 1.0f;
};

/// Gradients of attention_forward from its saved out and lse. Deterministic.
/// Shapes:  dq as q; dk, dv as k. dout may not alias anything.
///          cosine, sine, where there are any: as of RopeApplyArgs; dq and dk are then turned back, as by
///          rope_apply with `inverse`, and have its bits.
/// Scratch: attention_backward_scratch_bytes() bytes, f32.
struct AttentionBackwardArgs {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView sequence_starts;
  TensorView out;
  TensorView lse;
  TensorView dout;
  TensorView dq;
  TensorView dk;
  TensorView dv;
  TensorView scratch;
  TensorView cosine{};
  TensorView sine{};
  std::int64_t query_heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t head_width = 0;
  std::int64_t window = 0;
  float scale = 1.0f;
};

}  // namespace underkeel::kernels
