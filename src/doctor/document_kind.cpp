// What a parsed file is, by the keys that it has.

#include <algorithm>
#include <array>

#include "doctor/document.h"
#include "doctor/key_tables.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

struct Mark {
  FileKind kind;
  std::string_view key;
};

/// A key that only files of one kind have at their top. The kind with most marks wins, the first on a tie.
constexpr std::array marks = {
    Mark{FileKind::export_file, "export_dir"},
    Mark{FileKind::export_file, "export_size"},
    Mark{FileKind::export_file, "export_device"},
    Mark{FileKind::export_file, "export_legacy_format"},
    Mark{FileKind::run_file, "model_name_or_path"},
    Mark{FileKind::run_file, "finetuning_type"},
    Mark{FileKind::run_file, "dataset"},
    Mark{FileKind::run_file, "cutoff_len"},
    Mark{FileKind::run_file, "per_device_train_batch_size"},
    Mark{FileKind::run_file, "gradient_accumulation_steps"},
    Mark{FileKind::run_file, "output_dir"},
    Mark{FileKind::run_file, "learning_rate"},
    Mark{FileKind::run_file, "do_train"},
    Mark{FileKind::run_file, "num_train_epochs"},
    Mark{FileKind::run_file, "deepspeed"},
    Mark{FileKind::run_file, "underkeel"},
    Mark{FileKind::run_file, "template"},
    Mark{FileKind::run_file, "stage"},
    Mark{FileKind::accelerate_config, "compute_environment"},
    Mark{FileKind::accelerate_config, "distributed_type"},
    Mark{FileKind::accelerate_config, "deepspeed_config"},
    Mark{FileKind::accelerate_config, "num_processes"},
    Mark{FileKind::accelerate_config, "mixed_precision"},
    Mark{FileKind::hardware, "host_ram_gib"},
    Mark{FileKind::hardware, "gpu_mem_gib"},
    Mark{FileKind::hardware, "gpus_per_node"},
    Mark{FileKind::hardware, "nodes"},
    Mark{FileKind::hardware, "memlock_gib"},
    Mark{FileKind::model_config, "model_type"},
    Mark{FileKind::model_config, "architectures"},
    Mark{FileKind::model_config, "hidden_size"},
    Mark{FileKind::model_config, "num_hidden_layers"},
    Mark{FileKind::model_config, "vocab_size"},
    Mark{FileKind::adapter_config, "peft_type"},
    Mark{FileKind::adapter_config, "lora_alpha"},
    Mark{FileKind::adapter_config, "target_modules"},
    Mark{FileKind::tokenizer_config, "tokenizer_class"},
    Mark{FileKind::tokenizer_config, "chat_template"},
    Mark{FileKind::tokenizer_config, "added_tokens_decoder"},
    Mark{FileKind::tokenizer_config, "model_max_length"},
    Mark{FileKind::tokenizer_config, "eos_token"},
    Mark{FileKind::tokenizer_config, "pad_token"},
    Mark{FileKind::generation_config, "eos_token_id"},
    Mark{FileKind::generation_config, "do_sample"},
    Mark{FileKind::generation_config, "max_new_tokens"},
    Mark{FileKind::generation_config, "bos_token_id"},
};

/// Keys of a DeepSpeed config that other files have as well.
bool is_shared_key(std::string_view key) {
  return key == "gradient_accumulation_steps" || key == "fp16" || key == "bf16";
}

bool all_entries_have(const Value& root, std::initializer_list<std::string_view> keys) {
  return !root.entries.empty() &&
         std::all_of(root.entries.begin(), root.entries.end(), [&](const spec::Entry& entry) {
           return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
             return entry.value.find(key) != nullptr;
           });
         });
}

/// A dataset_info.json: one of its entries at least says where its data are or how they are laid out.
bool describes_data(const Value& root) {
  constexpr std::string_view keys[] = {"file_name",  "hf_hub_url",      "ms_hub_url", "om_hub_url",
                                       "script_url", "cloud_file_name", "formatting"};
  return std::any_of(root.entries.begin(), root.entries.end(), [&](const spec::Entry& entry) {
    return std::any_of(std::begin(keys), std::end(keys),
                       [&](std::string_view key) { return entry.value.find(key) != nullptr; });
  });
}

/// What a run or a tokenizer's trainer wrote, and nobody sets by hand.
bool is_record_of_run(const Value& root) {
  const auto has = [&](std::string_view key) { return root.find(key) != nullptr; };
  const bool is_state = has("log_history") && has("global_step");
  const bool is_arguments = all_entries_have(root, {"value"}) && all_entries_have(root, {"source"});
  const bool is_results = has("train_runtime") || has("eval_runtime");
  const bool is_memory = has("ranks") && has("about");
  return is_state || is_arguments || is_results || is_memory ||
         (has("added_tokens") && has("pre_tokenizer"));
}

