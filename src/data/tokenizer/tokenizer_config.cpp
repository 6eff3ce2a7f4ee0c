// The keys of tokenizer_config.json and of the older files beside it.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/json_field.h"
#include "data/tokenizer/components.h"
#include "data/tokenizer/tokenizer_json.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

// A special token of tokenizer_config.json: a text, or an object.
Result<std::optional<AddedToken>> read_special(const Json& field, std::string_view key) {
  if (field.is_null()) return std::nullopt;
  if (field.is_string()) {
    const auto& content = field.get_ref<const std::string&>();
    if (content.empty()) return std::nullopt;
    return AddedToken{.content = content, .normalized = false, .special = true};
  }
  if (!field.is_object())
    return fail(ErrorCode::bad_file, fmt::format("`{}` is neither a text nor a token", key),
                "tokenizer_config.json");
  UK_TRY(token, read_added_token(field, key));
  UK_TRY(normalized, bool_field(field, key, "normalized", false));
  token.special = true;
  token.normalized = normalized;
  return token;
}

// bos_token and its like, and the lists of further ones. A null takes a token away.
Result<void> read_named_tokens(const Json& json, TokenizerConfigFile& file) {
  for (const auto& [key, target] :
       {std::pair{"bos_token", &file.begin}, std::pair{"eos_token", &file.end},
        std::pair{"pad_token", &file.padding}, std::pair{"unk_token", &file.unknown}}) {
    const auto field = json.find(key);
    if (field == json.end()) continue;
    UK_TRY(token, read_special(*field, key));
    *target = std::move(token);
  }
  for (const std::string_view key : {"additional_special_tokens", "extra_special_tokens"}) {
    // Newer files may map names to tokens instead of listing them.
    const Json* list = find_field(json, key);
    if (list == nullptr || !list->is_structured()) continue;
    file.additional.clear();
    for (const Json& entry : *list) {
      UK_TRY(token, read_special(entry, key));
      if (token) file.additional.push_back(std::move(*token));
    }
  }
  return {};
}

Result<void> read_added_decoder(const Json& decoder, TokenizerConfigFile& file) {
  for (const auto& [id, entry] : decoder.items()) {
    UK_TRY(token, read_added_token(entry, fmt::format("added_tokens_decoder.{}", id)));
    if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos)
      return bad_field("tokenizer_config.json", "added_tokens_decoder", "a map from ids");
    token.id = std::stoi(id);
    file.added_decoder.push_back(std::move(token));
  }
  return {};
}

// added_tokens.json: token to id. Special are those with a role and those in `additional`.
Result<void> read_added_map(std::string_view text, const std::vector<AddedToken>& additional,
                            TokenizerConfigFile& file) {
  UK_TRY(json, parse_json(text, "added_tokens.json"));
  const auto is_named = [&](const std::string& content) {
    const auto names = [&](const std::optional<AddedToken>& token) {
      return token && token->content == content;
    };
    return names(file.begin) || names(file.end) || names(file.padding) || names(file.unknown) ||
           std::any_of(additional.begin(), additional.end(),
                       [&](const AddedToken& token) { return token.content == content; });
  };
  if (!json.is_object())
    return fail(ErrorCode::bad_file, "the file is not a JSON object", "added_tokens.json");
  for (const auto& [content, id] : json.items()) {
    if (content.empty() || !id.is_number_unsigned() || id.get<std::uint64_t>() > 1U << 30)
      return fail(ErrorCode::bad_file, fmt::format("token `{}` has no id from 0", content),
                  "added_tokens.json");
    const bool special = is_named(content);
    file.added_decoder.push_back({.content = content,
                                  .id = id.get<std::int32_t>(),
                                  .normalized = !special,
                                  .special = special});
  }
  return {};
}

}  // namespace

Result<TokenizerConfigFile> read_tokenizer_config(const TokenizerConfigTexts& texts) {
  Json json = Json::object();
  if (!texts.config.empty()) {
    UK_TRY(config, parse_json(texts.config, "tokenizer_config.json"));
    json = std::move(config);
  }
  if (!json.is_object())
    return fail(ErrorCode::bad_file, "the file is not a JSON object", "tokenizer_config.json");
  TokenizerConfigFile file;
  UK_TRY_VOID(read_named_tokens(json, file));
  if (const Json* decoder = find_field(json, "added_tokens_decoder");
      decoder != nullptr && decoder->is_object()) {
    UK_TRY_VOID(read_added_decoder(*decoder, file));
  } else {
    // The older files count only where the newer key is missing, and then before the configuration.
    // Further tokens of special_tokens_map.json come too late to make an added token special.
    const std::vector<AddedToken> additional = file.additional;
    if (!texts.special_tokens_map.empty()) {
      UK_TRY(map, parse_json(texts.special_tokens_map, "special_tokens_map.json"));
      if (map.is_object()) UK_TRY_VOID(read_named_tokens(map, file));
    }
    if (!texts.added_tokens.empty())
      UK_TRY_VOID(read_added_map(texts.added_tokens, additional, file));
  }
  std::stable_sort(file.added_decoder.begin(), file.added_decoder.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  constexpr const char* where = "tokenizer_config.json";
  UK_TRY(add_begin, bool_field(json, where, "add_bos_token", false));
  UK_TRY(add_end, bool_field(json, where, "add_eos_token", false));
  UK_TRY(legacy, bool_field(json, where, "legacy", false));
  file.add_begin = add_begin;
  file.add_end = add_end;
  file.legacy = legacy;
  file.names_begin = file.begin || json.contains("bos_token");
  file.names_end = file.end || json.contains("eos_token");
  file.names_unknown = file.unknown || json.contains("unk_token");
  if (find_field(json, "add_prefix_space") != nullptr) {
    UK_TRY(adds_space, bool_field(json, where, "add_prefix_space", true));
    file.add_prefix_space = adds_space;
  }
  UK_TRY(class_name, text_field(json, where, "tokenizer_class"));
  file.class_name = std::move(class_name);
  return file;
}

}  // namespace underkeel::data
