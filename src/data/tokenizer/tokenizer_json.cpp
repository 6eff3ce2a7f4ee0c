#include "data/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/json_field.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

// Sequences may hold sequences; no real file goes deeper than two.
constexpr int deepest_nesting = 8;

tl::unexpected<Error> not_supported(std::string_view path, std::string_view what) {
  return fail(ErrorCode::unsupported, fmt::format("{} is not supported yet", what),
              fmt::format("tokenizer.json: {}", path),
              "byte-level BPE tokenizers (GPT-2, Llama 3, Qwen style) are");
}

// Takes model.vocab and model.merges out of the event stream of the parser.
class VocabularyReader {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (depth == 1) in_model_ = key == "model";
      if (depth <= 2) section_ = depth == 2 && in_model_ ? section_of(key) : Section::other;
      if (section_ != Section::vocabulary || depth != 3) return true;
      token_ = key;
      return false;
    }
    if (section_ == Section::vocabulary && depth == 3 && token_) return take_token(event, value);
    if (section_ == Section::merges && depth >= 3) return take_merge(depth, event, value);
    return true;
  }

  BpeConfig config;
  std::optional<Error> error;

 private:
  enum class Section { other, vocabulary, merges };

  static Section section_of(std::string_view key) {
    return key == "vocab"    ? Section::vocabulary
           : key == "merges" ? Section::merges
                             : Section::other;
  }

  void refuse(std::string what, std::string where) {
    if (!error) error = Error{ErrorCode::bad_file, std::move(what), std::move(where), {}};
  }

  bool take_token(Json::parse_event_t event, const Json& value) {
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    if (event != Json::parse_event_t::value || !value.is_number_integer() ||
        value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > largest)
      refuse(fmt::format("the id of token `{}` is not a number from 0", *token_), "model.vocab");
    else
      config.vocabulary.emplace_back(std::move(*token_), value.get<std::int32_t>());
    token_.reset();
    return true;  // the key was not kept, so neither is the value
  }

  // ["a", "b"] or, in older files, "a b". Depth 3 is an entry, depth 4 a half of a pair.
  bool take_merge(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    const auto where = [&] { return fmt::format("model.merges[{}]", config.merges.size()); };
    if (depth == 3 && event == Event::array_start) {
      halves_.clear();
      return true;
    }
    if (depth == 3 && event == Event::array_end) {
      if (halves_.size() == 2)
        config.merges.emplace_back(std::move(halves_[0]), std::move(halves_[1]));
      else
        refuse("a merge is not a pair", where());
      return false;
    }
    if (event != Event::value || !value.is_string()) {
      refuse("a merge is neither a pair of texts nor one text", where());
      return true;
    }
    const auto& text = value.get_ref<const std::string&>();
    if (depth == 4) {
      if (halves_.size() < 3) halves_.push_back(text);
      return false;
    }
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      refuse(fmt::format("merge `{}` is not two texts with a space between", text), where());
    else
      config.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return false;
  }

  bool in_model_ = false;
  Section section_ = Section::other;
  std::optional<std::string> token_;
  std::vector<std::string> halves_;
};

Result<Json> parse_json(std::string_view text, std::string_view file,
                        const Json::parser_callback_t& callback) {
  try {
    return Json::parse(text.begin(), text.end(), callback);
  } catch (const Json::exception& exception) {
    return fail(ErrorCode::bad_file, fmt::format("not valid JSON: {}", exception.what()),
                std::string(file));
  }
}

Result<std::string> type_of(const Json& component, std::string_view path) {
  UK_TRY(type, text_field(component, path, "type"));
  if (type.empty()) return bad_field(path, "type", "a name");
  return type;
}

Result<const Json*> list_field(const Json& component, std::string_view path, std::string_view key) {
  const Json* list = find_field(component, key);
  if (list == nullptr || !list->is_array()) return bad_field(path, key, "a list");
  return list;
}

