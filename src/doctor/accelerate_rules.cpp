// Keys of an accelerate config: unknown ones, those in the wrong section, values of a wrong type, and settings that
// stand beside a DeepSpeed file which has them too. Source: accelerate 1.15, commands/config and utils/dataclasses.

#include "doctor/accelerate_rules.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "doctor/inputs.h"
#include "spec/fields.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

enum class Wants { text, whole, positive, truth, mapping, list, choice, number };

struct Key {
  std::string_view name;
  Wants wants = Wants::text;
  std::string_view choices = {};     // of Wants::choice, cut at `|`; compared without case
  bool is_of_file = false;           // refused beside deepspeed_config_file
  std::int64_t least = 0, most = 0;  // of Wants::whole
};

constexpr std::string_view modes = "no|fp16|bf16|fp8";
constexpr std::string_view places = "none|cpu|nvme";

constexpr std::array top_keys = {
    Key{"compute_environment", Wants::choice, "LOCAL_MACHINE|CUSTOM_CLUSTER|AMAZON_SAGEMAKER|TPU"},
    Key{"distributed_type", Wants::choice,
        "NO|DEEPSPEED|MULTI_GPU|MULTI_CPU|MULTI_XPU|MULTI_NPU|MULTI_MLU|MULTI_SDAA|MULTI_MUSA|"
        "MULTI_HPU|MULTI_NEURON|FSDP|MEGATRON_LM|XLA|TPU"},
    Key{"mixed_precision", Wants::choice, modes},
    Key{"use_cpu", Wants::truth},
    Key{"debug", Wants::truth},
    Key{"num_processes", Wants::whole, {}, false, 1, most_ranks_of_file},
    Key{"machine_rank", Wants::whole, {}, false, 0, most_ranks_of_file},
    Key{"num_machines", Wants::whole, {}, false, 1, most_ranks_of_file},
    Key{"gpu_ids"},
    Key{"main_process_ip"},
    Key{"main_process_port", Wants::whole, {}, false, 0, 65535},
    Key{"rdzv_backend"},
    Key{"same_network", Wants::truth},
    Key{"main_training_function"},
    Key{"enable_cpu_affinity", Wants::truth},
    Key{"fp8_config", Wants::mapping},
    Key{"deepspeed_config", Wants::mapping},
    Key{"fsdp_config", Wants::mapping},
    Key{"parallelism_config", Wants::mapping},
    Key{"megatron_lm_config", Wants::mapping},
    Key{"mpirun_config", Wants::mapping},
    Key{"downcast_bf16"},
    Key{"tpu_name"},
    Key{"tpu_zone"},
    Key{"tpu_use_cluster", Wants::truth},
    Key{"tpu_use_sudo", Wants::truth},
    Key{"command_file"},
    Key{"commands", Wants::list},
    Key{"tpu_vm", Wants::list},
    Key{"tpu_env", Wants::list},
    Key{"dynamo_config", Wants::mapping},
};

constexpr std::array deepspeed_keys = {
    Key{"deepspeed_config_file"},
    Key{"gradient_accumulation_steps", Wants::positive, {}, true},
    Key{"gradient_clipping", Wants::number, {}, true},
    Key{"zero_stage", Wants::choice, "0|1|2|3", true},
    Key{"offload_optimizer_device", Wants::choice, places, true},
    Key{"offload_param_device", Wants::choice, places, true},
    Key{"offload_optimizer_nvme_path", Wants::text, {}, true},
    Key{"offload_param_nvme_path", Wants::text, {}, true},
    Key{"zero3_init_flag", Wants::truth},
    Key{"zero3_save_16bit_model", Wants::truth, {}, true},
    Key{"deepspeed_hostfile"},
    Key{"deepspeed_inclusion_filter"},
    Key{"deepspeed_exclusion_filter"},
    Key{"deepspeed_multinode_launcher", Wants::choice,
        "pdsh|standard|openmpi|mvapich|mpich|slurm|nossh|impi"},
    Key{"deepspeed_moe_layer_cls_names"},
};

const Key* find_key(std::span<const Key> table, std::string_view name) {
  const auto at =
      std::find_if(table.begin(), table.end(), [&](const Key& key) { return key.name == name; });
  return at == table.end() ? nullptr : &*at;
}

bool is_choice(std::string_view choices, std::string_view text) {
  const std::string wanted = lower_case(text);
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find('|'), choices.size());
    if (lower_case(choices.substr(0, end)) == wanted) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

