#include "doctor/own_run.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "doctor/config_rules.h"
#include "spec/text_file.h"

namespace underkeel::doctor {
namespace {

using spec::Value;

struct SameValue {
  std::string_view run_key;
  std::string_view config_key;
};
constexpr std::array same_values = {
    SameValue{"per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
    SameValue{"gradient_accumulation_steps", "gradient_accumulation_steps"},
    SameValue{"max_grad_norm", "gradient_clipping"},
    SameValue{"learning_rate", "optimizer.params.lr"},
    SameValue{"adam_epsilon", "optimizer.params.eps"},
    SameValue{"weight_decay", "optimizer.params.weight_decay"},
    SameValue{"adam_beta1", "optimizer.params.betas"},
    SameValue{"adam_beta2", "optimizer.params.betas"},
    SameValue{"warmup_steps", "scheduler.params.warmup_num_steps"}};

/// A run file in a config's own words, for those who give a config alone: it disagrees nowhere.
class ConfigAsRun {
 public:
  ConfigAsRun(const Value& config, std::int64_t ranks) : config_(config), ranks_(ranks) {}

  OwnRun run() {
    words_.text = "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\n";
    for (const SameValue& same : same_values)
      if (const Value* value = value_at(config_, same.config_key);
          value != nullptr && spec::to_double(*value))
        add(same.run_key, value->text);
    add_rest_of_batch();
    add_rate();
    if (const Value* betas = value_at(config_, "optimizer.params.betas");
        betas != nullptr && betas->items.size() == 2) {
      add("adam_beta1", betas->items[0].text);
      add("adam_beta2", betas->items[1].text);
    }
    add_precision();
    return std::move(words_);
  }

 private:
  void add(std::string_view key, std::string_view value) {
    words_.text += fmt::format("{}: {}\n", key, value);
  }

  /// What DeepSpeed makes of the sizes of the batch that are left out.
  void add_rest_of_batch() {
    const ConfigBatch batch = batch_of_config(config_, ranks_);
    const auto is_left_out = [&](std::string_view key) {
      const Value* value = value_at(config_, key);
      return value == nullptr || !spec::to_double(*value);
    };
    if (is_left_out("train_micro_batch_size_per_gpu"))
      add("per_device_train_batch_size", fmt::format("{}", batch.micro_batch));
    if (is_left_out("gradient_accumulation_steps"))
      add("gradient_accumulation_steps", fmt::format("{}", batch.accumulation_steps));
  }

  /// A schedule with a rate of its own sets it from the start, whatever the optimizer has; else DeepSpeed's default holds.
  void add_rate() {
    const auto peak = value_at(config_, "scheduler.params.warmup_max_lr");
    const bool has_rate = number_at(config_, "optimizer.params.lr").has_value();
    if (peak != nullptr && spec::to_double(*peak)) {
      if (!has_rate) add("learning_rate", peak->text);
      words_.changes.push_back(fmt::format("learning_rate={}", peak->text));
      if (value_at(config_, "optimizer.params") != nullptr)
        words_.changes.emplace_back("deepspeed.optimizer.params.lr=auto");
    } else if (value_at(config_, "optimizer") != nullptr && !has_rate) {
      add("learning_rate", "0.001");
    }
  }

  void add_precision() {
    const bool fp16 = truth_at(config_, "fp16.enabled").value_or(false);
    for (const std::string section : {"bf16", "bfloat16"}) {
      const bool is_on = truth_at(config_, section + ".enabled").value_or(false) ||
                         (is_auto_at(config_, section + ".enabled") && !fp16);
      if (!is_on) continue;
      const bool has_no_f32 =
          truth_at(config_, section + ".bf16_master_weights_and_grads").value_or(false);
      return add(has_no_f32 ? "pure_bf16" : "bf16", "true");
    }
    if (fp16) add("fp16", "true");
  }

  const Value& config_;
  std::int64_t ranks_;
  OwnRun words_;
};

/// A config that no file holds, as changes.
void add_leaves(const Value& value, const std::string& path, std::vector<std::string>& changes) {
  if (value.kind != spec::ValueKind::mapping)
    return changes.push_back(fmt::format(
        "{}={}", path, value.kind == spec::ValueKind::boolean ? spec::shown(value) : value.text));
  for (const spec::Entry& entry : value.entries)
    add_leaves(entry.value, path + "." + entry.key, changes);
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
    words = ConfigAsRun(inputs.deepspeed->root, inputs.ranks.count).run();
    words.file = inputs.deepspeed->path;
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
  else if (!inputs.run && inputs.accelerate && inputs.accelerate->path == words.file)
    add_leaves(inputs.deepspeed->root, "deepspeed", words.changes);
  else if (!inputs.run)
    words.changes.push_back(fmt::format("deepspeed={}", words.file.string()));
  words.changes.insert(words.changes.end(), question.changes.begin(), question.changes.end());
  return words;
}

std::string_view config_key_of(std::string_view run_key) {
  const auto same = std::find_if(same_values.begin(), same_values.end(),
                                 [&](const SameValue& each) { return each.run_key == run_key; });
  return same == same_values.end() ? "" : same->config_key;
}

namespace {

/// Keys whose words LLaMA-Factory or the Trainer choose from, cut at `|`.
struct Choices {
  std::string_view key;
  std::string_view words;
};
constexpr Choices choices[] = {
    {"stage", "pt|sft|rm|ppo|dpo|kto"},
    {"finetuning_type", "lora|oft|freeze|full"},
    {"lr_scheduler_type",
     "linear|cosine|cosine_with_restarts|polynomial|constant|constant_with_warmup|inverse_sqrt|"
     "reduce_lr_on_plateau|cosine_with_min_lr|cosine_warmup_with_min_lr|warmup_stable_decay|"
     "greedy"},
    {"save_strategy", "no|steps|epoch|best"},
    {"eval_strategy", "no|steps|epoch"},
    {"logging_strategy", "no|steps|epoch"}};

bool is_no_choice(std::string_view key, const Value& run) {
  for (const Choices& each : choices) {
    const auto word = text_at(run, key);
    if (each.key != key || !word) continue;
    std::string_view rest = each.words;
    while (true) {
      const std::size_t bar = rest.find('|');
      if (rest.substr(0, bar) == *word) return false;
      if (bar == std::string_view::npos) return true;
      rest.remove_prefix(bar + 1);
    }
  }
  return false;
}

}  // namespace

bool trainer_stops_on(const spec::Problem& problem, std::string_view key, const Value& run) {
  if (is_no_choice(key, run)) return true;
  if (problem.code != ErrorCode::bad_config) return false;
  // Evaluations without anything to evaluate on.
  if (key == "eval_strategy" || key == "do_eval")
    return value_at(run, "eval_dataset") == nullptr &&
           number_at(run, "val_size").value_or(0) <= 1e-6 &&
           text_at(run, "eval_strategy").value_or("no") != "no";
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
