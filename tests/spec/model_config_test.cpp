// config.json of every family, against what transformers makes of the same text (goldens), and
// every refusal with its message.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "spec/json_reader.h"
#include "spec/model_spec.h"
#include "support/places.h"

namespace underkeel::spec {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// A small Llama with `extra` keys, each as `"key": value`.
std::string llama(const std::string& extra = "") {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 96,
    "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2,
    "num_attention_heads": 4)" +
         (extra.empty() ? "" : ", " + extra) + "}";
}
std::string family(const std::string& architecture, const std::string& model_type,
                   const std::string& extra = "") {
  return fmt::format(R"({{"architectures": ["{}"], "model_type": "{}", "vocab_size": 96,
    "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2{}{}}})",
                     architecture, model_type, extra.empty() ? "" : ", ", extra);
}

std::string refusal_of(const std::string& json) {
  const auto model = parse_model_config(json, "config.json");
  return model ? "accepted" : to_text(model.error());
}

TEST(ModelConfig, AcceptsAWidthThatHeadsDoNotDivideWhenTheHeadWidthIsGiven) {
  const auto model = parse_model_config(
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 96,
        "hidden_size": 35, "intermediate_size": 56, "num_hidden_layers": 2,
        "num_attention_heads": 4, "head_dim": 14})",
      "config.json");

  ASSERT_TRUE(model.has_value()) << to_text(model.error());
  EXPECT_EQ(model->width, 35);
  EXPECT_EQ(model->head_width, 14);
}

TEST(ModelConfig, AgreesWithTransformersInNamesShapesWindowsAndConstants) {
  const std::string text = text_of(test::in_source("tests/spec/goldens/families.json"));
  const auto document = read_json(text, "families.json", JsonDialect::strict);
  ASSERT_TRUE(document.has_value()) << to_text(document.error());
  const Value* cases = document->root.find("cases");
  ASSERT_NE(cases, nullptr);
  ASSERT_GE(cases->entries.size(), 20u);

  for (const Entry& golden : cases->entries) {
    SCOPED_TRACE(golden.key);
    const Place config = golden.value.find("config")->place;
    const auto model =
        parse_model_config(text.substr(config.begin, config.end - config.begin), golden.key);
    ASSERT_TRUE(model.has_value()) << to_text(model.error());

    std::vector<Parameter> parameters = parameters_of(*model);
    EXPECT_EQ(parameter_count(*model), to_integer(*golden.value.find("parameter_count")));
    std::int64_t counted = 0;
    for (const Parameter& parameter : parameters) counted += parameter.element_count();
    EXPECT_EQ(parameter_count(*model), counted);
    const auto& expected = golden.value.find("parameters")->items;
    if (expected.size() < parameters.size())  // of large models the goldens show layer 0 alone
      std::erase_if(parameters, [](const Parameter& parameter) { return parameter.layer > 0; });
    ASSERT_EQ(parameters.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(parameters[i].name, expected[i].items[0].text);
      std::vector<std::int64_t> shape;
      for (const Value& size : expected[i].items[1].items) shape.push_back(*to_integer(size));
      EXPECT_EQ(parameters[i].shape(), shape) << parameters[i].name;
    }

    std::vector<std::int64_t> windows, ends;
    for (const Value& window : golden.value.find("windows")->items)
      windows.push_back(*to_integer(window));
    for (const Value& id : golden.value.find("end_token_ids")->items)
      ends.push_back(*to_integer(id));
    EXPECT_EQ(model->windows, windows);
    EXPECT_EQ(model->end_token_ids, ends);
    EXPECT_EQ(model->begin_token_id, to_integer(*golden.value.find("begin_token_id")));
    EXPECT_EQ(model->head_width, to_integer(*golden.value.find("head_width")));
    EXPECT_EQ(model->max_position_embeddings,
              to_integer(*golden.value.find("max_position_embeddings")));
    EXPECT_EQ(model->norm_epsilon, to_double(*golden.value.find("norm_epsilon")));
    EXPECT_EQ(model->rope.theta, to_double(*golden.value.find("rope_theta")));
    EXPECT_NEAR(model->rope.attention_scaling, *to_double(*golden.value.find("attention_scaling")),
                1e-15);
  }
}

