#pragma once
// Readers of the parts of tokenizer.json, for one another. Outside: tokenizer_json.h.

#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "data/tokenizer/tokenizer_json.h"

namespace underkeel::data {

/// `path` is where the component lies in the file, for errors.
/// Errors: unsupported naming the component; bad_file naming the key.
Result<std::unique_ptr<Normalizer>> read_normalizer(const nlohmann::json& component,
                                                    std::string_view path);
Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const nlohmann::json& component,
                                                         std::string_view path);
/// The pattern of a pre-tokenizer that does nothing but cut by one of the common patterns and then
/// write bytes as characters.
std::optional<WordPattern> word_pattern_at(const nlohmann::json& component);
Result<std::unique_ptr<Decoder>> read_decoder(const nlohmann::json& component,
                                              std::string_view path);
/// Adds to the template of `file`.
Result<void> read_post_processor(const nlohmann::json& component, std::string_view path,
                                 TokenizerFile& file);

/// The flags and the content; the id is left to the caller.
Result<AddedToken> read_added_token(const nlohmann::json& entry, std::string_view path);

/// Errors: bad_file naming `file`.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view file);

tl::unexpected<Error> not_supported(std::string_view path, std::string_view what);

}  // namespace underkeel::data