/// One record, or a list of them under a key of its own.
bool holds_records(const Value& root) {
  const auto is_list = [](const Value* value) {
    return value != nullptr && value->kind == ValueKind::list;
  };
  if (root.find("instruction") != nullptr || is_list(root.find("messages")) ||
      is_list(root.find("conversations")))
    return true;
  for (const std::string_view key : {"data", "examples", "train", "records"})
    if (const Value* list = root.find(key);
        is_list(list) && !list->items.empty() && list->items.front().kind == ValueKind::mapping)
      return true;
  return false;
}

}  // namespace

/// A text with keys of a DeepSpeed config that cannot be read as one.
bool mentions_deepspeed_keys(std::string_view text) {
  return text.find("zero_optimization") != std::string_view::npos ||
         text.find("train_micro_batch_size_per_gpu") != std::string_view::npos;
}

bool are_all_of_deepspeed(const Value& root) {
  return std::all_of(root.entries.begin(), root.entries.end(), [](const spec::Entry& entry) {
    return find_key(section_tables().front(), entry.key) != nullptr;
  });
}

/// What a file that cannot be parsed was to be, by the keys in it.
FileKind kind_of_broken(std::string_view text) {
  if (mentions_deepspeed_keys(text)) return FileKind::deepspeed_config;
  if (text.find("model_name_or_path:") != std::string_view::npos ||
      text.find("finetuning_type:") != std::string_view::npos)
    return FileKind::run_file;
  for (const Mark& mark : marks)
    if (mark.kind == FileKind::hardware && mark.key != "nodes" &&
        text.find(mark.key) != std::string_view::npos)
      return FileKind::hardware;
  return FileKind::unknown;
}

std::string_view name_of(FileKind kind) {
  constexpr std::string_view names[] = {"DeepSpeed config",
                                        "run file",
                                        "export file",
                                        "accelerate config",
                                        "model description",
                                        "machine",
                                        "adapter config",
                                        "generation config",
                                        "tokenizer config",
                                        "data set list",
                                        "data folder",
                                        "data set's shape",
                                        "data set",
                                        "record of a run",
                                        "log",
                                        "advice",
                                        "weights",
                                        "weight index",
                                        "model folder",
                                        "adapter folder",
                                        "DeepSpeed checkpoint",
                                        "checkpoint",
                                        "output folder",
                                        "unknown"};
  return names[static_cast<std::size_t>(kind)];
}

FileKind kind_of(const Value& root) {
  if (root.kind == ValueKind::list) return FileKind::records;
  if (root.kind != ValueKind::mapping) return FileKind::unknown;
  if (all_entries_have(root, {"samples"}) && all_entries_have(root, {"tokens"}))
    return FileKind::data_shape;
  if (is_record_of_run(root)) return FileKind::run_record;
  if (describes_data(root)) return FileKind::dataset_info;
  if (const Value* map = root.find("weight_map"); map != nullptr && map->kind == ValueKind::mapping)
    return FileKind::weight_index;
  if (holds_records(root)) return FileKind::records;
  std::array<int, static_cast<std::size_t>(FileKind::unknown) + 1> counts{};
  for (const spec::Entry& entry : root.entries) {
    for (const Mark& mark : marks)
      if (mark.key == entry.key) ++counts[static_cast<std::size_t>(mark.kind)];
    // `fp16: true` is a run file's, `fp16: {enabled: true}` a DeepSpeed config's.
    const bool is_mapping = entry.value.kind == ValueKind::mapping;
    if (find_key(section_tables().front(), entry.key) != nullptr &&
        (!is_shared_key(entry.key) || is_mapping))
      ++counts[static_cast<std::size_t>(FileKind::deepspeed_config)];
  }
  // A config.json has vocab_size and bos_token_id too; what names a model is one.
  if (root.find("num_hidden_layers") != nullptr || root.find("architectures") != nullptr)
    counts[static_cast<std::size_t>(FileKind::model_config)] += 8;
  if (root.find("peft_type") != nullptr)
    counts[static_cast<std::size_t>(FileKind::adapter_config)] += 8;
  const auto most = std::max_element(counts.begin(), counts.end());
  return *most == 0 ? FileKind::unknown
                    : static_cast<FileKind>(std::distance(counts.begin(), most));
}

}  // namespace underkeel::doctor