TEST(ModelConfig, ReadsEveryModelFolderOfTheGoldens) {
  int folders = 0;
  for (const auto& folder : std::filesystem::directory_iterator(test::in_source("tests/goldens"))) {
    if (!std::filesystem::exists(folder.path() / "config.json")) continue;
    const auto model = read_model_config(folder.path());
    EXPECT_TRUE(model.has_value()) << to_text(model.error());
    ++folders;
  }
  EXPECT_GE(folders, 11);
}

TEST(ModelConfig, ReadsTheOldAndTheNewSpellingOfTheRotaryEmbeddingAlike) {
  const std::string scaling =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192)";

  const auto old_spelling =
      parse_model_config(llama(R"("rope_theta": 500000.0, "torch_dtype": "bfloat16", "rope_scaling":
            {"rope_type": "llama3", )" +
                               scaling + "}"),
                         "old");
  const auto new_spelling = parse_model_config(llama(R"("dtype": "bfloat16", "rope_parameters":
            {"rope_theta": 500000.0, "rope_type": "llama3", )" +
                                                     scaling + "}"),
                                               "new");

  ASSERT_TRUE(old_spelling && new_spelling);
  for (const ModelSpec& model : {*old_spelling, *new_spelling}) {
    EXPECT_EQ(model.rope.type, RopeType::llama3);
    EXPECT_EQ(model.rope.theta, 500000.0);
    EXPECT_EQ(model.rope.factor, 8.0);
    EXPECT_EQ(model.rope.low_freq_factor, 1.0);
    EXPECT_EQ(model.rope.high_freq_factor, 4.0);
    EXPECT_EQ(model.rope.original_max_position_embeddings, 8192);
    EXPECT_EQ(model.stored_type, DType::bf16);
  }
}

TEST(ModelConfig, ScalesYarnAsTheReferenceVectorSays) {
  const auto model =
      parse_model_config(llama(R"("rope_theta": 1e6, "rope_scaling": {"type": "yarn", "factor": 4.0,
            "original_max_position_embeddings": 32768})"),
                         "c");

  ASSERT_TRUE(model.has_value());
  EXPECT_NEAR(model->rope.attention_scaling, 1.138629436, 5e-10);
  EXPECT_EQ(model->rope.beta_fast, 32.0);
  EXPECT_TRUE(model->rope.truncate);
}

TEST(ModelConfig, CountsTheParametersThatModelCardsName) {
  struct Card {
    std::string config;
    std::int64_t parameters;
  };
  const std::vector<Card> cards = {
      // Llama-2-7B.
      {R"({"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
        "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
        "vocab_size": 32000})",
       6'738'415'616},
      // Llama-3.1-405B.
      {R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
        "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "hidden_act": "silu", "hidden_size": 16384, "initializer_range": 0.02,
        "intermediate_size": 53248, "max_position_embeddings": 131072, "mlp_bias": false,
        "model_type": "llama", "num_attention_heads": 128, "num_hidden_layers": 126,
        "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"},
        "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "use_cache": true, "vocab_size": 128256})",
       405'853'388'800},
      // Mistral-7B-v0.1.
      {R"({"architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000})",
       7'241'732'096},
      // Qwen2.5-0.5B.
      {R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
        "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
        "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
        "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
        "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
        "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})",
       494'032'768},
      // Qwen3-0.6B.
      {R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
        "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
        "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
        "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
        "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
        "vocab_size": 151936})",
       596'049'920}};
  for (const Card& card : cards) {
    const auto model = parse_model_config(card.config, "config.json");
    ASSERT_TRUE(model.has_value()) << to_text(model.error());
    EXPECT_EQ(parameter_count(*model), card.parameters);
  }
}

TEST(ModelConfig, TakesSeveralEndTokens) {
  const auto model =
      parse_model_config(llama(R"("eos_token_id": [5, 7], "bos_token_id": null)"), "c");

  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->end_token_ids, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(model->begin_token_id, -1);
}

TEST(ModelConfig, FindsTheFamilyByModelTypeAloneAndByArchitectureAlone) {
  EXPECT_EQ(parse_model_config(R"({"model_type": "qwen3"})", "c")->architecture,
            "Qwen3ForCausalLM");
  EXPECT_EQ(parse_model_config(R"({"architectures": ["MistralForCausalLM"]})", "c")->model_type,
            "mistral");
}