Result<std::unique_ptr<Normalizer>> read_normalizer(const Json& component, std::string_view path,
                                                    int depth = 0) {
  UK_TRY(type, type_of(component, path));
  if (type == "NFC") return make_nfc_normalizer();
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "normalizers"));
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const Json& entry : *list) {
      UK_TRY(part, read_normalizer(entry, fmt::format("{}.normalizers[{}]", path, parts.size()),
                                   depth + 1));
      parts.push_back(std::move(part));
    }
    return make_normalizer_sequence(std::move(parts));
  }
  return not_supported(path, fmt::format("normalizer `{}`", type));
}

Result<SplitBehavior> read_behavior(const Json& component, std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names = {{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  UK_TRY(text, text_field(component, path, "behavior"));
  for (const auto& [name, behavior] : names)
    if (name == text) return behavior;
  return bad_field(path, "behavior",
                   "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

Result<std::unique_ptr<PreTokenizer>> read_split(const Json& component, std::string_view path) {
  const Json* pattern = find_field(component, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 ||
      !pattern->begin()->is_string() ||
      (pattern->begin().key() != "Regex" && pattern->begin().key() != "String"))
    return bad_field(path, "pattern", R"({"Regex": "..."} or {"String": "..."})");
  const auto& text = pattern->begin()->get_ref<const std::string&>();
  UK_TRY(regex, Regex::compile(pattern->begin().key() == "Regex" ? text : escape_regex(text)));
  UK_TRY(behavior, read_behavior(component, path));
  UK_TRY(invert, bool_field(component, path, "invert", false));
  return make_split(std::move(regex), behavior, invert);
}

Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const Json& component,
                                                         std::string_view path, int depth = 0) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") {
    UK_TRY(add_prefix_space, bool_field(component, path, "add_prefix_space", true));
    UK_TRY(use_regex, bool_field(component, path, "use_regex", true));
    return make_byte_level({.add_prefix_space = add_prefix_space, .use_regex = use_regex});
  }
  if (type == "Split") return read_split(component, path);
  if (type == "Digits") {
    UK_TRY(individual_digits, bool_field(component, path, "individual_digits", false));
    return make_digits(individual_digits);
  }
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "pretokenizers"));
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    for (const Json& entry : *list) {
      UK_TRY(part, read_pre_tokenizer(
                       entry, fmt::format("{}.pretokenizers[{}]", path, parts.size()), depth + 1));
      parts.push_back(std::move(part));
    }
    return make_pre_tokenizer_sequence(std::move(parts));
  }
  return not_supported(path, fmt::format("pre-tokenizer `{}`", type));
}

Result<std::unique_ptr<Decoder>> read_decoder(const Json& component, std::string_view path) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") return make_byte_level_decoder();
  return not_supported(path, fmt::format("decoder `{}`", type));
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens":
// {"<s>": {"ids": [1]}}}
Result<void> read_template(const Json& component, std::string_view path, TokenizerFile& file) {
  UK_TRY(single, list_field(component, path, "single"));
  const Json* special = find_field(component, "special_tokens");
  bool after_text = false;
  for (const Json& entry : *single) {
    if (find_field(entry, "Sequence") != nullptr) {
      after_text = true;
      continue;
    }
    const Json* token = find_field(entry, "SpecialToken");
    if (token == nullptr) return bad_field(path, "single", "a list of SpecialToken and Sequence");
    UK_TRY(name, text_field(*token, path, "id"));
    const Json* known = special == nullptr ? nullptr : find_field(*special, name);
    const Json* ids = known == nullptr ? nullptr : find_field(*known, "ids");
    if (ids == nullptr || !ids->is_array())
      return fail(ErrorCode::bad_file, fmt::format("template token `{}` has no ids", name),
                  fmt::format("tokenizer.json: {}.special_tokens", path));
    for (const Json& id : *ids) {
      if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
          id.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
        return bad_field(path, "special_tokens", "a map to token ids");
      (after_text ? file.template_suffix : file.template_prefix).push_back(id.get<std::int32_t>());
    }
  }
  return {};
}

