#include "doctor/own_run.h"

#include <fmt/format.h>

#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

/// A run file in the config's own words, for those who give a config alone: it disagrees nowhere.
std::string run_text_of(const Value& config) {
  std::string text = "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\n";
  const auto add = [&](std::string_view key, std::string_view path) {
    if (const Value* value = value_at(config, path); value != nullptr && spec::to_double(*value))
      text += fmt::format("{}: {}\n", key, value->text);
  };
  add("per_device_train_batch_size", "train_micro_batch_size_per_gpu");
  add("gradient_accumulation_steps", "gradient_accumulation_steps");
  add("max_grad_norm", "gradient_clipping");
  add("learning_rate", "optimizer.params.lr");
  add("adam_epsilon", "optimizer.params.eps");
  add("weight_decay", "optimizer.params.weight_decay");
  if (value_at(config, "optimizer") != nullptr && !number_at(config, "optimizer.params.lr"))
    text += "learning_rate: 0.001\n";
  const bool bf16 = truth_at(config, "bf16.enabled").value_or(false) ||
                    truth_at(config, "bfloat16.enabled").value_or(false) ||
                    is_auto_at(config, "bf16.enabled");
  if (bf16) text += "bf16: true\n";
  if (truth_at(config, "fp16.enabled").value_or(false) && !bf16) text += "fp16: true\n";
  return text;
}

}  // namespace

std::optional<OwnRun> own_run(const Question& question, const Inputs& inputs) {
  if (inputs.has_unread) return std::nullopt;
  OwnRun words;
  if (inputs.run) {
    const auto text = spec::read_text_file(inputs.run->path);
    if (!text) return std::nullopt;
    words = {.text = *text, .file = inputs.run->path};
  } else if (inputs.deepspeed && inputs.deepspeed->root.kind == spec::ValueKind::mapping) {
    words = {.text = run_text_of(inputs.deepspeed->root), .file = inputs.deepspeed->path};
  } else {
    return std::nullopt;
  }
  const Value empty;
  const Value& root = inputs.run ? inputs.run->root : empty;
  // A case may leave out what depends on where things lie.
  const auto fill = [&](std::string_view key, std::string_view value) {
    if (value_at(root, key) == nullptr) words.changes.push_back(fmt::format("{}={}", key, value));
  };
  fill("model_name_or_path",
       inputs.model_folder.empty() ? std::string("model") : inputs.model_folder.string());
  fill("output_dir", "out");
  fill("template", "empty");
  if (inputs.deepspeed && inputs.deepspeed->path != words.file)
    words.changes.push_back(fmt::format("deepspeed={}", inputs.deepspeed->path));
  else if (!inputs.run)
    words.changes.push_back(fmt::format("deepspeed={}", words.file.string()));
  words.changes.insert(words.changes.end(), question.changes.begin(), question.changes.end());
  return words;
}

bool trainer_stops_on(const spec::Problem& problem, std::string_view key, const Value& run) {
  if (problem.code != ErrorCode::bad_config) return false;
  // Of sections only our own has keys below it.
  if (problem.what == "unknown key") return key.find('.') == std::string_view::npos;
  if (key == "per_device_train_batch_size" || key == "learning_rate") return true;
  if (key == "gradient_accumulation_steps" || key == "cutoff_len") {
    const auto size = number_at(run, key);
    return size && *size <= 0;
  }
  if (key == "fp16")
    return truth_at(run, "fp16").value_or(false) && truth_at(run, "bf16").value_or(false);
  if (key == "quantization_bit") {
    const std::string type = text_at(run, "finetuning_type").value_or("lora");
    return type != "lora" && type != "oft";
  }
  return false;
}

}  // namespace underkeel::doctor