TEST(ModelConfig, PassesOverKeysThatDoNotChangeTraining) {
  EXPECT_EQ(refusal_of(llama(R"("pretraining_tp": 2, "use_cache": false, "_name_or_path": "x",
    "transformers_version": "4.40.0", "unsloth_fixed": true, "attention_dropout": 0.0,
    "quantization_config": null, "auto_map": {"a": "b"})")),
            "accepted");
}

TEST(ModelConfig, TellsAllProblemsOfAFileAtOnce) {
  const std::string text = refusal_of(
      llama(R"("hidden_act": "gelu", "attention_dropout": 0.1, "num_key_value_heads": 3)"));

  EXPECT_EQ(text,
            "error: 3 problems\n"
            "  num_key_value_heads (line 3): num_attention_heads 4 is not a multiple of "
            "num_key_value_heads 3\n"
            "  hidden_act (line 3): activation `gelu` is not supported; only silu is\n"
            "  attention_dropout (line 3): dropout in attention (0.1) is not supported\n"
            "where: config.json");
}

struct ModelRefusal {
  std::string json;
  std::string message;
};

TEST(ModelConfig, RefusesByNameWhatItCannotHonour) {
  const std::vector<ModelRefusal> refusals = {
      {R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"})",
       "error: `MixtralForCausalLM` is not supported\nwhere: config.json, architectures (line 1)\n"
       "try:   supported are LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, "
       "Qwen3ForCausalLM"},
      {R"({"model_type": "gemma2"})", "`gemma2` is not supported"},
      {R"({"model_type": "phi3"})", "`phi3` is not supported"},
      {R"({"model_type": "qwen3_moe"})", "`qwen3_moe` is not supported"},
      {R"({"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"})",
       "`LlamaForSequenceClassification` is not supported"},
      {R"({"architectures": ["LlamaForCausalLM"], "model_type": "mistral"})",
       "`mistral` does not belong to architecture `LlamaForCausalLM`, whose model_type is `llama`"},
      {R"({"vocab_size": 8})", "neither `architectures` nor `model_type` is given"},
      {R"({"model_type": null})", "neither `architectures` nor `model_type` is given"},
      {R"({"architectures": []})", "neither `architectures` nor `model_type` is given"},
      {R"({"model_type": 3})", "text is wanted, a number 3 was found"},
      {R"([1])", "a JSON object is wanted, [1] was found"},
      {llama(R"("hidden_act": "gelu_pytorch_tanh")"),
       "activation `gelu_pytorch_tanh` is not supported"},
      {llama(R"("attention_dropout": 0.1)"), "dropout in attention (0.1) is not supported"},
      {llama(R"("quantization_config": {"quant_method": "bitsandbytes"})"),
       "quantised weights in the base model (a mapping of 1 key) is not supported"},
      {llama(R"("final_logit_softcapping": 30.0)"), "soft-capping of logits (30.0)"},
      {llama(R"("attn_logit_softcapping": 50.0)"), "soft-capping of attention scores (50.0)"},
      {llama(R"("partial_rotary_factor": 0.5)"), "rotating only a part of each head (0.5)"},
      {llama(R"("num_local_experts": 8)"), "a mixture of experts (8)"},
      {llama(R"("sliding_window": 4096)"), "LlamaForCausalLM has no sliding window"},
      {llama(R"("is_encoder_decoder": true)"), "an encoder-decoder model (true)"},
      {llama(R"("torch_dtype": "float8_e4m3fn")"),
       "weights stored as `float8_e4m3fn` are not supported"},
      {llama(R"("dtype": "float64")"), "weights stored as `float64` are not supported"},
      {llama(R"("head_dim": 7)"), "the head width 7 is odd"},
      {llama(R"("num_key_value_heads": 3)"), "is not a multiple of num_key_value_heads 3"},
      {llama(R"("tie_word_embeddings": 1)"), "true or false is wanted, a number 1 was found"},
      {llama(R"("rms_norm_eps": 0)"), "more than 0 and at most 1 is wanted"},
      {llama(R"("eos_token_id": 96)"), "96 is out of range: 0 to 95 is wanted"},
      {llama(R"("eos_token_id": [1, "a"])"), "\"a\" is no token id below vocab_size 96"},
      {llama(R"("rope_tehta": 5e5)"),
       "unknown key\nwhere: config.json, rope_tehta (line 3)\n"
       "try:   the nearest is `rope_theta`"},
      {family("MistralForCausalLM", "mistral", R"("attention_bias": true)"),
       "MistralForCausalLM does not read this key: its projections never have a bias"},
      {family("Qwen2ForCausalLM", "qwen2", R"("attention_bias": false)"),
       "Qwen2ForCausalLM does not read this key: its projections always have a bias"},
      {family("MistralForCausalLM", "mistral", R"("use_sliding_window": false)"),
       "MistralForCausalLM does not read this key: sliding_window alone decides"},
      {family("MistralForCausalLM", "mistral",
              R"("layer_types": ["full_attention", "sliding_attention"])"),
       "MistralForCausalLM does not read this key, which disagrees with its windows"},
      {family("Qwen2ForCausalLM", "qwen2", R"("layer_types": ["full_attention"])"),
       "1 entries for 2 layers"},
      {family("Qwen2ForCausalLM", "qwen2",
              R"("layer_types": ["full_attention", "chunked_attention"])"),
       "layer type `chunked_attention` is not supported"},
      {family("Qwen3ForCausalLM", "qwen3",
              R"("layer_types": ["full_attention", "sliding_attention"])"),
       "names sliding_attention, while use_sliding_window or sliding_window turns it off"},
  };
  for (const ModelRefusal& refusal : refusals) {
    const std::string text = refusal_of(refusal.json);
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.json << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST(ModelConfig, RefusesRotaryEmbeddingsThatItCannotHonour) {
  const auto scaling = [](const std::string& content) {
    return llama("\"rope_scaling\": {" + content + "}");
  };
  const std::vector<ModelRefusal> refusals = {
      {scaling(R"("rope_type": "longrope", "factor": 2.0)"),
       "RoPE type `longrope` is not supported"},
      {scaling(R"("type": "su")"), "RoPE type `su` is not supported"},
      {scaling(R"("type": "linear")"), "this RoPE type needs it"},
      {scaling(R"("type": "linear", "factor": null)"), "a number is wanted, not null"},
      {scaling(R"("type": "linear", "factor": 0.5)"), "at least 1 and at most 1000000 is wanted"},
      {scaling(R"("type": "linear", "factor": "4")"), "a number is wanted, text \"4\" was found"},
      {scaling(R"("type": "linear", "rope_type": "dynamic", "factor": 2)"),
       "`rope_type` says dynamic and `type` says linear"},
      {scaling(R"("factor": 2.0)"), "a factor of 2 has no effect on RoPE type default"},
      {scaling(R"("type": "default", "mrope_section": [1, 2])"),
       "this key of the rotary embedding is not known"},
      {scaling(R"("rope_type": "llama3", "factor": 8.0)"),
       "llama3 needs low_freq_factor and high_freq_factor"},
      {scaling(
           R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 4)"),
       "4 is not below high_freq_factor 4"},
      {scaling(R"("rope_type": "yarn", "factor": 4.0, "beta_fast": 1, "beta_slow": 2)"),
       "beta_fast 1 is below beta_slow 2"},
      {scaling(R"("rope_type": "default", "partial_rotary_factor": 0.25)"),
       "rotating only 0.25 of each head is not supported"},
      {llama(R"("rope_theta": 1.0)"), "more than 1 and at most 1000000000000000 is wanted"},
      {llama(R"("rope_scaling": "linear")"), "a mapping is wanted, \"linear\" was found"},
      {llama(R"("rope_theta": 1e6, "rope_parameters": {"rope_theta": 5e5})"),
       "500000 here, 1000000 at the top level of the file"},
      {llama(R"("rope_parameters": {"full_attention": {"rope_type": "default"}})"),
       "a rotary embedding of its own for each layer type is not supported"},
      {llama(R"("rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters":
             {"rope_type": "linear", "factor": 4.0})"),
       "`rope_scaling` and `rope_parameters` disagree"},
  };
  for (const ModelRefusal& refusal : refusals) {
    const std::string text = refusal_of(refusal.json);
    EXPECT_NE(text.find(refusal.message), std::string::npos)
        << refusal.json << "\n"
        << text << "\nwanted: " << refusal.message;
  }
}

TEST(ModelConfig, RefusesSizesThatCouldOverflow) {
  const auto with = [](const std::string& key, const std::string& value) {
    return fmt::format(R"({{"model_type": "llama", "{}": {}}})", key, value);
  };
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "max_position_embeddings", "head_dim"}) {
    for (const char* value : {"0", "-1", "9223372036854775807", "2147483648"})
      EXPECT_NE(refusal_of(with(key, value)).find("is out of range"), std::string::npos)
          << key << " " << value << "\n"
          << refusal_of(with(key, value));
    for (const char* value : {"1e400", "99999999999999999999999999", "1.5", "\"32\"", "true"})
      EXPECT_NE(refusal_of(with(key, value)).find("a whole number is wanted"), std::string::npos)
          << key << " " << value << "\n"
          << refusal_of(with(key, value));
  }
  EXPECT_NE(refusal_of(R"({"model_type": "llama", "num_attention_heads": 4096, "head_dim": 4096})")
                .find("4096 heads of width 4096 are more than the 1048576 columns supported"),
            std::string::npos);
}

TEST(ModelConfig, CountsTheLargestSizesWithoutOverflow) {
  const auto model = parse_model_config(
      R"({"model_type": "llama", "vocab_size": 16777216, "hidden_size": 262144,
          "intermediate_size": 1048576, "num_hidden_layers": 4096, "num_attention_heads": 1024,
          "num_key_value_heads": 1024, "head_dim": 1024})",
      "c");

  ASSERT_TRUE(model.has_value());
  EXPECT_GT(parameter_count(*model), std::int64_t{1} << 52);
  EXPECT_LT(parameter_count(*model), std::int64_t{1} << 56);
}

