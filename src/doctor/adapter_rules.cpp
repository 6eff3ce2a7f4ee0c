// An adapter file beside its config and model: files of 40 bytes, and second matrices that were never trained.

#include <algorithm>

#include <fmt/format.h>

#include "doctor/folder_rules.h"
#include "doctor/run_facts.h"
#include "io/adapter_weights.h"
#include "spec/fields.h"
#include "spec/json_reader.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

struct AdapterConfig {
  std::vector<std::string> targets;
  std::int64_t rank = 0;
};

std::optional<AdapterConfig> adapter_config(const Inputs& inputs, const std::string& folder) {
  spec::Value root;
  if (inputs.adapter) {
    root = inputs.adapter->root;
  } else {
    const auto text = spec::read_text_file(std::filesystem::path(folder) / "adapter_config.json");
    if (!text) return std::nullopt;
    auto document = spec::read_json(*text, "adapter_config.json", spec::JsonDialect::strict);
    if (!document) return std::nullopt;
    root = std::move(document->root);
  }
  const spec::Value* patterns = value_at(root, "rank_pattern");
  const bool has_one_rank = patterns == nullptr || patterns->entries.empty();
  AdapterConfig config{.rank = has_one_rank ? whole_at(root, "r").value_or(8) : 0};
  const spec::Value* targets = value_at(root, "target_modules");
  if (targets == nullptr) return config;
  if (targets->kind == spec::ValueKind::text) config.targets = spec::split_words(targets->text);
  for (const spec::Value& item : targets->items) config.targets.push_back(item.text);
  return config;
}

/// Two matrices for each target of each layer.
std::int64_t expected_tensors(const spec::ModelSpec& model, const AdapterConfig& config) {
  std::int64_t count = 0;
  for (const spec::Parameter& parameter : spec::parameters_of(model)) {
    if (parameter.role != spec::ParameterRole::matrix) continue;
    count +=
        2 *
        std::any_of(config.targets.begin(), config.targets.end(), [&](const std::string& target) {
          return target == "all-linear" || parameter.name.ends_with("." + target + ".weight");
        });
  }
  return count;
}

}  // namespace

void check_adapter(io::FileSystem& files, const Inputs& inputs, const io::SafetensorsHeader& header,
                   const std::string& folder, Diagnosis& diagnosis) {
  const std::string file = std::filesystem::path(header.path).filename().string();
  const auto tell = [&](std::string_view id, Severity severity, std::vector<Slot> slots) {
    diagnosis.findings.push_back(
        {.id = std::string(id), .severity = severity, .file = file, .slots = std::move(slots)});
  };
  const auto count = static_cast<std::int64_t>(header.tensors.size());
  const auto config = adapter_config(inputs, folder);
  const std::int64_t expected =
      config && inputs.model ? expected_tensors(*inputs.model, *config) : -1;
  if (count == 0 && expected < 0)
    tell("adapter-is-empty", Severity::error,
         {{"bytes", fmt::format("{}", header.file_size_bytes)}});
  else if (count == 0 || count < expected)
    tell("adapter-lacks-tensors", Severity::error,
         {{"bytes", fmt::format("{}", header.file_size_bytes)},
          {"found", fmt::format("{}", count)},
          {"expected", fmt::format("{}", expected)}});
  if (io::second_matrices_are_zero(files, header).value_or(false))
    tell("adapter-never-trained", Severity::warning, {{"found", fmt::format("{}", count / 2)}});
  for (const Error& problem : io::check_adapter_pairs(header, config ? config->rank : 0))
    tell("weights-odd", Severity::warning, {{"what", problem.what}});
  if (count > 0 && count >= expected)
    tell("adapter-whole", Severity::info,
         {{"found", fmt::format("{}", count)},
          {"how", expected < 0 ? "@adapter.alone" : "@adapter.of-model"}});
}

}  // namespace underkeel::doctor
