#pragma once
// Model folders with seeded random weights, from a short description in the style of config.json.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "spec/model_spec.h"

namespace underkeel::test {

/// The description that most tests use: Llama, 2 layers, width 64, V 256, tied head, bf16.
std::string tiny_model_json();

/// Adds to a description (shapes, tied head, type) the architecture's name and the usual constants
/// of its family, `model_type`; what the description has stays.
std::string complete_config(std::string_view model_json);

/// Seeded weights of a model: normal with deviation 0.02, norms 1, in `model.stored_type`.
/// Parameter i of parameters_of() is stream i.
void write_weights(const std::filesystem::path& file, const spec::ModelSpec& model,
                   std::uint64_t seed);

/// Writes config.json, model.safetensors and the byte tokenizer into `folder`.
void write_model_folder(const std::filesystem::path& folder, std::string_view model_json,
                        std::uint64_t seed = 1);

}  // namespace underkeel::test
