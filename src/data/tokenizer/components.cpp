// Normalizers, pre-tokenizers, decoders and post-processors by their names in tokenizer.json.

#include "data/tokenizer/components.h"

#include <algorithm>
#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/json_field.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

// Sequences may hold sequences; no real file goes deeper than two.
constexpr int deepest_nesting = 8;

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

Result<Regex> read_pattern(const Json& component, std::string_view path) {
  const Json* pattern = find_field(component, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 ||
      !pattern->begin()->is_string() ||
      (pattern->begin().key() != "Regex" && pattern->begin().key() != "String"))
    return bad_field(path, "pattern", R"({"Regex": "..."} or {"String": "..."})");
  const auto& text = pattern->begin()->get_ref<const std::string&>();
  return Regex::compile(pattern->begin().key() == "Regex" ? text : escape_regex(text));
}

// A count that is not negative and harmless to loop to.
Result<std::size_t> count_field(const Json& component, std::string_view path,
                                std::string_view key) {
  const Json* field = find_field(component, key);
  if (field == nullptr || !field->is_number_unsigned() || field->get<std::uint64_t>() > 1 << 20)
    return bad_field(path, key, "a small number from 0");
  return field->get<std::size_t>();
}

Result<std::string> character_field(const Json& component, std::string_view path,
                                    std::string_view key) {
  UK_TRY(text, text_field(component, path, key));
  if (text.empty() || text.size() != code_point_bytes(text[0]))
    return bad_field(path, key, "one character");
  return text;
}

Result<MetaspaceOptions> read_metaspace(const Json& component, std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, Prepend>, 3> schemes = {
      {{"always", Prepend::always}, {"first", Prepend::first}, {"never", Prepend::never}}};
  MetaspaceOptions options;
  UK_TRY(mark, character_field(component, path, "replacement"));
  options.mark = std::move(mark);
  UK_TRY(split, bool_field(component, path, "split", true));
  options.split = split;
  UK_TRY(name, text_field(component, path, "prepend_scheme"));
  const auto* scheme = name.empty()
                           ? schemes.begin()
                           : std::find_if(schemes.begin(), schemes.end(),
                                          [&](auto& entry) { return entry.first == name; });
  if (scheme == schemes.end()) return bad_field(path, "prepend_scheme", "always, first or never");
  options.prepend = scheme->second;
  UK_TRY(adds_space, bool_field(component, path, "add_prefix_space", true));
  if (!adds_space && options.prepend != Prepend::never)
    return fail(ErrorCode::bad_file, "`add_prefix_space` is false, `prepend_scheme` is not never",
                fmt::format("tokenizer.json: {}", path), R"(write "prepend_scheme": "never")");
  return options;
}

Result<std::unique_ptr<Normalizer>> normalizer_at(const Json& component, std::string_view path,
                                                  int depth) {
  UK_TRY(type, type_of(component, path));
  if (type == "NFC") return make_nfc_normalizer();
  if (type == "Prepend") {
    UK_TRY(prefix, text_field(component, path, "prepend"));
    return make_prepend_normalizer(std::move(prefix));
  }
  if (type == "Replace") {
    UK_TRY(regex, read_pattern(component, path));
    UK_TRY(content, text_field(component, path, "content"));
    return make_replace_normalizer(std::move(regex), std::move(content));
  }
  if (type == "Strip") {
    UK_TRY(left, bool_field(component, path, "strip_left", false));
    UK_TRY(right, bool_field(component, path, "strip_right", false));
    return make_strip_normalizer(left, right);
  }
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "normalizers"));
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const Json& entry : *list) {
      UK_TRY(part, normalizer_at(entry, fmt::format("{}.normalizers[{}]", path, parts.size()),
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
  UK_TRY(regex, read_pattern(component, path));
  UK_TRY(behavior, read_behavior(component, path));
  UK_TRY(invert, bool_field(component, path, "invert", false));
  return make_split(std::move(regex), behavior, invert);
}

Result<std::unique_ptr<PreTokenizer>> pre_tokenizer_at(const Json& component, std::string_view path,
                                                       int depth) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") {
    UK_TRY(add_prefix_space, bool_field(component, path, "add_prefix_space", true));
    UK_TRY(use_regex, bool_field(component, path, "use_regex", true));
    return make_byte_level({.add_prefix_space = add_prefix_space, .use_regex = use_regex});
  }
  if (type == "Split") return read_split(component, path);
  if (type == "Metaspace") {
    UK_TRY(options, read_metaspace(component, path));
    return make_metaspace(std::move(options));
  }
  if (type == "Digits") {
    UK_TRY(individual_digits, bool_field(component, path, "individual_digits", false));
    return make_digits(individual_digits);
  }
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "pretokenizers"));
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    for (const Json& entry : *list) {
      UK_TRY(part, pre_tokenizer_at(entry, fmt::format("{}.pretokenizers[{}]", path, parts.size()),
                                    depth + 1));
      parts.push_back(std::move(part));
    }
    return make_pre_tokenizer_sequence(std::move(parts));
  }
  return not_supported(path, fmt::format("pre-tokenizer `{}`", type));
}