Result<void> read_post_processor(const Json& component, std::string_view path, TokenizerFile& file,
                                 int depth = 0) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return read_template(component, path, file);
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "processors"));
    int index = 0;
    for (const Json& entry : *list)
      UK_TRY_VOID(read_post_processor(entry, fmt::format("{}.processors[{}]", path, index++), file,
                                      depth + 1));
    return {};
  }
  return not_supported(path, fmt::format("post-processor `{}`", type));
}

Result<std::unique_ptr<Model>> read_model(const Json& component, BpeConfig config) {
  UK_TRY(type, text_field(component, "model", "type"));
  // Early files have no type; one with merges is BPE.
  if (type.empty() && component.contains("merges")) type = "BPE";
  if (type != "BPE") return not_supported("model", fmt::format("model `{}`", type));
  if (!component.contains("vocab") || !component["vocab"].is_object())
    return bad_field("model", "vocab", "a map from token to id");
  if (!component.contains("merges") || !component["merges"].is_array())
    return bad_field("model", "merges", "a list");
  static constexpr std::array<std::string_view, 10> known = {"type",
                                                             "dropout",
                                                             "unk_token",
                                                             "continuing_subword_prefix",
                                                             "end_of_word_suffix",
                                                             "fuse_unk",
                                                             "byte_fallback",
                                                             "ignore_merges",
                                                             "vocab",
                                                             "merges"};
  for (const auto& [key, value] : component.items())
    if (std::find(known.begin(), known.end(), key) == known.end() && !value.is_null())
      return not_supported("model", fmt::format("`{}` of a BPE model", key));
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    UK_TRY(affix, text_field(component, "model", key));
    if (!affix.empty()) return not_supported("model", fmt::format("{} `{}`", key, affix));
  }
  if (const Json* dropout = find_field(component, "dropout"); dropout != nullptr && *dropout != 0)
    return not_supported("model", "dropout of merges");
  UK_TRY(unknown, text_field(component, "model", "unk_token"));
  if (!unknown.empty()) config.unknown_token = std::move(unknown);
  UK_TRY(fuse_unknown, bool_field(component, "model", "fuse_unk", false));
  UK_TRY(byte_fallback, bool_field(component, "model", "byte_fallback", false));
  UK_TRY(ignore_merges, bool_field(component, "model", "ignore_merges", false));
  config.fuse_unknown = fuse_unknown;
  config.byte_fallback = byte_fallback;
  config.ignore_merges = ignore_merges;
  return make_bpe(std::move(config));
}

Result<AddedToken> read_added_token(const Json& entry, std::string_view path) {
  AddedToken token;
  UK_TRY(content, text_field(entry, path, "content"));
  if (content.empty()) return bad_field(path, "content", "a text");
  UK_TRY(special, bool_field(entry, path, "special", false));
  UK_TRY(single_word, bool_field(entry, path, "single_word", false));
  UK_TRY(lstrip, bool_field(entry, path, "lstrip", false));
  UK_TRY(rstrip, bool_field(entry, path, "rstrip", false));
  UK_TRY(normalized, bool_field(entry, path, "normalized", !special));
  return AddedToken{.content = std::move(content),
                    .single_word = single_word,
                    .lstrip = lstrip,
                    .rstrip = rstrip,
                    .normalized = normalized,
                    .special = special};
}

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
  token.special = true;
  token.normalized = field.value("normalized", false);
  return token;
}

}  // namespace

