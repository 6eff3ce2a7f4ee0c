// An adapter file beside its config and model: files of 40 bytes, and second matrices that were never trained.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/folder_rules.h"
#include "doctor/model_sizes.h"
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

bool gives_adapter_weights(const Inputs& inputs) {
  constexpr std::string_view weights = "adapter_model.safetensors";
  return std::any_of(inputs.others.begin(), inputs.others.end(), [&](const Document& document) {
    const std::filesystem::path path = document.path;
    std::error_code status;
    return path.filename() == weights || std::filesystem::exists(path / weights, status);
  });
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

void check_adapters_beside(const Inputs& inputs, const std::string& folder,
                           const std::vector<std::string>& names, Diagnosis& diagnosis) {
  const auto has = [&](std::string_view start) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.starts_with(start); });
  };
  const std::string file = std::filesystem::path(folder).filename().string();
  const auto tell = [&](std::string_view id, Severity severity, Engine engine) {
    diagnosis.findings.push_back(
        {.id = std::string(id),
         .severity = severity,
         .certainty = engine == Engine::underkeel ? Certainty::exact : Certainty::estimate,
         .engine = engine,
         .file = file,
         .slots = {{"files", fmt::format("{}", fmt::join(names, ", "))}}});
  };
  // Of the folder that a run begins from our engine says so itself.
  if (!inputs.run || inputs.model_folder != folder)
    tell("adapters-beside-weights", inputs.run ? Severity::warning : Severity::error,
         Engine::underkeel);
  const bool has_config = has("adapter_config"), has_weights = has("adapter_model");
  tell(!has_config    ? "adapters-without-config"
       : !has_weights ? "adapters-without-weights"
                      : "adapters-on-weights",
       has_config ? Severity::warning : Severity::info, Engine::deepspeed);
}

void check_adapter_config(const Question& question, const Inputs& inputs, Diagnosis& diagnosis) {
  if (!inputs.adapter) return;
  const spec::Value& root = inputs.adapter->root;
  const auto tell = [&](std::string_view id, Severity severity, Engine engine,
                        std::vector<Slot> slots) {
    diagnosis.findings.push_back({.id = std::string(id),
                                  .severity = severity,
                                  .engine = engine,
                                  .file = inputs.adapter->file,
                                  .slots = std::move(slots)});
  };
  if (value_at(root, "peft_type") == nullptr)
    tell("adapter-config-without-type", Severity::warning, Engine::deepspeed, {});
  const bool is_given = std::any_of(
      question.paths.begin(), question.paths.end(),
      [&](const auto& path) { return path == std::filesystem::path(inputs.adapter->path); });
  // Beside a run, an export or a machine more is asked; weights are checked with it.
  if (!is_given || inputs.run || inputs.deepspeed || inputs.exporting || inputs.machine ||
      gives_adapter_weights(inputs))
    return;
  const auto config = *adapter_config(inputs, {});
  std::vector<Slot> slots = {
      {"rank", fmt::format("{}", config.rank)},
      {"alpha", fmt::format("{}", number_at(root, "lora_alpha").value_or(8))},
      {"targets", config.targets.empty() ? "@adapter.no-targets"
                                         : fmt::format("{}", fmt::join(config.targets, ", "))},
      {"base", text_at(root, "base_model_name_or_path").value_or("@adapter.no-base")}};
  const std::int64_t tensors = inputs.model ? expected_tensors(*inputs.model, config) : 0;
  if (tensors == 0) return tell("adapter-config-alone", Severity::info, Engine::both, slots);
  RunFacts run;
  run.lora_rank = config.rank;
  run.lora_targets = config.targets;
  std::replace(run.lora_targets.begin(), run.lora_targets.end(), std::string("all-linear"),
               std::string("all"));
  const ModelSizes sizes = sizes_of(*inputs.model, run);
  slots.push_back({"tensors", fmt::format("{}", tensors)});
  slots.push_back({"count", fmt::format("{:.0f}", sizes.trainable)});
  slots.push_back({"size_16", amount(2 * sizes.trainable)});
  slots.push_back({"size_32", amount(4 * sizes.trainable)});
  slots.push_back({"whole", amount(2 * sizes.frozen)});
  tell("adapter-config-of-model", Severity::info, Engine::both, std::move(slots));
}

}  // namespace underkeel::doctor
