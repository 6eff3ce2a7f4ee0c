#include "support/model_folder.h"

#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "support/byte_tokenizer.h"
#include "support/places.h"
#include "support/tensor_files.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::test {

std::string tiny_model_json() {
  return read_text(in_source("tests/cases/tiny_model.json"));
}

std::string complete_config(std::string_view model_json) {
  auto config = nlohmann::json::parse(model_json);
  const auto default_to = [&](const char* key, const nlohmann::json& value) {
    if (!config.contains(key)) config[key] = value;
  };
  const std::string family = config.at("model_type");
  if (family == "llama") {
    default_to("architectures", {"LlamaForCausalLM"});
    default_to("rope_theta", 10000.0);
    default_to("rms_norm_eps", 1e-5);
  } else if (family == "mistral") {
    default_to("architectures", {"MistralForCausalLM"});
    default_to("rope_theta", 10000.0);
    default_to("rms_norm_eps", 1e-5);
    default_to("sliding_window", nullptr);
  } else if (family == "qwen2") {
    default_to("architectures", {"Qwen2ForCausalLM"});
    default_to("rope_theta", 1000000.0);
    default_to("rms_norm_eps", 1e-6);
    default_to("use_sliding_window", false);
  } else if (family == "qwen3") {
    default_to("architectures", {"Qwen3ForCausalLM"});
    default_to("rope_theta", 1000000.0);
    default_to("rms_norm_eps", 1e-6);
    default_to("attention_bias", false);
  } else {
    throw std::runtime_error("no constants are known for model_type " + family);
  }
  default_to("hidden_act", "silu");
  default_to("initializer_range", 0.02);
  default_to("bos_token_id", nullptr);
  default_to("eos_token_id", 0);
  default_to("pad_token_id", 0);
  default_to("use_cache", true);
  return config.dump(2) + "\n";
}

void write_weights(const std::filesystem::path& file, const spec::ModelSpec& model,
                   std::uint64_t seed) {
  StoredTensors tensors;
  std::uint32_t stream = 0;
  for (const auto& parameter : spec::parameters_of(model)) {
    std::vector<float> values(static_cast<std::size_t>(parameter.element_count()), 1.0f);
    if (parameter.role != spec::ParameterRole::norm)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.02f * random_normal(seed, stream, i);
    tensors[parameter.name] = stored(model.stored_type, parameter.shape(), values);
    ++stream;
  }
  write_tensors(file, tensors);
}

void write_model_folder(const std::filesystem::path& folder, std::string_view model_json,
                        std::uint64_t seed) {
  const auto config = complete_config(model_json);
  write_text(folder / "config.json", config);
  write_weights(folder / "model.safetensors",
                value_of(spec::parse_model_config(config, "config.json")), seed);
  write_byte_tokenizer(folder);
}

}  // namespace underkeel::test
