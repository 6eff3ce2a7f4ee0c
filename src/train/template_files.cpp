#include "train/template_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/template_tokens.h"

namespace underkeel::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

ExtraFile* find_file(std::vector<ExtraFile>& files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const ExtraFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

Result<OrderedJson> parse_object(const ExtraFile& file) {
  OrderedJson json = OrderedJson::parse(file.text, nullptr, false);
  if (!json.is_object())
    return fail(ErrorCode::bad_file, "the file is no JSON object", file.name,
                "mend it in the model's folder");
  return json;
}

std::vector<std::int64_t> ids_in(const OrderedJson& json, const char* key) {
  std::vector<std::int64_t> ids;
  if (!json.is_object() || !json.contains(key)) return ids;
  const OrderedJson& value = json[key];
  if (value.is_number_integer()) ids.push_back(value.get<std::int64_t>());
  if (value.is_array())
    for (const OrderedJson& item : value)
      if (item.is_number_integer()) ids.push_back(item.get<std::int64_t>());
  return ids;
}

// Sets ids where the tokenizer has a token and the file another, or none.
bool set_id(OrderedJson& json, const char* key, const std::optional<data::SpecialToken>& token) {
  if (!token || ids_in(json, key) == std::vector<std::int64_t>{token->id}) return false;
  json[key] = token->id;
  return true;
}

bool set_text(OrderedJson& json, const char* key, const std::optional<data::SpecialToken>& token) {
  if (!token) return false;
  if (json.contains(key) && json[key].is_string() && json[key] == token->text) return false;
  if (json.contains(key) && json[key].is_object() && json[key].contains("content") &&
      json[key]["content"] == token->text)
    return false;
  json[key] = token->text;
  return true;
}

Result<void> change_config(const TemplateFiles& style, ExtraFile& file) {
  UK_TRY(json, parse_object(file));
  bool changed = false;
  const auto ends = ids_in(json, "eos_token_id");
  if (style.end && std::find(ends.begin(), ends.end(), style.end->id) == ends.end())
    changed |= set_id(json, "eos_token_id", style.end);
  changed |= set_id(json, "bos_token_id", style.begin);
  changed |= set_id(json, "pad_token_id", style.padding);
  if (changed) file.text = json.dump(2) + "\n";
  return {};
}

Result<void> change_generation_config(const TemplateFiles& style,
                                      const std::vector<std::int64_t>& own_ends,
                                      std::vector<ExtraFile>& files) {
  ExtraFile* file = find_file(files, "generation_config.json");
  if (file == nullptr) {
    files.push_back({"generation_config.json", "{}\n"});
    file = &files.back();
  }
  UK_TRY(json, parse_object(*file));
  std::vector<std::int64_t> ends = own_ends;
  bool changed = false;
  const auto put_first = [&](const std::optional<data::SpecialToken>& token) {
    if (!token || std::find(ends.begin(), ends.end(), token->id) != ends.end()) return;
    ends.insert(ends.begin(), token->id);
  };
  put_first(style.end);
  put_first(style.turn_end);
  if (!ends.empty() && ids_in(json, "eos_token_id") != ends) {
    if (ends.size() == 1)
      json["eos_token_id"] = ends.front();
    else
      json["eos_token_id"] = ends;
    changed = true;
  }
  changed |= set_id(json, "bos_token_id", style.begin);
  changed |= set_id(json, "pad_token_id", style.padding);
  if (changed) file->text = json.dump(2) + "\n";
  return {};
}

Result<void> change_tokenizer_config(const TemplateFiles& style, std::vector<ExtraFile>& files) {
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    ExtraFile* file = find_file(files, name);
    if (file == nullptr) continue;
    UK_TRY(json, parse_object(*file));
    bool changed = set_text(json, "eos_token", style.end);
    changed |= set_text(json, "pad_token", style.padding);
    if (std::string_view(name) == "tokenizer_config.json") {
      OrderedJson& more = json["additional_special_tokens"];
      if (!more.is_array()) more = OrderedJson::array();
      for (const std::string& token : style.special_tokens) {
        const bool is_there = std::any_of(more.begin(), more.end(), [&](const OrderedJson& item) {
          return item == token || (item.is_object() && item.value("content", "") == token);
        });
        if (is_there) continue;
        more.push_back(token);
        changed = true;
      }
      if (more.empty()) json.erase("additional_special_tokens");
      const bool has_own = find_file(files, "chat_template.jinja") != nullptr ||
                           find_file(files, "chat_template.json") != nullptr ||
                           json.contains("chat_template");
      if (!style.jinja.empty() && (!has_own || style.replaces_jinja)) {
        json["chat_template"] = style.jinja;
        changed = true;
      }
    }
    if (changed) file->text = json.dump(2) + "\n";
  }
  // A file of its own would win over what tokenizer_config.json says now.
  if (style.replaces_jinja && !style.jinja.empty())
    std::erase_if(files, [](const ExtraFile& file) {
      return file.name == "chat_template.jinja" || file.name == "chat_template.json";
    });
  return {};
}

}  // namespace

