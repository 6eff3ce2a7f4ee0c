#include "doctor/conflict_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

namespace fs = std::filesystem;
using spec::Value;
using spec::ValueKind;

constexpr std::size_t most_told = 8;

/// Differences in words, the first eight of them.
class Differences {
 public:
  void add(std::string_view key, std::string_view a, std::string_view b) {
    if (a == b) return;
    if (told_.size() < most_told)
      told_.push_back(fmt::format("{}: {} / {}", key, a, b));
    else
      ++more_;
  }
  std::string text() const {
    return fmt::format("{}{}", fmt::join(told_, "; "),
                       more_ > 0 ? fmt::format("; + {}", more_) : "");
  }

 private:
  std::vector<std::string> told_;
  std::size_t more_ = 0;
};

/// Numbers by value: 5e8 is 500000000.
std::string comparable(const Value& value) {
  if (const auto number = spec::to_double(value); number && value.kind == ValueKind::number)
    return fmt::format("{}", *number);
  return spec::shown(value);
}

void flatten(const Value& value, const std::string& path,
             std::map<std::string, std::string>& flat) {
  if (value.kind != ValueKind::mapping) {
    flat[path] = comparable(value);
    return;
  }
  for (const spec::Entry& entry : value.entries)
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, flat);
}

/// A setting of an accelerate config, and where a DeepSpeed config and a run file have the same.
struct Same {
  std::string_view accelerate, deepspeed, run = {};
  std::string_view absent = "";  // what it is where it is not given
};
constexpr std::array excluding_settings = {
    Same{"deepspeed_config.zero_stage", "zero_optimization.stage"},
    Same{"deepspeed_config.offload_optimizer_device",
         "zero_optimization.offload_optimizer.device",
         {},
         "none"},
    Same{"deepspeed_config.offload_param_device",
         "zero_optimization.offload_param.device",
         {},
         "none"},
    Same{"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps",
         "gradient_accumulation_steps"},
    Same{"deepspeed_config.gradient_clipping", "gradient_clipping", "max_grad_norm"},
    Same{"deepspeed_config.zero3_save_16bit_model",
         "zero_optimization.stage3_gather_16bit_weights_on_model_save",
         {},
         "false"},
};

/// Without quotes: 2, "2" and 2.0 are one.
std::string plain(const Value* value, std::string_view absent) {
  if (value == nullptr || value->kind == ValueKind::null) return std::string(absent);
  if (const auto number = spec::to_double(*value)) return fmt::format("{}", *number);
  if (value->kind == ValueKind::text) return value->text;
  return spec::shown(*value);
}

/// "bf16", "fp16", "no"; "" where somebody else fills it in.
std::string precision_of(const Value& config) {
  for (const std::string_view mode : {"bf16", "bfloat16", "fp16"}) {
    if (is_auto_at(config, fmt::format("{}.enabled", mode))) return "";
    if (truth_at(config, fmt::format("{}.enabled", mode)).value_or(false))
      return mode == "fp16" ? "fp16" : "bf16";
  }
  return "no";
}

std::string precision_of_run(const Value& run) {
  for (const std::string_view mode : {"bf16", "pure_bf16", "fp16"})
    if (truth_at(run, mode).value_or(false)) return mode == "fp16" ? "fp16" : "bf16";
  return "no";
}

std::string against_config(const Value& accelerate, const Value& config) {
  Differences all;
  for (const Same& same : excluding_settings) {
    const Value* theirs = value_at(accelerate, same.accelerate);
    if (theirs == nullptr || is_auto_at(config, same.deepspeed)) continue;
    const Value* own = value_at(config, same.deepspeed);
    if (own == nullptr && same.absent.empty()) continue;
    all.add(same.accelerate, plain(theirs, ""), plain(own, same.absent));
  }
  const auto mode = text_at(accelerate, "mixed_precision");
  if (const std::string own = precision_of(config); mode && !own.empty())
    all.add("mixed_precision", *mode, own);
  return all.text();
}

