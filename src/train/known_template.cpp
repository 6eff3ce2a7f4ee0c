#include "train/known_template.h"

#include <nlohmann/json.hpp>

#include "data/chat_encoder.h"
#include "data/template_tokens.h"
#include "data/tokenizer.h"
#include "train/resume.h"
#include "train/side_files.h"

namespace underkeel::train {

namespace {

using Json = nlohmann::json;

/// The value of `key` in values_file, {KEY: {"value": ..., "source": ...}}; null when there is none.
Json value_of(const Json& values, const char* key) {
  if (!values.is_object() || !values.contains(key)) return {};
  const Json& entry = values[key];
  return entry.is_object() && entry.contains("value") ? entry["value"] : Json();
}

}  // namespace

Result<std::string> own_chat_template(io::FileSystem& files, const std::filesystem::path& folder) {
  const std::string jinja = (folder / "chat_template.jinja").string();
  if (files.exists(jinja)) return files.read_text(jinja, largest_side_file_bytes);
  const std::string path = (folder / "tokenizer_config.json").string();
  if (!files.exists(path)) return std::string();
  UK_TRY(text, files.read_text(path, largest_side_file_bytes));
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object() || !config.contains("chat_template") ||
      !config["chat_template"].is_string())
    return std::string();
  return config["chat_template"].get<std::string>();
}

std::string likely_template(const std::string& jinja) {
  const std::pair<const char*, const char*> marks[] = {{"<|start_header_id|>", "llama3"},
                                                       {"<|header_start|>", "llama4"},
                                                       {"<start_of_turn>", "gemma"},
                                                       {"<|im_sep|>", "phi4"},
                                                       {"<think>", "qwen3"},
                                                       {"You are Qwen", "qwen"},
                                                       {"<|im_start|>", "chatml"},
                                                       {"[SYSTEM_PROMPT]", "mistral_small"},
                                                       {"<<SYS>>", "llama2"},
                                                       {"[INST]", "mistral"},
                                                       {"<|end|>", "phi"}};
  for (const auto& [mark, name] : marks)
    if (jinja.find(mark) != std::string::npos) return name;
  return {};
}

Result<const data::Template*> template_that_writes(const std::string& jinja,
                                                   const std::filesystem::path& folder) {
  UK_TRY(tokenizer, data::Tokenizer::load(folder));
  for (const data::Template& style : data::all_templates()) {
    const auto changed = tokenizer.with(data::template_changes(tokenizer, style));
    if (changed && data::jinja_of(*changed, style, data::ChatStyle::of(style).system) == jinja)
      return &style;
  }
  return nullptr;
}

Result<std::optional<TrainedTemplate>> template_of_run(io::FileSystem& files,
                                                       const std::filesystem::path& folder) {
  const std::string path = (folder / values_file).string();
  if (!files.exists(path)) return std::nullopt;
  UK_TRY(text, files.read_text(path, largest_side_file_bytes));
  const Json values = Json::parse(text, nullptr, false);
  if (values.is_discarded())
    return fail(ErrorCode::bad_file, "not JSON, so the template of the run is not known", path,
                "give --template NAME, or --template none to continue the prompt as a text");
  if (value_of(values, "stage") != "sft") return std::nullopt;
  TrainedTemplate found;
  if (const Json name = value_of(values, "template"); name.is_string()) {
    found.name = name.get<std::string>();
  } else {
    UK_TRY(jinja, own_chat_template(files, folder));
    if (jinja.empty()) return std::nullopt;
    UK_TRY(writer, template_that_writes(jinja, folder));
    if (writer == nullptr) return std::nullopt;
    found.name = writer->name;
  }
  // A text that looks like a number is written as one.
  const Json system = value_of(values, "default_system");
  if (!system.is_null())
    found.system = system.is_string() ? system.get<std::string>() : system.dump();
  const Json thinking = value_of(values, "enable_thinking");
  if (thinking.is_boolean()) found.enable_thinking = thinking.get<bool>();
  if (thinking == "null") found.enable_thinking = std::nullopt;
  return found;
}

}  // namespace underkeel::train
