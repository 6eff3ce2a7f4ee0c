#pragma once
// The small files beside the weights of a Hugging Face folder.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace underkeel::train {

/// Files that travel with the weights unchanged. config.json is not among them: its type is rewritten.
constexpr std::array<std::string_view, 12> side_files = {"generation_config.json",
                                                         "tokenizer.json",
                                                         "tokenizer_config.json",
                                                         "special_tokens_map.json",
                                                         "added_tokens.json",
                                                         "tokenizer.model",
                                                         "tokenizer.model.v3",
                                                         "tekken.json",
                                                         "vocab.json",
                                                         "merges.txt",
                                                         "chat_template.jinja",
                                                         "chat_template.json"};

/// No such file is larger; the largest tokenizers have about 40 MB.
constexpr std::int64_t largest_side_file_bytes = 256 * mebibyte;
constexpr std::int64_t largest_config_bytes = 16 * mebibyte;

}  // namespace underkeel::train
