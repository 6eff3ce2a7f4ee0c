#include "doctor/alternative_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "doctor/key_rules.h"
#include "spec/run_overrides.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

// Where no path is given: a user has to put in the folder of a local NVMe.
constexpr std::string_view nvme_path = "/local_nvme";

struct Section {
  std::string_view name;
  std::string_view old_key;
  int least_stage;  // below it the block does nothing
};
constexpr Section optimizer_section = {"offload_optimizer", "cpu_offload", 1};
constexpr Section parameter_section = {"offload_param", "cpu_offload_param", 3};

/// Adds what makes `section` say `wanted` at `stage`; false where words cannot.
bool add_offload(const Value& config, const Section& section, int stage, Offload wanted,
                 std::vector<std::string>& words) {
  const std::string path = fmt::format("zero_optimization.{}", section.name);
  const std::string old_path = fmt::format("zero_optimization.{}", section.old_key);
  const bool is_old = truth_at(config, old_path).value_or(false);
  const std::string device = text_at(config, path + ".device").value_or("none");
  if (wanted == Offload::none) {
    if (stage < section.least_stage) return true;
    if (device != "none") words.push_back(fmt::format("deepspeed.{}.device=none", path));
    if (is_old) words.push_back(fmt::format("deepspeed.{}=false", old_path));
    return true;
  }
  if (is_old && wanted == Offload::cpu) return true;
  // DeepSpeed refuses the old spelling beside the new one, whatever it says.
  if (value_at(config, old_path) != nullptr) return false;
  if (device != name_of(wanted))
    words.push_back(fmt::format("deepspeed.{}.device={}", path, name_of(wanted)));
  if (wanted == Offload::nvme && !text_at(config, path + ".nvme_path"))
    words.push_back(fmt::format("deepspeed.{}.nvme_path={}", path, nvme_path));
  return true;
}

/// The key that the config has it under; DeepSpeed refuses two spellings side by side.
std::string_view gather_key(const Value& config) {
  constexpr std::string_view spellings[] = {"stage3_gather_16bit_weights_on_model_save",
                                            "gather_16bit_weights_on_model_save",
                                            "stage3_gather_fp16_weights_on_model_save"};
  for (const std::string_view spelling : spellings)
    if (value_at(config, fmt::format("zero_optimization.{}", spelling)) != nullptr) return spelling;
  return spellings[0];
}

void add_saving(const Value& config, const Wanted& wanted, std::vector<std::string>& words) {
  if (wanted.saving.gathers_weights)
    words.push_back(fmt::format("deepspeed.zero_optimization.{}=true", gather_key(config)));
  if (wanted.saving.saving == Saving::weights_only) words.emplace_back("save_only_model=true");
  if (wanted.saving.saving == Saving::nothing) words.emplace_back("save_strategy=no");
  if (wanted.save_total_limit > 0)
    words.push_back(fmt::format("save_total_limit={}", wanted.save_total_limit));
}

bool has_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& each) { return each.severity == Severity::error; });
}

}  // namespace

WordedFiles::WordedFiles(const Inputs& inputs) {
  files_.deepspeed = inputs.deepspeed;
  files_.run = inputs.run;
  files_.accelerate = inputs.accelerate;
  files_.model = inputs.model;
  files_.model_file = inputs.model_file;
  files_.machine = inputs.machine;
  files_.machine_file = inputs.machine_file;
  files_.ranks = inputs.ranks;
  if (inputs.deepspeed) config_ = inputs.deepspeed->root;
}

std::optional<std::vector<std::string>> WordedFiles::words_for(const Wanted& wanted,
                                                               const MemoryCase& memory) const {
  std::vector<std::string> words;
  const Value* zero = value_at(config_, "zero_optimization");
  const bool offloads = wanted.optimizer != Offload::none || wanted.parameters != Offload::none;
  const bool is_switch = zero != nullptr && zero->kind == ValueKind::boolean;
  const bool sets_stage = wanted.stage != memory.settings.stage;
  // Below `"zero_optimization": true` there are no keys.
  if (is_switch && (sets_stage || offloads || wanted.saving.gathers_weights))
    words.push_back(fmt::format("deepspeed.zero_optimization={{\"stage\":{}}}", wanted.stage));
  else if (sets_stage)
    words.push_back(fmt::format("deepspeed.zero_optimization.stage={}", wanted.stage));
  if (!add_offload(config_, optimizer_section, wanted.stage, wanted.optimizer, words) ||
      !add_offload(config_, parameter_section, wanted.stage, wanted.parameters, words))
    return std::nullopt;
  if (wanted.recomputes != memory.run.recomputes)
    words.push_back(fmt::format("disable_gradient_checkpointing={}", !wanted.recomputes));
  if (wanted.evaluation_batch > 0 && wanted.evaluation_batch != memory.run.evaluation_batch) {
    words.push_back(fmt::format("per_device_eval_batch_size={}", wanted.evaluation_batch));
    // What an evaluation keeps of each batch leaves the device with it.
    if (memory.run.keeps_logits) words.emplace_back("eval_accumulation_steps=1");
  }
  add_saving(config_, wanted, words);
  if (wanted.micro_batch == memory.run.micro_batch) return words;
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"train_micro_batch_size_per_gpu", wanted.micro_batch},
      {"gradient_accumulation_steps", wanted.accumulation_steps}};
  if (files_.run) {
    words.push_back(fmt::format("per_device_train_batch_size={}", wanted.micro_batch));
    words.push_back(fmt::format("gradient_accumulation_steps={}", wanted.accumulation_steps));
  }
  for (const auto& [key, size] : sizes) {
    if (!files_.run)
      words.push_back(fmt::format("deepspeed.{}={}", key, size));
    else if (number_at(config_, key))
      words.push_back(fmt::format("deepspeed.{}=auto", key));
  }
  return words;
}

std::optional<MemoryCase> WordedFiles::with(const std::vector<std::string>& words,
                                            const MemoryCase& memory) const {
  if (words.empty()) return memory;
  Inputs changed = files_;
  spec::Problems problems;
  const auto config = [&]() -> Value& {
    if (!changed.deepspeed) {
      changed.deepspeed = Document{
          .path = changed.run->path, .file = changed.run->file, .kind = FileKind::deepspeed_config};
      changed.deepspeed->root.kind = ValueKind::mapping;
    }
    return changed.deepspeed->root;
  };
  for (const spec::Override& change : spec::parse_overrides(words, problems)) {
    const bool is_of_config = change.path[0] == "deepspeed";
    spec::apply_override(change, is_of_config ? 1 : 0, is_of_config ? config() : changed.run->root,
                         problems);
  }
  if (!problems.empty()) return std::nullopt;
  if (changed.deepspeed &&
      (has_error(check_keys({.config = *changed.deepspeed,
                             .auto_is_filled_in = changed.run || changed.accelerate})) ||
       has_error(check_config(changed))))
    return std::nullopt;
  MemoryCase other = memory;
  take_settings(changed, other);
  return other;
}

}  // namespace underkeel::doctor