TEST(ModelConfig, KeepsTheWrittenFormWhenTheStoredTypeIsReplaced) {
  const std::string old_spelling =
      "{\n  \"rope_theta\": 1e4,\n  \"torch_dtype\": \"float16\",\n  \"vocab_size\": 8\n}\n";

  const auto rewritten = rewrite_model_config(old_spelling, DType::bf16);

  EXPECT_EQ(
      rewritten.value(),
      "{\n  \"rope_theta\": 1e4,\n  \"torch_dtype\": \"bfloat16\",\n  \"vocab_size\": 8\n}\n");
}

TEST(ModelConfig, LeavesOutAByteOrderMarkWhichTheHubsReadersRefuse) {
  EXPECT_EQ(rewrite_model_config("\xEF\xBB\xBF{\"dtype\": \"float16\"}", DType::bf16).value(),
            "{\"dtype\": \"bfloat16\"}");
  EXPECT_EQ(set_config_entry("\xEF\xBB\xBF{\"x\": 1}", "x", "2").value(), "{\"x\": 2}");
}

TEST(ModelConfig, AddsTheStoredTypeInTheSpellingOfTheFile) {
  EXPECT_EQ(rewrite_model_config("{\n  \"rope_theta\": 1e4\n}\n", DType::f32).value(),
            "{\n  \"rope_theta\": 1e4,\n  \"torch_dtype\": \"float32\"\n}\n");
  EXPECT_EQ(rewrite_model_config("{\"vocab_size\": 8}", DType::f16).value(),
            "{\"vocab_size\": 8,\"dtype\": \"float16\"}");
  EXPECT_EQ(rewrite_model_config("{}", DType::f32).value(), "{\"dtype\": \"float32\"}");
  EXPECT_EQ(
      rewrite_model_config("{\"torch_dtype\": \"float16\", \"dtype\": null}", DType::bf16).value(),
      "{\"torch_dtype\": \"bfloat16\", \"dtype\": \"bfloat16\"}");
  EXPECT_EQ(rewrite_model_config("{}", DType::nf4).error().code, ErrorCode::unsupported);
}

TEST(ModelConfig, SetsOneEntryOfItsTextAndLeavesTheRest) {
  EXPECT_EQ(
      set_config_entry("{\n  \"use_cache\": true,\n  \"x\": 1\n}\n", "use_cache", "false").value(),
      "{\n  \"use_cache\": false,\n  \"x\": 1\n}\n");
  EXPECT_EQ(set_config_entry("{\n  \"x\": 1\n}\n", "use_cache", "false").value(),
            "{\n  \"x\": 1,\n  \"use_cache\": false\n}\n");
  EXPECT_EQ(set_config_entry("[]", "use_cache", "false").error().code, ErrorCode::bad_file);
}

}  // namespace
}  // namespace underkeel::spec
