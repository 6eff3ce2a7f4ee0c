#pragma once
// Writes small model folders for the tests of this layer.

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/model_shards.h"
#include "io/safetensors.h"
#include "io/temp_folder.h"

namespace underkeel::io {

/// Writes one file whose tensors are filled with `fill` (0x3c: small numbers in every float type).
inline void write_weights(FileSystem& files, const std::string& path,
                          const std::vector<TensorSpec>& tensors,
                          std::byte fill = std::byte{0x3c}) {
  const auto layout = lay_out_safetensors(tensors).value();
  File file = create_safetensors(files, path, layout).value();
  for (const TensorEntry& tensor : layout.tensors) {
    const std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()), fill);
    EXPECT_TRUE(file.write(bytes, tensor.begin));
  }
}

inline void write_shards(FileSystem& files, const std::string& folder,
                         const std::vector<WeightShard>& shards) {
  for (const WeightShard& shard : shards)
    write_weights(files, join_path(folder, shard.file), shard.tensors);
  if (const std::string index = weight_index_json(shards).value(); !index.empty())
    put(join_path(folder, "model.safetensors.index.json"), index);
}

/// Overwrites bytes of one tensor.
inline void poke(FileSystem& files, const std::string& path, std::string_view tensor,
                 std::int64_t at_byte, std::vector<std::byte> bytes) {
  const auto header = read_safetensors_header(files, path).value();
  File file = files.open_for_update(path).value();
  EXPECT_TRUE(file.write(bytes, header.find(tensor)->begin + at_byte));
}

/// A two-layer Llama with a head: 21 tensors, 106,816 parameters.
inline std::vector<TensorSpec> tiny_llama(bool with_head = true, DType type = DType::bf16) {
  std::vector<TensorSpec> tensors = {{"model.embed_tokens.weight", type, {256, 64}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "self_attn.q_proj.weight", type, {64, 64}});
    tensors.push_back({layer + "self_attn.k_proj.weight", type, {32, 64}});
    tensors.push_back({layer + "self_attn.v_proj.weight", type, {32, 64}});
    tensors.push_back({layer + "self_attn.o_proj.weight", type, {64, 64}});
    tensors.push_back({layer + "mlp.gate_proj.weight", type, {128, 64}});
    tensors.push_back({layer + "mlp.up_proj.weight", type, {128, 64}});
    tensors.push_back({layer + "mlp.down_proj.weight", type, {64, 128}});
    tensors.push_back({layer + "input_layernorm.weight", type, {64}});
    tensors.push_back({layer + "post_attention_layernorm.weight", type, {64}});
  }
  tensors.push_back({"model.norm.weight", type, {64}});
  if (with_head) tensors.push_back({"lm_head.weight", type, {256, 64}});
  return tensors;
}

}  // namespace underkeel::io
