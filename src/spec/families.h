#pragma once
// What one architecture of Hugging Face means: the class defaults of the keys that its config.json
// leaves out, and what its class does with the others. Private to spec.

#include <cstdint>
#include <span>
#include <string_view>

namespace underkeel::spec {

/// Which layers attend through a sliding window.
enum class WindowRule {
  none,         // the class has no sliding window
  every_layer,  // all of them, when sliding_window is a number (Mistral)
  by_layer      // use_sliding_window, then layer_types or max_window_layers (Qwen)
};

/// Where a projection's bias comes from.
enum class BiasRule { never, always, from_key };

struct Family {
  std::string_view architecture;
  std::string_view model_type;

  // Defaults of the class.
  std::int64_t vocabulary = 32000;
  std::int64_t width = 4096;
  std::int64_t feed_forward = 11008;
  std::int64_t layers = 32;
  std::int64_t query_heads = 32;
  std::int64_t key_heads = 0;   // 0: as many as query heads
  std::int64_t head_width = 0;  // 0: width / query heads
  std::int64_t max_position_embeddings = 2048;
  double norm_epsilon = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t sliding_window = 0;
  std::int64_t begin_token_id = -1;
  std::int64_t end_token_id = -1;
  bool tied_head = false;

  // What the class does.
  BiasRule qkv_bias = BiasRule::never;     // key attention_bias
  BiasRule output_bias = BiasRule::never;  // key attention_bias
  BiasRule mlp_bias = BiasRule::never;     // key mlp_bias
  bool qk_norm = false;
  WindowRule windows = WindowRule::none;
};

/// All families that are supported.
std::span<const Family> families();

}  // namespace underkeel::spec