TemplateFiles template_files_of(const data::Tokenizer& tokenizer, const data::ChatStyle& chat) {
  const data::Template& style = *chat.style;
  const data::SpecialTokens& special = tokenizer.special_tokens();
  TemplateFiles made{.name = std::string(style.name),
                     .begin = special.begin,
                     .end = special.end,
                     .padding = special.padding,
                     .jinja = data::jinja_of(tokenizer, style, chat.system),
                     .replaces_jinja = style.replaces_jinja};
  for (const std::string_view word : style.stop_words)
    if (!special.end || word != special.end->text) made.special_tokens.emplace_back(word);
  if (const std::string_view word = data::turn_end_word(style); !word.empty()) {
    if (const auto id = tokenizer.id_of(word))
      made.turn_end = data::SpecialToken{std::string(word), *id};
  } else if (data::ends_with_end_token(style)) {
    made.turn_end = special.end;
  }
  return made;
}

std::vector<std::int64_t> end_tokens_of(const std::string& generation_config,
                                        const std::string& config) {
  for (const std::string& text : {generation_config, config}) {
    const OrderedJson json = OrderedJson::parse(text, nullptr, false);
    auto ids = ids_in(json, "eos_token_id");
    if (!ids.empty()) return ids;
  }
  return {};
}

Result<void> apply_template(const TemplateFiles& style, std::vector<ExtraFile>& files) {
  if (style.name.empty()) return {};
  const auto text_of = [&](std::string_view name) {
    const ExtraFile* file = find_file(files, name);
    return file == nullptr ? std::string() : file->text;
  };
  const auto own_ends = end_tokens_of(text_of("generation_config.json"), text_of("config.json"));
  if (ExtraFile* config = find_file(files, "config.json"))
    UK_TRY_VOID(change_config(style, *config));
  UK_TRY_VOID(change_generation_config(style, own_ends, files));
  return change_tokenizer_config(style, files);
}

std::optional<std::string> end_token_note(const TemplateFiles& style,
                                          const std::vector<std::int64_t>& own_ends) {
  if (style.name.empty()) return std::nullopt;
  if (!style.turn_end)
    return fmt::format("template `{}` ends answers with nothing: the model learns no end of them",
                       style.name);
  if (std::find(own_ends.begin(), own_ends.end(), style.turn_end->id) != own_ends.end())
    return std::nullopt;
  return fmt::format(
      "template `{}` ends an answer with `{}` (id {}), the model's folder names {} as its end: the "
      "saved generation_config.json lists {} in front, so that answers stop there",
      style.name, style.turn_end->text, style.turn_end->id,
      own_ends.empty() ? std::string("none") : fmt::format("id {}", fmt::join(own_ends, ", ")),
      style.turn_end->id);
}

}  // namespace underkeel::train
