#pragma once
// Shapes of well-known models, for tests of sizes. Only what sizes depend on.

#include <fmt/format.h>

#include "spec/model_spec.h"

namespace underkeel::doctor {

struct Shape {
  std::int64_t vocabulary, width, layers, feed_forward, query_heads, key_heads;
  std::int64_t head_width = 0;  // 0: width / query_heads
  bool qkv_bias = false;
  bool tied = false;
  bool qk_norm = false;
};

inline constexpr Shape llama_7b = {32000, 4096, 32, 11008, 32, 32};
inline constexpr Shape llama_8b = {128256, 4096, 32, 14336, 32, 8};
inline constexpr Shape llama_13b = {32000, 5120, 40, 13824, 40, 40};
inline constexpr Shape llama_33b = {32000, 6656, 60, 17920, 52, 52};
inline constexpr Shape llama_70b = {128256, 8192, 80, 28672, 64, 8};
inline constexpr Shape qwen_14b = {152064, 5120, 48, 13824, 40, 8, 128, true};
inline constexpr Shape qwen_32b = {152064, 5120, 64, 27392, 40, 8, 128, true};
inline constexpr Shape qwen_72b = {152064, 8192, 80, 29568, 64, 8, 128, true};
inline constexpr Shape qwen_half = {151936, 896, 24, 4864, 14, 2, 64, true, true};

inline spec::ModelSpec model_of(const Shape& shape) {
  return {.vocabulary = shape.vocabulary,
          .width = shape.width,
          .feed_forward = shape.feed_forward,
          .layers = shape.layers,
          .query_heads = shape.query_heads,
          .key_heads = shape.key_heads,
          .head_width = shape.head_width > 0 ? shape.head_width : shape.width / shape.query_heads,
          .qkv_bias = shape.qkv_bias,
          .qk_norm = shape.qk_norm,
          .tied_head = shape.tied};
}

/// The same as a config.json.
inline std::string model_json(const Shape& shape) {
  return fmt::format(
      R"({{"model_type": "{}", "vocab_size": {}, "hidden_size": {}, "num_hidden_layers": {},
          "intermediate_size": {}, "num_attention_heads": {}, "num_key_value_heads": {},
          "tie_word_embeddings": {}, "torch_dtype": "bfloat16"}})",
      shape.qkv_bias ? "qwen2" : "llama", shape.vocabulary, shape.width, shape.layers,
      shape.feed_forward, shape.query_heads, shape.key_heads, shape.tied);
}

inline spec::ModelSpec llama_2_7b() {
  return model_of(llama_7b);
}
inline spec::ModelSpec llama_3_8b() {
  return model_of(llama_8b);
}
inline spec::ModelSpec qwen2_half_billion() {
  return model_of(qwen_half);
}
inline spec::ModelSpec qwen3_0_6b() {
  return model_of({151936, 1024, 28, 3072, 16, 8, 128, false, true, true});
}
inline spec::ModelSpec qwen2_14b() {
  return model_of({152064, 5120, 48, 13824, 40, 8, 128, true});
}

}  // namespace underkeel::doctor
