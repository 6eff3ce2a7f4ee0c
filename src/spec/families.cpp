// The supported families, one description each. Adding a family whose layers differ only in these
// fields is adding one entry here.
// Defaults are those of the configuration classes of transformers 5.17 (models/*/configuration_*);
// tests/spec/goldens/families.json, made by scripts/make_family_goldens.py, holds them to it.

#include "spec/families.h"

#include <array>

namespace underkeel::spec {
namespace {

constexpr Family llama = {
    .architecture = "LlamaForCausalLM",
    .model_type = "llama",
    .begin_token_id = 1,
    .end_token_id = 2,
    .qkv_bias = BiasRule::from_key,
    .output_bias = BiasRule::from_key,
    .mlp_bias = BiasRule::from_key,
};

constexpr Family mistral = {
    .architecture = "MistralForCausalLM",
    .model_type = "mistral",
    .feed_forward = 14336,
    .key_heads = 8,
    .max_position_embeddings = 131072,
    .sliding_window = 4096,
    .begin_token_id = 1,
    .end_token_id = 2,
    .windows = WindowRule::every_layer,
};

constexpr Family qwen2 = {
    .architecture = "Qwen2ForCausalLM",
    .model_type = "qwen2",
    .vocabulary = 151936,
    .feed_forward = 22016,
    .key_heads = 32,
    .max_position_embeddings = 32768,
    .sliding_window = 4096,
    .qkv_bias = BiasRule::always,
    .windows = WindowRule::by_layer,
};

constexpr Family qwen3 = {
    .architecture = "Qwen3ForCausalLM",
    .model_type = "qwen3",
    .vocabulary = 151936,
    .feed_forward = 22016,
    .key_heads = 32,
    .head_width = 128,
    .max_position_embeddings = 32768,
    .sliding_window = 4096,
    .qkv_bias = BiasRule::from_key,
    .output_bias = BiasRule::from_key,
    .qk_norm = true,
    .windows = WindowRule::by_layer,
};

constexpr std::array all_families = {llama, mistral, qwen2, qwen3};

}  // namespace

std::span<const Family> families() {
  return all_families;
}

}  // namespace underkeel::spec