std::string against_run(const Value& accelerate, const Value& run) {
  Differences all;
  for (const Same& same : excluding_settings) {
    const Value* theirs = value_at(accelerate, same.accelerate);
    const Value* own = same.run.empty() ? nullptr : value_at(run, same.run);
    if (theirs != nullptr && own != nullptr)
      all.add(same.accelerate, plain(theirs, ""), plain(own, ""));
  }
  if (const auto mode = text_at(accelerate, "mixed_precision"))
    all.add("mixed_precision", *mode, precision_of_run(run));
  const Value* ranks = value_at(run, "underkeel.ranks");
  const Value* processes = value_at(accelerate, "num_processes");
  // -1 leaves the number to the launcher.
  if (ranks && processes && spec::to_integer(*processes) != -1)
    all.add("num_processes", plain(processes, ""), plain(ranks, ""));
  return all.text();
}

class Conflicts {
 public:
  explicit Conflicts(const Inputs& inputs) : inputs_(inputs) {}

  std::vector<Finding> check() {
    if (inputs_.run) check_named();
    if (inputs_.accelerate) check_accelerate_config();
    return std::move(findings_);
  }

 private:
  void tell(std::string_view id, Severity severity, const Document& document, std::string_view key,
            std::vector<Slot> slots) {
    findings_.push_back({.id = std::string(id),
                         .severity = severity,
                         .file = document.file,
                         .key = std::string(key),
                         .slots = std::move(slots)});
  }

  void check_named() {
    const Value* named = value_at(inputs_.run->root, "deepspeed");
    if (inputs_.passed_over) {
      const std::string differ = differences(inputs_.deepspeed->root, inputs_.passed_over->root);
      const bool is_inline = named->kind == ValueKind::mapping;
      return tell("config-not-of-the-run", Severity::warning, *inputs_.deepspeed, "deepspeed",
                  {{"run", inputs_.run->file},
                   {"named", is_inline ? "@config.inline" : inputs_.passed_over->file},
                   {"given", inputs_.deepspeed->file},
                   {"differ", differ.empty() ? "@nothing" : differ}});
    }
    if (!inputs_.deepspeed || inputs_.deepspeed->path == inputs_.run->path) return;
    const bool is_named = named != nullptr && named->kind != ValueKind::null;
    if (!is_named && !inputs_.accelerate)
      tell("config-not-named", Severity::info, *inputs_.deepspeed, "deepspeed",
           {{"run", inputs_.run->file}, {"given", inputs_.deepspeed->file}});
    if (is_named && named->kind == ValueKind::text &&
        fs::path(named->text).filename().string() != inputs_.deepspeed->file)
      tell("config-stands-in", Severity::warning, *inputs_.deepspeed, "deepspeed",
           {{"run", inputs_.run->file}, {"named", named->text}});
  }

  void check_accelerate_config() {
    const Document& accelerate = *inputs_.accelerate;
    const auto named = text_at(accelerate.root, "deepspeed_config.deepspeed_config_file");
    const bool is_made_of_it = inputs_.deepspeed && inputs_.deepspeed->file == accelerate.file;
    if (inputs_.deepspeed && !is_made_of_it) {
      std::string differ = against_config(accelerate.root, inputs_.deepspeed->root);
      if (named && fs::path(*named).filename().string() != inputs_.deepspeed->file)
        differ = fmt::format("deepspeed_config_file: {} / {}{}{}", *named, inputs_.deepspeed->file,
                             differ.empty() ? "" : "; ", differ);
      if (!differ.empty())
        tell("accelerate-differs", Severity::warning, accelerate, "deepspeed_config",
             {{"file", inputs_.deepspeed->file}, {"differ", differ}});
    }
    if (!inputs_.run) return;
    if (const std::string differ = against_run(accelerate.root, inputs_.run->root); !differ.empty())
      tell("accelerate-differs-from-run", Severity::warning, accelerate, "",
           {{"file", inputs_.run->file}, {"differ", differ}});
  }

  const Inputs& inputs_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string differences(const Value& a, const Value& b) {
  std::map<std::string, std::string> of_a, of_b;
  flatten(a, "", of_a);
  flatten(b, "", of_b);
  Differences all;
  const auto at = [](const std::map<std::string, std::string>& flat, const std::string& key) {
    const auto found = flat.find(key);
    return found == flat.end() ? std::string("-") : found->second;
  };
  std::map<std::string, std::string> both = of_a;
  both.insert(of_b.begin(), of_b.end());
  for (const auto& [key, value] : both) all.add(key, at(of_a, key), at(of_b, key));
  return all.text();
}

std::vector<Finding> check_conflicts(const Inputs& inputs) {
  return Conflicts(inputs).check();
}

}  // namespace underkeel::doctor
