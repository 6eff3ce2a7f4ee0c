// The parameters of a model by their Hugging Face names, in state-dict order.

#include <fmt/format.h>

#include "spec/model_spec.h"

namespace underkeel::spec {
namespace {

/// Parameters of one layer: q, k, v, o (each weight, then bias), q/k norms, gate, up, down, norms.
std::vector<Parameter> layer_parameters(const ModelSpec& model, std::int64_t layer) {
  std::vector<Parameter> parameters;
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const auto linear = [&](std::string_view name, std::int64_t rows, std::int64_t columns,
                          bool with_bias) {
    parameters.push_back({.name = fmt::format("{}{}.weight", prefix, name),
                          .role = ParameterRole::matrix,
                          .layer = layer,
                          .rows = rows,
                          .columns = columns});
    if (with_bias)
      parameters.push_back({.name = fmt::format("{}{}.bias", prefix, name),
                            .role = ParameterRole::bias,
                            .layer = layer,
                            .columns = rows});
  };
  const auto norm = [&](std::string_view name, std::int64_t size) {
    parameters.push_back({.name = fmt::format("{}{}.weight", prefix, name),
                          .role = ParameterRole::norm,
                          .layer = layer,
                          .columns = size});
  };
  const std::int64_t query_rows = model.query_heads * model.head_width;
  const std::int64_t key_rows = model.key_heads * model.head_width;
  linear("self_attn.q_proj", query_rows, model.width, model.qkv_bias);
  linear("self_attn.k_proj", key_rows, model.width, model.qkv_bias);
  linear("self_attn.v_proj", key_rows, model.width, model.qkv_bias);
  linear("self_attn.o_proj", model.width, query_rows, model.output_bias);
  if (model.qk_norm) {
    norm("self_attn.q_norm", model.head_width);
    norm("self_attn.k_norm", model.head_width);
  }
  linear("mlp.gate_proj", model.feed_forward, model.width, model.mlp_bias);
  linear("mlp.up_proj", model.feed_forward, model.width, model.mlp_bias);
  linear("mlp.down_proj", model.width, model.feed_forward, model.mlp_bias);
  norm("input_layernorm", model.width);
  norm("post_attention_layernorm", model.width);
  return parameters;
}

Parameter embedding(const ModelSpec& model) {
  return {.name = "model.embed_tokens.weight",
          .role = ParameterRole::embedding,
          .rows = model.vocabulary,
          .columns = model.width};
}

std::vector<Parameter> parameters_after_layers(const ModelSpec& model) {
  std::vector<Parameter> parameters = {
      {.name = "model.norm.weight", .role = ParameterRole::norm, .columns = model.width}};
  if (!model.tied_head)
    parameters.push_back({.name = "lm_head.weight",
                          .role = ParameterRole::head,
                          .rows = model.vocabulary,
                          .columns = model.width});
  return parameters;
}

std::int64_t elements_of(const std::vector<Parameter>& parameters) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.element_count();
  return count;
}

}  // namespace

std::vector<Parameter> parameters_of(const ModelSpec& model) {
  std::vector<Parameter> parameters = {embedding(model)};
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (Parameter& parameter : layer_parameters(model, layer))
      parameters.push_back(std::move(parameter));
  for (Parameter& parameter : parameters_after_layers(model))
    parameters.push_back(std::move(parameter));
  return parameters;
}

std::int64_t parameter_count(const ModelSpec& model) {
  return embedding(model).element_count() + model.layers * elements_of(layer_parameters(model, 0)) +
         elements_of(parameters_after_layers(model));
}

}  // namespace underkeel::spec