/// Whether accelerate takes the value. It passes settings on as text, so numbers in quotes are fine.
bool is_right(const Key& key, const Value& value) {
  if (value.kind == ValueKind::null) return true;
  const auto whole = spec::to_integer(value);
  const bool is_plain = value.kind == ValueKind::text || value.kind == ValueKind::number ||
                        value.kind == ValueKind::boolean;
  // "auto" is taken from the run, wherever a number stands.
  const bool is_auto = value.kind == ValueKind::text && value.text == "auto";
  switch (key.wants) {
    case Wants::text:
      return is_plain;
    case Wants::whole:
      return whole && *whole >= key.least && *whole <= key.most;
    case Wants::positive:
      return is_auto || (whole && *whole > 0);
    case Wants::number:
      return is_auto || spec::to_double(value).has_value();
    case Wants::truth:
      return value.kind == ValueKind::boolean ||
             (value.kind == ValueKind::text && spec::parse_boolean(value.text).has_value());
    case Wants::mapping:
      return value.kind == ValueKind::mapping;
    case Wants::list:
      return value.kind == ValueKind::list;
    case Wants::choice:
      // YAML reads a bare `no` as a truth value.
      if (value.kind == ValueKind::boolean) return !value.boolean && is_choice(key.choices, "no");
      return is_plain && is_choice(key.choices, value.text);
  }
  return true;
}

/// accelerate's own default of the key: whoever launches gives the number.
bool is_left_to_launcher(const spec::Entry& entry) {
  return entry.key == "num_processes" && spec::to_integer(entry.value) == -1;
}

std::string wanted_text(const Key& key) {
  switch (key.wants) {
    case Wants::text:
      return "@wants.text";
    case Wants::whole:
      return fmt::format("@[wants.whole] @[wants.from] {} @[wants.to] {}", key.least, key.most);
    case Wants::positive:
      return "@wants.positive";
    case Wants::number:
      return "@wants.number";
    case Wants::truth:
      return "@wants.truth";
    case Wants::mapping:
      return "@wants.mapping";
    case Wants::list:
      return "@wants.list";
    case Wants::choice:
      break;
  }
  std::string text(key.choices);
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, ", ");
  return text;
}

class AccelerateRules {
 public:
  explicit AccelerateRules(const Document& document) : document_(document) {}

  std::vector<Finding> run() {
    check_section(document_.root, "", top_keys, deepspeed_keys, "deepspeed_config");
    const Value* section = document_.root.find("deepspeed_config");
    if (section == nullptr || section->kind != ValueKind::mapping) return std::move(findings_);
    check_section(*section, "deepspeed_config.", deepspeed_keys, top_keys, "@top-level");
    check_beside_file(*section);
    check_type(*section);
    return std::move(findings_);
  }

 private:
  void tell(std::string_view id, Severity severity, const std::string& key, int line,
            std::vector<Slot> slots) {
    findings_.push_back({.id = std::string(id),
                         .severity = severity,
                         .engine = Engine::deepspeed,
                         .file = document_.file,
                         .key = key,
                         .line = line,
                         .slots = std::move(slots)});
  }

  void check_section(const Value& section, const std::string& prefix, std::span<const Key> own,
                     std::span<const Key> others, std::string_view other_name) {
    std::vector<std::string> names;
    for (const Key& key : own) names.emplace_back(key.name);
    const bool stops =
        prefix.empty();  // unknown keys of the top level are refused, others passed over
    for (const spec::Entry& entry : section.entries) {
      const std::string name = prefix + entry.key;
      const int line = entry.key_place.line;
      if (const Key* known = find_key(own, entry.key)) {
        if (prefix.empty() && is_left_to_launcher(entry))
          tell("accelerate-processes-left-open", Severity::info, name, line, {});
        else if (!is_right(*known, entry.value))
          tell("accelerate-value", Severity::error, name, line,
               {{"key", name}, {"value", shown(entry.value)}, {"wanted", wanted_text(*known)}});
        continue;
      }
      const std::string does = stops ? "@accelerate.stops" : "@does.ignores-it";
      const Severity severity = stops ? Severity::error : Severity::warning;
      if (find_key(others, entry.key) != nullptr) {
        tell("accelerate-key-misplaced", severity, name, line,
             {{"key", name}, {"section", std::string(other_name)}, {"does", does}});
        continue;
      }
      const std::string nearest = nearest_word(entry.key, names);
      tell(nearest.empty() ? "accelerate-key-unknown" : "accelerate-key-misspelt", severity, name,
           line, {{"key", name}, {"nearest", nearest}, {"does", does}});
    }
  }

  void check_beside_file(const Value& section) {
    const Value* file = section.find("deepspeed_config_file");
    if (file == nullptr || file->kind == ValueKind::null) return;
    std::vector<std::string> both;
    for (const spec::Entry& entry : section.entries)
      if (const Key* key = find_key(deepspeed_keys, entry.key); key != nullptr && key->is_of_file)
        both.push_back("deepspeed_config." + entry.key);
    // A key of the top level that accelerate counts among them, whatever it says.
    const Value* precision = document_.root.find("mixed_precision");
    if (precision != nullptr && precision->kind != ValueKind::null)
      both.emplace_back("mixed_precision");
    if (both.empty()) return;
    std::string keys;
    for (const std::string_view path : both)
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ",
                          path.substr(path.find('.') == path.npos ? 0 : path.find('.') + 1));
    tell("accelerate-keys-beside-file", Severity::error, both.front(),
         line_of(document_.root, both.front()), {{"keys", keys}});
  }

  void check_type(const Value& section) {
    const auto type = text_at(document_.root, "distributed_type");
    if (section.entries.empty() || (type && lower_case(*type) == "deepspeed")) return;
    tell("accelerate-without-deepspeed", Severity::warning, "distributed_type",
         line_of(document_.root, "distributed_type"), {{"type", type.value_or("@not-given")}});
  }

  const Document& document_;
  std::vector<Finding> findings_;
};