Result<std::unique_ptr<Decoder>> decoder_at(const Json& component, std::string_view path,
                                            int depth) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Fuse") return make_fuse_decoder();
  if (type == "Replace") {
    UK_TRY(regex, read_pattern(component, path));
    UK_TRY(content, text_field(component, path, "content"));
    return make_replace_decoder(std::move(regex), std::move(content));
  }
  if (type == "Strip") {
    UK_TRY(character, character_field(component, path, "content"));
    UK_TRY(left, count_field(component, path, "start"));
    UK_TRY(right, count_field(component, path, "stop"));
    return make_strip_decoder({.character = std::move(character), .left = left, .right = right});
  }
  if (type == "Metaspace") {
    UK_TRY(options, read_metaspace(component, path));
    return make_metaspace_decoder(std::move(options));
  }
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "decoders"));
    std::vector<std::unique_ptr<Decoder>> parts;
    for (const Json& entry : *list) {
      UK_TRY(part,
             decoder_at(entry, fmt::format("{}.decoders[{}]", path, parts.size()), depth + 1));
      parts.push_back(std::move(part));
    }
    return make_decoder_sequence(std::move(parts));
  }
  return not_supported(path, fmt::format("decoder `{}`", type));
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens":
// {"<s>": {"ids": [1]}}}
Result<void> read_template(const Json& component, std::string_view path, TokenizerFile& file) {
  UK_TRY(single, list_field(component, path, "single"));
  const Json* special = find_field(component, "special_tokens");
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
  int text_count = 0;
  for (const Json& entry : *single) {
    if (find_field(entry, "Sequence") != nullptr) {
      ++text_count;
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
      (text_count > 0 ? suffix : prefix).push_back(id.get<std::int32_t>());
    }
  }
  if (text_count != 1)
    return not_supported(path, fmt::format("a template with the text {} times", text_count));
  // A later post-processor goes around what an earlier one made.
  file.template_prefix.insert(file.template_prefix.begin(), prefix.begin(), prefix.end());
  file.template_suffix.insert(file.template_suffix.end(), suffix.begin(), suffix.end());
  return {};
}

Result<void> post_processor_at(const Json& component, std::string_view path, TokenizerFile& file,
                               int depth) {
  UK_TRY(type, type_of(component, path));
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return read_template(component, path, file);
  if (type == "Sequence" && depth < deepest_nesting) {
    UK_TRY(list, list_field(component, path, "processors"));
    int index = 0;
    for (const Json& entry : *list)
      UK_TRY_VOID(post_processor_at(entry, fmt::format("{}.processors[{}]", path, index++), file,
                                    depth + 1));
    return {};
  }
  return not_supported(path, fmt::format("post-processor `{}`", type));
}

}  // namespace

Result<std::unique_ptr<Normalizer>> read_normalizer(const Json& component, std::string_view path) {
  return normalizer_at(component, path, 0);
}
Result<std::unique_ptr<PreTokenizer>> read_pre_tokenizer(const Json& component,
                                                         std::string_view path) {
  return pre_tokenizer_at(component, path, 0);
}
std::optional<WordPattern> word_pattern_at(const Json& component) {
  const auto is = [](const Json& object, std::string_view key, const Json& value, bool absent) {
    const Json* field = find_field(object, key);
    return field == nullptr ? absent : *field == value;
  };
  if (is(component, "type", "ByteLevel", false))
    return is(component, "add_prefix_space", false, false) && is(component, "use_regex", true, true)
               ? std::optional(WordPattern::gpt2)
               : std::nullopt;
  const Json* parts = find_field(component, "pretokenizers");
  if (!is(component, "type", "Sequence", false) || parts == nullptr || parts->size() != 2)
    return std::nullopt;
  const Json& split = (*parts)[0];
  const Json& bytes = (*parts)[1];
  const Json* pattern = find_field(split, "pattern");
  const Json* regex = pattern == nullptr ? nullptr : find_field(*pattern, "Regex");
  const bool is_plain =
      is(split, "type", "Split", false) && is(split, "behavior", "Isolated", false) &&
      is(split, "invert", false, true) && is(bytes, "type", "ByteLevel", false) &&
      is(bytes, "add_prefix_space", false, false) && is(bytes, "use_regex", false, false);
  if (!is_plain || regex == nullptr || !regex->is_string()) return std::nullopt;
  return word_pattern_of(regex->get_ref<const std::string&>());
}

Result<std::unique_ptr<Decoder>> read_decoder(const Json& component, std::string_view path) {
  return decoder_at(component, path, 0);
}
Result<void> read_post_processor(const Json& component, std::string_view path,
                                 TokenizerFile& file) {
  return post_processor_at(component, path, file, 0);
}

}  // namespace underkeel::data
