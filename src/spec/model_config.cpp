// config.json into a ModelSpec. What changes the numbers is honoured or refused by name; what does
// not (documentation, inference settings) is passed over as transformers does.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "spec/families.h"
#include "spec/fields.h"
#include "spec/json_reader.h"
#include "spec/model_spec.h"
#include "spec/rope_config.h"

namespace underkeel::spec {
namespace {

// Several times the largest dense models there are, and small enough that no product of sizes and
// bytes reaches 2^63: 2 V D + L (4 D H E + 3 D F) < 2^54 elements.
constexpr std::int64_t most_vocabulary = std::int64_t{1} << 24;
constexpr std::int64_t most_width = std::int64_t{1} << 18;
constexpr std::int64_t most_feed_forward = std::int64_t{1} << 20;
constexpr std::int64_t most_layers = 4096;
constexpr std::int64_t most_attention_width = std::int64_t{1} << 20;  // H*E

/// Keys that transformers reads in some class and that change the numbers there. Anything but the
/// neutral values is refused.
struct RefusedKey {
  std::string_view key;
  double neutral = 0;
  std::string_view what;
};
constexpr std::array refused_keys = {
    RefusedKey{"attention_dropout", 0, "dropout in attention"},
    RefusedKey{"partial_rotary_factor", 1, "rotating only a part of each head"},
    RefusedKey{"attn_logit_softcapping", 0, "soft-capping of attention scores"},
    RefusedKey{"final_logit_softcapping", 0, "soft-capping of logits"},
    RefusedKey{"query_pre_attn_scalar", 0, "a score scale of its own"},
    RefusedKey{"attention_multiplier", 0, "a score scale of its own"},
    RefusedKey{"embedding_multiplier", 1, "scaled embeddings"},
    RefusedKey{"residual_multiplier", 1, "scaled residuals"},
    RefusedKey{"logits_scaling", 1, "scaled logits"},
    RefusedKey{"logit_scale", 1, "scaled logits"},
    RefusedKey{"scale_emb", 1, "scaled embeddings"},
    RefusedKey{"clip_qkv", 0, "clipping of q, k and v"},
    RefusedKey{"num_experts", 0, "a mixture of experts"},
    RefusedKey{"num_local_experts", 0, "a mixture of experts"},
    RefusedKey{"n_routed_experts", 0, "a mixture of experts"},
    RefusedKey{"moe_intermediate_size", 0, "a mixture of experts"},
    RefusedKey{"num_nextn_predict_layers", 0, "prediction of several tokens at once"},
    RefusedKey{"is_encoder_decoder", 0, "an encoder-decoder model"},
    RefusedKey{"add_cross_attention", 0, "cross attention"},
    RefusedKey{"quantization_config", 0, "quantised weights in the base model"},
    RefusedKey{"compression_config", 0, "compressed weights in the base model"},
    RefusedKey{"per_layer_config", 0, "settings of their own for single layers"},
    RefusedKey{"use_mrope", 0, "a rotary embedding of several axes"},
    RefusedKey{"no_rope_layers", 0, "layers without rotary embedding"},
};

/// Keys that do not change training: written by transformers, or settings of inference.
constexpr std::array harmless_keys = {"transformers_version",
                                      "use_cache",
                                      "pretraining_tp",
                                      "pad_token_id",
                                      "output_attentions",
                                      "return_dict",
                                      "torchscript",
                                      "output_hidden_states",
                                      "name_or_path",
                                      "auto_map",
                                      "id2label",
                                      "chunk_size_feed_forward",
                                      "num_labels",
                                      "label2id",
                                      "problem_type",
                                      "attn_implementation",
                                      "is_decoder",
                                      "pruned_heads",
                                      "use_bfloat16",
                                      "tf_legacy_loss",
                                      "finetuning_task",
                                      "tokenizer_class",
                                      "prefix",
                                      "sep_token_id",
                                      "decoder_start_token_id",
                                      "cross_attention_hidden_size",
                                      "task_specific_params",
                                      "tie_encoder_decoder",
                                      "temperature",
                                      "top_p",
                                      "top_k",
                                      "typical_p",
                                      "do_sample",
                                      "max_length",
                                      "min_length",
                                      "num_beams",
                                      "num_beam_groups",
                                      "diversity_penalty",
                                      "repetition_penalty",
                                      "length_penalty",
                                      "no_repeat_ngram_size",
                                      "encoder_no_repeat_ngram_size",
                                      "bad_words_ids",
                                      "num_return_sequences",
                                      "output_scores",
                                      "return_dict_in_generate",
                                      "early_stopping",
                                      "forced_bos_token_id",
                                      "forced_eos_token_id",
                                      "suppress_tokens",
                                      "begin_suppress_tokens",
                                      "remove_invalid_values",
                                      "exponential_decay_length_penalty"};

bool is_neutral(const Value& value, double neutral) {
  if (value.kind == ValueKind::null) return true;
  if (value.kind == ValueKind::boolean) return value.boolean == (neutral != 0);
  if (value.kind == ValueKind::number) return to_double(value) == neutral;
  return (value.kind == ValueKind::list && value.items.empty()) ||
         (value.kind == ValueKind::mapping && value.entries.empty());
}

std::string supported_architectures() {
  std::string text;
  for (const Family& family : families())
    text += (text.empty() ? "" : ", ") + std::string(family.architecture);
  return text;
}

/// The family that `architectures` and `model_type` name; null after a problem.
const Family* find_family(Fields& fields, const Problems& problems) {
  const auto unsupported = [&](std::string_view key, std::string_view name) -> const Family* {
    fields.problem(key, fmt::format("`{}` is not supported", name),
                   "supported are " + supported_architectures(), ErrorCode::unsupported);
    return nullptr;
  };
  const auto model_type = fields.text("model_type");
  const auto architectures = fields.words("architectures");
  if (architectures && architectures->size() > 1) {
    fields.problem("architectures", "more than one architecture is named");
    return nullptr;
  }
  const bool has_architecture = architectures && !architectures->empty();
  if (has_architecture) {
    const std::string& name = architectures->front();
    for (const Family& family : families()) {
      if (family.architecture != name) continue;
      if (model_type && *model_type != family.model_type) {
        fields.problem("model_type",
                       fmt::format("`{}` does not belong to architecture `{}`, whose model_type "
                                   "is `{}`",
                                   *model_type, name, family.model_type));
        return nullptr;
      }
      return &family;
    }
    return unsupported("architectures", name);
  }
  if (!model_type) {
    // A value of the wrong kind has been told already.
    if (problems.empty())
      fields.problem("architectures", "neither `architectures` nor `model_type` is given");
    return nullptr;
  }
  for (const Family& family : families())
    if (family.model_type == *model_type) return &family;
  return unsupported("model_type", *model_type);
}

void read_shape(Fields& fields, const Family& family, ModelSpec& model) {
  const auto size = [&](std::string_view key, std::int64_t most, std::int64_t fallback) {
    return fields.integer(key, {1, most}).value_or(fallback);
  };
  model.vocabulary = size("vocab_size", most_vocabulary, family.vocabulary);
  model.width = size("hidden_size", most_width, family.width);
  model.feed_forward = size("intermediate_size", most_feed_forward, family.feed_forward);
  model.layers = size("num_hidden_layers", most_layers, family.layers);
  model.query_heads = size("num_attention_heads", most_attention_width, family.query_heads);
  // Left out means the class's own number; null, as many as query heads.
  const bool own_key_heads = family.key_heads > 0 && !fields.is_null("num_key_value_heads");
  model.key_heads = size("num_key_value_heads", most_attention_width,
                         own_key_heads ? family.key_heads : model.query_heads);
  model.max_position_embeddings =
      size("max_position_embeddings", INT32_MAX, family.max_position_embeddings);

  const auto head_dim = fields.integer("head_dim", {1, 65536});
  const bool divides = model.width % model.query_heads == 0;
  // With a head_dim of its own any width is well defined, though newer transformers refuse it for
  // Llama when they read the folder.
  if (!divides && !head_dim && family.head_width == 0)
    fields.problem("hidden_size", fmt::format("{} is not a multiple of num_attention_heads {}",
                                              model.width, model.query_heads));
  model.head_width = head_dim ? *head_dim
                     : family.head_width > 0
                         ? family.head_width
                         : std::max<std::int64_t>(1, model.width / model.query_heads);
  if (model.head_width % 2 != 0)
    fields.problem("head_dim", fmt::format("the head width {} is odd; the rotary embedding pairs "
                                           "its halves",
                                           model.head_width));
  if (model.query_heads % model.key_heads != 0)
    fields.problem("num_key_value_heads",
                   fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                               model.query_heads, model.key_heads));
  if (model.query_heads * model.head_width > most_attention_width)
    fields.problem("num_attention_heads",
                   fmt::format("{} heads of width {} are more than the {} columns supported",
                               model.query_heads, model.head_width, most_attention_width));
}

bool bias_of(Fields& fields, BiasRule rule, std::string_view key) {
  if (rule == BiasRule::from_key) return fields.boolean(key).value_or(false);
  return rule == BiasRule::always;
}

/// A bias key whose class has no such bias, yet says true, or the other way round.
void check_bias_key(Fields& fields, const Family& family, BiasRule rule, std::string_view key) {
  if (rule == BiasRule::from_key) return;
  const auto said = fields.boolean(key);
  if (said && *said != (rule == BiasRule::always))
    fields.problem(
        key,
        fmt::format("{} does not read this key: its projections {} a bias", family.architecture,
                    rule == BiasRule::always ? "always have" : "never have"),
        "remove the key, or name the architecture that is meant", ErrorCode::unsupported);
}

std::optional<std::vector<bool>> read_layer_types(Fields& fields, std::int64_t layers) {
  const auto types = fields.words("layer_types");
  if (!types) return std::nullopt;
  if (static_cast<std::int64_t>(types->size()) != layers) {
    fields.problem("layer_types", fmt::format("{} entries for {} layers", types->size(), layers));
    return std::nullopt;
  }
  std::vector<bool> sliding;
  for (const std::string& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields.problem("layer_types", fmt::format("layer type `{}` is not supported", type),
                     "supported are full_attention and sliding_attention", ErrorCode::unsupported);
      return std::nullopt;
    }
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

void read_windows(Fields& fields, const Family& family, ModelSpec& model) {
  model.windows.assign(static_cast<std::size_t>(model.layers), 0);
  const auto given = fields.integer("sliding_window", {1, INT32_MAX});
  const std::int64_t window =
      given.value_or(fields.has("sliding_window") ? 0 : family.sliding_window);
  const auto use = fields.boolean("use_sliding_window");
  const auto first_sliding = fields.integer("max_window_layers", {0, INT32_MAX}).value_or(28);
  const auto types = read_layer_types(fields, model.layers);
  std::vector<bool> sliding(model.windows.size(), false);
  switch (family.windows) {
    case WindowRule::none:
      if (given && use.value_or(true))
        fields.problem(
            "sliding_window", fmt::format("{} has no sliding window", family.architecture),
            "remove the key, or name the architecture that is meant", ErrorCode::unsupported);
      break;
    case WindowRule::every_layer:
      sliding.assign(sliding.size(), window > 0);
      if (use && *use != (window > 0))
        fields.problem("use_sliding_window",
                       fmt::format("{} does not read this key: sliding_window alone decides",
                                   family.architecture),
                       "set sliding_window to null for full attention, and remove this key",
                       ErrorCode::unsupported);
      break;
    case WindowRule::by_layer: {
      const bool on = use.value_or(false) && window > 0;
      if (types)
        sliding = *types;
      else
        for (std::size_t layer = 0; layer < sliding.size(); ++layer)
          sliding[layer] = on && static_cast<std::int64_t>(layer) >= first_sliding;
      if (!on && std::find(sliding.begin(), sliding.end(), true) != sliding.end())
        fields.problem("layer_types",
                       "names sliding_attention, while use_sliding_window or sliding_window turns "
                       "it off");
      break;
    }
  }
  if (types && family.windows != WindowRule::by_layer && *types != sliding)
    fields.problem("layer_types",
                   fmt::format("{} does not read this key, which disagrees with its windows",
                               family.architecture),
                   {}, ErrorCode::unsupported);
  for (std::size_t layer = 0; layer < sliding.size(); ++layer)
    model.windows[layer] = sliding[layer] ? window : 0;
}

void read_tokens(Fields& fields, const Family& family, ModelSpec& model) {
  const IntegerRange range = {0, model.vocabulary - 1};
  const auto fallback = [&](std::string_view key, std::int64_t id) {
    return fields.has(key) || id >= model.vocabulary ? -1 : id;
  };
  model.begin_token_id = fields.integer("bos_token_id", range)
                             .value_or(fallback("bos_token_id", family.begin_token_id));
  const Value* end = fields.take("eos_token_id");
  if (end != nullptr && end->kind == ValueKind::list) {
    for (const Value& item : end->items) {
      const auto id = item.kind == ValueKind::number ? to_integer(item) : std::nullopt;
      if (!id || *id < 0 || *id >= model.vocabulary) {
        fields.problem("eos_token_id", fmt::format("{} is no token id below vocab_size {}",
                                                   shown(item), model.vocabulary));
        return;
      }
      model.end_token_ids.push_back(*id);
    }
    return;
  }
  const auto id =
      fields.integer("eos_token_id", range).value_or(fallback("eos_token_id", family.end_token_id));
  if (id >= 0) model.end_token_ids.push_back(id);
}

void read_stored_type(Fields& fields, ModelSpec& model) {
  const auto legacy = fields.text("torch_dtype");
  const auto current = fields.text("dtype");
  if (!legacy && !current) return;
  std::string name = current ? *current : *legacy;
  if (name.starts_with("torch.")) name.erase(0, 6);
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (const auto parsed = parse_dtype(name, ""); parsed && *parsed == type) {
      model.stored_type = type;
      return;
    }
  fields.problem(current ? "dtype" : "torch_dtype",
                 fmt::format("weights stored as `{}` are not supported", name),
                 "supported are float32, bfloat16 and float16", ErrorCode::unsupported);
}

void refuse_unsupported(Fields& fields) {
  const auto activation = fields.text("hidden_act");
  if (activation && *activation != "silu" && *activation != "swish")
    fields.problem("hidden_act", fmt::format("activation `{}` is not supported", *activation),
                   "only silu is", ErrorCode::unsupported);
  for (const RefusedKey& refused : refused_keys) {
    const Value* value = fields.take(refused.key);
    if (value != nullptr && !is_neutral(*value, refused.neutral))
      fields.problem(refused.key,
                     fmt::format("{} ({}) is not supported", refused.what, shown(*value)), {},
                     ErrorCode::unsupported);
  }
}

/// transformers passes over a misspelt key in silence and takes the default; we name it. A key is
/// taken for misspelt when it is within two edits of one that the file does not have.
void refuse_misspelt(Fields& fields) {
  constexpr std::size_t most_edits = 2;
  for (const char* key : harmless_keys) fields.take(key);
  std::vector<std::string> absent;
  for (const std::string& key : fields.asked())
    if (!fields.has(key)) absent.push_back(key);
  // A description has some dozens of keys; of a hostile file the first ones are enough.
  constexpr std::size_t most_searched = 500;
  std::vector<const Entry*> unread = fields.unread();
  unread.resize(std::min(unread.size(), most_searched));
  for (const Entry* entry : unread) {
    if (entry->key.size() < 6 || entry->key.size() > 64 || entry->key.front() == '_') continue;
    for (const std::string& candidate : absent) {
      const std::size_t longer = std::max(entry->key.size(), candidate.size());
      if (longer - std::min(entry->key.size(), candidate.size()) > most_edits) continue;
      if (edit_distance(entry->key, candidate) <= most_edits) {
        fields.problem(entry->key, "unknown key", fmt::format("the nearest is `{}`", candidate));
        break;
      }
    }
  }
}

}  // namespace

Result<ModelSpec> parse_model_config(std::string_view json_text, std::string_view where) {
  UK_TRY(document, read_json(json_text, where, JsonDialect::strict));
  if (document.root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file,
                fmt::format("a JSON object is wanted, {} was found", shown(document.root)),
                std::string(where));
  Problems problems;
  Fields fields(document.root, "", problems);
  const Family* family = find_family(fields, problems);
  if (family == nullptr) return tl::unexpected(problems.to_error(where));

  ModelSpec model;
  model.architecture = family->architecture;
  model.model_type = family->model_type;
  read_shape(fields, *family, model);
  model.norm_epsilon = fields.number("rms_norm_eps", {.most = 1, .least_is_allowed = false})
                           .value_or(family->norm_epsilon);
  model.initializer_range = fields.number("initializer_range", {.most = 1}).value_or(0.02);
  model.qkv_bias = bias_of(fields, family->qkv_bias, "attention_bias");
  model.output_bias = bias_of(fields, family->output_bias, "attention_bias");
  model.mlp_bias = bias_of(fields, family->mlp_bias, "mlp_bias");
  check_bias_key(fields, *family, family->qkv_bias, "attention_bias");
  check_bias_key(fields, *family, family->mlp_bias, "mlp_bias");
  model.qk_norm = family->qk_norm;
  model.tied_head = fields.boolean("tie_word_embeddings").value_or(family->tied_head);
  read_windows(fields, *family, model);
  model.rope =
      read_rope(fields, problems, *family, model.max_position_embeddings, model.head_width);
  read_tokens(fields, *family, model);
  read_stored_type(fields, model);
  refuse_unsupported(fields);
  refuse_misspelt(fields);
  if (!problems.empty()) return tl::unexpected(problems.to_error(where));
  return model;
}

}  // namespace underkeel::spec
