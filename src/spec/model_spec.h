#pragma once
// A dense decoder model as plain data. A family is one description (spec/families.cpp) that fills
// this in from config.json; nothing later asks which family it was.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace underkeel::spec {

enum class RopeType { plain, linear, dynamic, llama3, yarn };

struct Rope {
  RopeType type = RopeType::plain;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  double attention_scaling = 1.0;  // of cos and sin, worked out
  std::int64_t original_max_position_embeddings = 2048;
};

struct ModelSpec {
  std::string architecture;       // "LlamaForCausalLM"
  std::string model_type;         // "llama"
  std::int64_t vocabulary = 0;    // V
  std::int64_t width = 0;         // D
  std::int64_t feed_forward = 0;  // F
  std::int64_t layers = 0;        // L
  std::int64_t query_heads = 0;   // H
  std::int64_t key_heads = 0;     // K
  std::int64_t head_width = 0;    // E
  double norm_epsilon = 1e-6;
  bool qkv_bias = false;     // on q, k, v
  bool output_bias = false;  // on o
  bool mlp_bias = false;     // on gate, up, down
  bool qk_norm = false;      // RMSNorm over E on q and k before RoPE
  bool tied_head = false;
  std::vector<std::int64_t> windows;  // one per layer; 0 = full causal attention
  Rope rope;
  std::int64_t max_position_embeddings = 2048;
  double initializer_range = 0.02;
  DType stored_type = DType::f32;           // `dtype` / `torch_dtype`
  std::vector<std::int64_t> end_token_ids;  // eos_token_id, one or several; may be empty
  std::int64_t begin_token_id = -1;
};

/// What a parameter is, for weight decay, initialisation and the planner.
enum class ParameterRole { embedding, head, matrix, bias, norm };

struct Parameter {
  std::string name;  // Hugging Face name: "model.layers.3.self_attn.q_proj.weight"
  ParameterRole role = ParameterRole::matrix;
  std::int64_t layer = -1;
  std::int64_t rows = 1;  // matrices are (out, in), row-major; vectors have one row
  std::int64_t columns = 0;
  std::int64_t element_count() const { return rows * columns; }
  std::vector<std::int64_t> shape() const {
    return role == ParameterRole::bias || role == ParameterRole::norm
               ? std::vector<std::int64_t>{columns}
               : std::vector<std::int64_t>{rows, columns};
  }
};

/// All parameters in state-dict order (huggingface order: embed; per layer
/// q,k,v,o,gate,up,down,norms; final norm; head unless tied).
std::vector<Parameter> parameters_of(const ModelSpec& model);
std::int64_t parameter_count(const ModelSpec& model);

/// Reads config.json text. `where` names the file in errors. Every option that would change the
/// numbers and is not supported is an error naming it.
Result<ModelSpec> parse_model_config(std::string_view json_text, std::string_view where);
/// Reads config.json of a model folder, or of the folder that a hub name stands for (see
/// find_model_folder).
Result<ModelSpec> read_model_config(const std::filesystem::path& folder);

/// The folder of a model: `name_or_path` itself when it is a folder, else the snapshot of hub name
/// "org/name" in the local Hugging Face cache (HF_HUB_CACHE, HF_HOME/hub,
/// XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub, the first that is set).
/// Nothing is downloaded.
/// Errors:  not_found with the command that downloads it.
Result<std::filesystem::path> find_model_folder(std::string_view name_or_path);

/// config.json for an exported folder: the text as it was read, key order and spelling untouched,
/// with the type of the stored weights set to `stored_type`. The key keeps its spelling (`dtype` or
/// `torch_dtype`; both when both are there); when there is none, `torch_dtype` is added to a file
/// that spells the rotary embedding in the old way and `dtype` to others.
/// Errors:  bad_file when the text is no JSON object; unsupported for types other than f32, bf16,
/// f16.
Result<std::string> rewrite_model_config(std::string_view original_json, DType stored_type);
/// The text with one entry of its object set to a JSON literal ("false", "0"); the rest untouched.
/// Errors:  bad_file when the text is no JSON object.
Result<std::string> set_config_entry(std::string_view config_json, std::string_view key,
                                     std::string_view literal);

}  // namespace underkeel::spec
