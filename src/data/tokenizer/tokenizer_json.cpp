// The top level of tokenizer.json and its model. Components: components.cpp.

#include "data/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/json_field.h"
#include "data/tokenizer/components.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

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

Result<Json> parse_json_with(std::string_view text, std::string_view file,
                             const Json::parser_callback_t& callback) {
  try {
    return Json::parse(text.begin(), text.end(), callback);
  } catch (const Json::exception& exception) {
    return fail(ErrorCode::bad_file, fmt::format("not valid JSON: {}", exception.what()),
                std::string(file));
  }
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

}  // namespace

tl::unexpected<Error> not_supported(std::string_view path, std::string_view what) {
  return fail(ErrorCode::unsupported, fmt::format("{} is not supported yet", what),
              fmt::format("tokenizer.json: {}", path),
              "BPE tokenizers (GPT-2, Llama, Mistral, Qwen, Gemma style) are");
}

Result<Json> parse_json(std::string_view text, std::string_view file) {
  return parse_json_with(text, file, nullptr);
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

Result<TokenizerFile> read_tokenizer_json(std::string_view text) {
  VocabularyReader vocabulary;
  UK_TRY(json, parse_json_with(text, "tokenizer.json", std::ref(vocabulary)));
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
    file.words = word_pattern_at(*component);
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
  if (file.words) {
    UK_TRY(cutter, WordCutter::get());
    file.cutter = cutter;
    vocabulary.config.has_byte_words = true;
  }
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

}  // namespace underkeel::data