Result<TokenizerFile> read_tokenizer_json(std::string_view text) {
  VocabularyReader vocabulary;
  UK_TRY(json, parse_json(text, "tokenizer.json", std::ref(vocabulary)));
  if (vocabulary.error) {
    vocabulary.error->where = "tokenizer.json: " + vocabulary.error->where;
    return tl::unexpected(std::move(*vocabulary.error));
  }
  if (!json.is_object())
    return fail(ErrorCode::bad_file, "the file is not a JSON object", "tokenizer.json");
  TokenizerFile file;
  if (const Json* component = find_field(json, "normalizer")) {
    UK_TRY(normalizer, read_normalizer(*component, "normalizer"));
    file.normalizer = std::move(normalizer);
  }
  if (const Json* component = find_field(json, "pre_tokenizer")) {
    UK_TRY(pre_tokenizer, read_pre_tokenizer(*component, "pre_tokenizer"));
    file.pre_tokenizer = std::move(pre_tokenizer);
  }
  if (const Json* component = find_field(json, "post_processor"))
    UK_TRY_VOID(read_post_processor(*component, "post_processor", file));
  file.decoder = make_joining_decoder();
  if (const Json* component = find_field(json, "decoder")) {
    UK_TRY(decoder, read_decoder(*component, "decoder"));
    file.decoder = std::move(decoder);
  }
  const Json* model = find_field(json, "model");
  if (model == nullptr || !model->is_object())
    return fail(ErrorCode::bad_file, "there is no model", "tokenizer.json");
  UK_TRY(made_model, read_model(*model, std::move(vocabulary.config)));
  file.model = std::move(made_model);
  if (const Json* list = find_field(json, "added_tokens")) {
    if (!list->is_array()) return bad_field("tokenizer.json", "added_tokens", "a list");
    for (const Json& entry : *list) {
      const std::string path = fmt::format("added_tokens[{}]", file.added_tokens.size());
      UK_TRY(token, read_added_token(entry, path));
      const Json* id = find_field(entry, "id");
      if (id == nullptr || !id->is_number_integer() || id->get<std::int64_t>() < 0 ||
          id->get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
        return bad_field(path, "id", "a number from 0");
      token.id = id->get<std::int32_t>();
      file.added_tokens.push_back(std::move(token));
    }
  }
  return file;
}

Result<TokenizerConfigFile> read_tokenizer_config_json(std::string_view text) {
  UK_TRY(json, parse_json(text, "tokenizer_config.json", nullptr));
  if (!json.is_object())
    return fail(ErrorCode::bad_file, "the file is not a JSON object", "tokenizer_config.json");
  TokenizerConfigFile file;
  for (const auto& [key, target] :
       {std::pair{"bos_token", &file.begin}, std::pair{"eos_token", &file.end},
        std::pair{"pad_token", &file.padding}, std::pair{"unk_token", &file.unknown}}) {
    if (const Json* field = find_field(json, key)) {
      UK_TRY(token, read_special(*field, key));
      *target = std::move(token);
    }
  }
  for (const std::string_view key : {"additional_special_tokens", "extra_special_tokens"}) {
    // Newer files may map names to tokens instead of listing them.
    const Json* list = find_field(json, key);
    if (list == nullptr || !list->is_structured()) continue;
    for (const Json& entry : *list) {
      UK_TRY(token, read_special(entry, key));
      if (token) file.additional.push_back(std::move(*token));
    }
  }
  if (const Json* decoder = find_field(json, "added_tokens_decoder");
      decoder != nullptr && decoder->is_object()) {
    for (const auto& [id, entry] : decoder->items()) {
      UK_TRY(token, read_added_token(entry, fmt::format("added_tokens_decoder.{}", id)));
      if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos)
        return bad_field("tokenizer_config.json", "added_tokens_decoder", "a map from ids");
      token.id = std::stoi(id);
      file.added_decoder.push_back(std::move(token));
    }
    std::sort(file.added_decoder.begin(), file.added_decoder.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  }
  UK_TRY(add_begin, bool_field(json, "tokenizer_config.json", "add_bos_token", false));
  file.add_begin = add_begin;
  return file;
}

}  // namespace underkeel::data
