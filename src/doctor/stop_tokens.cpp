// End and padding tokens: those of the tokenizer against those of the template.

#include <fmt/format.h>

#include "data/template.h"
#include "doctor/folder_rules.h"
#include "doctor/run_facts.h"
#include "spec/json_reader.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;

/// eos_token and the like: a text, or an object with `content`.
std::string token_in(const spec::Value& root, std::string_view key) {
  if (const auto text = text_at(root, key)) return *text;
  return text_at(root, fmt::format("{}.content", key)).value_or("");
}

std::optional<spec::Value> json_of(const fs::path& path) {
  const auto text = spec::read_text_file(path);
  if (!text) return std::nullopt;
  auto document = spec::read_json(*text, path.string(), spec::JsonDialect::strict);
  if (!document || document->root.kind != spec::ValueKind::mapping) return std::nullopt;
  return std::move(document->root);
}

}  // namespace

void check_stop_tokens(const Inputs& inputs, Diagnosis& diagnosis) {
  std::optional<spec::Value> tokenizer;
  std::string file = "tokenizer_config.json";
  if (inputs.tokenizer) {
    tokenizer = inputs.tokenizer->root;
    file = inputs.tokenizer->file;
  } else if (!inputs.model_folder.empty()) {
    tokenizer = json_of(inputs.model_folder / file);
  }
  if (!tokenizer) return;
  const std::string end = token_in(*tokenizer, "eos_token");
  const std::string padding = token_in(*tokenizer, "pad_token");
  if (!end.empty() && end == padding)
    diagnosis.findings.push_back(
        {.id = "padding-is-the-end", .file = file, .key = "pad_token", .slots = {{"token", end}}});
  if (!inputs.run) return;
  const std::string name = run_facts(inputs.run->root).template_name;
  if (name.empty()) return;
  const auto style = data::find_template(name);
  if (!style) return;
  const std::string turn_end(data::turn_end_word(**style));
  if (turn_end.empty() || end.empty() || turn_end == end) return;
  diagnosis.findings.push_back(
      {.id = "stop-token-differs",
       .severity = Severity::warning,
       .file = file,
       .key = "eos_token",
       .slots = {{"template", name}, {"turn_end", turn_end}, {"end", end}}});
}

}  // namespace underkeel::doctor
