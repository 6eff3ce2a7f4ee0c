#pragma once

#include "tensor/view.h"

namespace underkeel::kernels {

enum class RopeKind { plain, linear, dynamic, llama3, yarn };

/// Constants of the rotary embedding, from config.json. See docs/glossary.md, RoPE.
struct RopeConstants {
  RopeKind kind = RopeKind::plain;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;    // llama3
  double high_freq_factor = 4.0;   // llama3
  double beta_fast = 32.0;         // yarn
  double beta_slow = 1.0;          // yarn
  bool truncate = true;            // yarn
  double attention_scaling = 1.0;  // of cos and sin; worked out when the config is read
  std::int64_t max_position_embeddings = 2048;           // dynamic
  std::int64_t original_max_position_embeddings = 2048;  // llama3, yarn
};

/// Fills cosine and sine (rows, E/2), f32, for positions (rows) i32; multiplied by the attention
/// scaling. `dynamic` reads the longest position of the whole view, as Hugging Face does for a
/// batch.
struct RopeTableArgs {
  TensorView positions;
  TensorView cosine;
  TensorView sine;
  RopeConstants constants;
};

/// Rotates each head of x (rows, heads*E) in place: pair (j, j + E/2) by the row's angle, or by its
/// negative when `inverse` (the backward pass).
/// Types:   x f32, bf16 or f16.
struct RopeApplyArgs {
  TensorView x;
  TensorView cosine;
  TensorView sine;
  std::int64_t head_width = 0;
  bool inverse = false;
};

}  // namespace underkeel::kernels