/// Line 0 where the key is not there.
spec::Place place_of_key(const Value& mapping, std::string_view key) {
  for (const spec::Entry& entry : mapping.entries)
    if (entry.key == key) return entry.key_place;
  return {};
}

Value text_value(std::string text) {
  return {.kind = ValueKind::text, .text = std::move(text)};
}

void put(Value& mapping, std::string key, Value value, const spec::Place& place = {}) {
  mapping.kind = ValueKind::mapping;
  mapping.entries.push_back({.key = std::move(key), .key_place = place, .value = std::move(value)});
}

/// The settings of deepspeed_config under their names in a DeepSpeed config. Numbers may be quoted.
class Plugin {
 public:
  explicit Plugin(const Value& section) : section_(section) {}

  /// `fallback` where the setting is not given; nothing where that is empty too.
  void move(std::string_view key, Value& into, std::string_view name,
            std::string_view fallback = {}) const {
    for (const spec::Entry& entry : section_.entries) {
      if (entry.key != key || entry.value.kind == ValueKind::null) continue;
      const Key* known = find_key(deepspeed_keys, key);
      if (!is_right(*known, entry.value)) return;  // told by itself
      Value value = entry.value;
      if (known->wants == Wants::truth && value.kind == ValueKind::text) {
        value = {.kind = ValueKind::boolean,
                 .boolean = spec::parse_boolean(entry.value.text).value_or(false)};
      } else if (value.kind == ValueKind::text && spec::to_double(value)) {
        value.kind = ValueKind::number;
      } else if (known->wants == Wants::choice) {
        value.text = lower_case(value.text);
      }
      return put(into, std::string(name), std::move(value), entry.key_place);
    }
    if (!fallback.empty()) put(into, std::string(name), text_value(std::string(fallback)));
  }

  Value offload(std::string_view which) const {
    Value made;
    move(fmt::format("{}_device", which), made, "device", "none");
    const Value* device = made.find("device");
    if (device != nullptr && device->text == "nvme")
      move(fmt::format("{}_nvme_path", which), made, "nvme_path");
    return made;
  }

 private:
  const Value& section_;
};

}  // namespace

std::optional<Value> config_of_plugin(const Document& document, const Value* run) {
  const Value* section = document.root.find("deepspeed_config");
  const std::string type = lower_case(text_at(document.root, "distributed_type").value_or(""));
  if (section == nullptr || section->kind != ValueKind::mapping || type != "deepspeed")
    return std::nullopt;
  const Value* file = section->find("deepspeed_config_file");
  if (file != nullptr && file->kind != ValueKind::null) return std::nullopt;
  const Plugin plugin(*section);
  Value zero;
  plugin.move("zero_stage", zero, "stage");
  if (zero.find("stage") == nullptr) put(zero, "stage", {.kind = ValueKind::number, .text = "2"});
  for (const std::string which : {"offload_optimizer", "offload_param"})
    if (Value offload = plugin.offload(which); text_at(offload, "device") != "none")
      put(zero, which, std::move(offload), place_of_key(*section, which + "_device"));
  plugin.move("zero3_save_16bit_model", zero, "stage3_gather_16bit_weights_on_model_save");
  Value config;
  put(config, "train_batch_size", text_value("auto"));
  put(config, "train_micro_batch_size_per_gpu", text_value("auto"));
  plugin.move("gradient_accumulation_steps", config, "gradient_accumulation_steps", "auto");
  plugin.move("gradient_clipping", config, "gradient_clipping", "auto");
  put(config, "zero_optimization", std::move(zero));
  // The Trainer's flags hold over what the launcher was told.
  const auto is_on = [&](std::string_view key) {
    return run != nullptr && truth_at(*run, key).value_or(false);
  };
  const std::string mode = lower_case(text_at(document.root, "mixed_precision").value_or("no"));
  if (is_on("bf16") || is_on("fp16") || is_on("pure_bf16") || (mode != "bf16" && mode != "fp16"))
    return config;
  Value precision;
  put(precision, "enabled", {.kind = ValueKind::boolean, .boolean = true});
  put(config, mode, std::move(precision), place_of_key(document.root, "mixed_precision"));
  return config;
}

std::vector<Finding> check_accelerate(const Document& document) {
  if (document.root.kind != ValueKind::mapping) return {};
  return AccelerateRules(document).run();
}

}  // namespace underkeel::doctor
