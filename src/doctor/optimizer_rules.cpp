// The optimizer and scheduler sections: classes that there are, what their names hide, arguments that each takes.

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "doctor/config_rules.h"
#include "doctor/document.h"

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

constexpr std::array<std::string_view, 12> own_optimizers = {
    "adam",       "adamw",      "lamb",        "lion",   "adagrad", "muon",
    "onebitadam", "onebitlamb", "zerooneadam", "muadam", "muadamw", "musgd"};

/// Those that ZeRO takes without zero_allow_untested_optimizer.
constexpr std::array<std::string_view, 5> tested_optimizers = {"adam", "adamw", "adagrad", "lion",
                                                               "muon"};

/// Classes of torch.optim, up to torch 2.9.
constexpr std::array<std::string_view, 15> torch_optimizers = {
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam",  "AdamW", "Adamax",    "LBFGS",
    "Muon", "NAdam",    "RAdam",     "RMSprop", "Rprop", "SGD",   "SparseAdam"};

/// Classes of torch.optim.lr_scheduler, likewise.
constexpr std::array<std::string_view, 15> torch_schedulers = {"ChainedScheduler",
                                                               "ConstantLR",
                                                               "CosineAnnealingLR",
                                                               "CosineAnnealingWarmRestarts",
                                                               "CyclicLR",
                                                               "ExponentialLR",
                                                               "LambdaLR",
                                                               "LinearLR",
                                                               "MultiStepLR",
                                                               "MultiplicativeLR",
                                                               "OneCycleLR",
                                                               "PolynomialLR",
                                                               "ReduceLROnPlateau",
                                                               "SequentialLR",
                                                               "StepLR"};

struct Scheduler {
  std::string_view type;
  std::string_view arguments;  // cut at blanks
  std::string_view required;
};
constexpr std::array schedulers = {
    Scheduler{"WarmupLR", "warmup_min_lr warmup_max_lr warmup_num_steps warmup_type", ""},
    Scheduler{"WarmupDecayLR",
              "total_num_steps warmup_min_lr warmup_max_lr warmup_num_steps warmup_type",
              "total_num_steps"},
    Scheduler{"WarmupCosineLR",
              "total_num_steps warmup_min_ratio warmup_num_steps cos_min_ratio warmup_type",
              "total_num_steps"},
    Scheduler{
        "OneCycle",
        "cycle_min_lr cycle_max_lr decay_lr_rate cycle_first_step_size cycle_second_step_size "
        "cycle_first_stair_count cycle_second_stair_count decay_step_size cycle_momentum "
        "cycle_min_mom cycle_max_mom decay_mom_rate",
        "cycle_min_lr cycle_max_lr"},
    Scheduler{"LRRangeTest",
              "lr_range_test_min_lr lr_range_test_step_size lr_range_test_step_rate "
              "lr_range_test_staircase",
              ""},
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    found.emplace_back(text.substr(0, blank));
    if (blank == std::string_view::npos) break;
    text.remove_prefix(blank + 1);
  }
  return found;
}

/// The name that differs in the case of letters alone, else the nearest; "" where none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  for (const std::string& each : names)
    if (lower_case(each) == lower_case(std::string(name))) return each;
  return nearest_word(name, names);
}

class OptimizerRules {
 public:
  OptimizerRules(const Inputs& inputs, std::vector<Finding>& findings)
      : inputs_(inputs), root_(inputs.deepspeed->root), findings_(findings) {}

  void check() {
    if (const Value* optimizer = root_.find("optimizer");
        optimizer != nullptr && optimizer->kind == spec::ValueKind::mapping)
      check_optimizer();
    if (const Value* scheduler = root_.find("scheduler");
        scheduler != nullptr && scheduler->kind == spec::ValueKind::mapping)
      check_scheduler(*scheduler);
  }

 private:
  void tell(std::string_view id, Severity severity, std::string_view key,
            std::vector<Slot> slots = {}) {
    slots.push_back({"key", std::string(key)});
    findings_.push_back({.id = std::string(id),
                         .severity = severity,
                         .engine = Engine::deepspeed,
                         .file = inputs_.deepspeed->file,
                         .key = std::string(key),
                         .line = line_of(root_, key),
                         .slots = std::move(slots)});
  }

  void check_optimizer() {
    const auto type = text_at(root_, "optimizer.type");
    if (!type) return tell("optimizer-without-type", Severity::error, "optimizer.type");
    const std::string name = lower_case(*type);
    const auto is_in = [&](const auto& list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    const bool is_torchs = std::find(torch_optimizers.begin(), torch_optimizers.end(), *type) !=
                           torch_optimizers.end();
    // What DeepSpeed does not find it neither refuses nor allows for ZeRO.
    if (!is_in(own_optimizers) && !is_torchs)
      return tell_no_class("optimizer-must-be-torchs", "optimizer.type", *type,
                           {torch_optimizers.begin(), torch_optimizers.end()});
    if (stage_in(root_) > 0 && !is_in(tested_optimizers) &&
        !truth_at(root_, "zero_allow_untested_optimizer").value_or(inputs_.run.has_value()))
      tell("optimizer-untested", Severity::error, "zero_allow_untested_optimizer",
           {{"type", *type}});
    const auto decoupled = truth_at(root_, "optimizer.params.adam_w_mode");
    if (name == "adam" && decoupled.value_or(true))
      tell("adam-is-adamw", Severity::info, "optimizer.type");
    if (name == "adamw" && decoupled == false)
      tell("adam-w-mode-ignored", Severity::warning, "optimizer.params.adam_w_mode");
    if ((name == "adam" || name == "adamw") &&
        truth_at(root_, "optimizer.params.amsgrad").value_or(false) &&
        !truth_at(root_, "optimizer.params.torch_adam").value_or(false))
      tell("amsgrad-refused", Severity::error, "optimizer.params.amsgrad");
    if (name == "adam" || name == "adamw") check_betas();
  }

  void tell_no_class(std::string_view id, std::string_view key, const std::string& type,
                     const std::vector<std::string>& names) {
    const std::string nearest = nearest_name(type, names);
    tell(id, Severity::error, key,
         {{"type", type}, {"nearest", nearest.empty() ? "@class.none-near" : nearest}});
  }

  void check_betas() {
    const Value* betas = value_at(root_, "optimizer.params.betas");
    if (betas == nullptr || betas->kind != ValueKind::list) return;  // its type is told elsewhere
    const std::vector<Slot> found = {{"found", listed(*betas)}};
    const auto is_number = [](const Value& each) {
      return each.kind == ValueKind::number && spec::to_double(each).has_value();
    };
    if (betas->items.size() != 2 ||
        !std::all_of(betas->items.begin(), betas->items.end(), is_number))
      return tell("betas-not-two", Severity::error, "optimizer.params.betas", found);
    const auto is_inside = [](const Value& each) {
      const double beta = *spec::to_double(each);
      return beta >= 0 && beta < 1;
    };
    if (!std::all_of(betas->items.begin(), betas->items.end(), is_inside))
      tell("betas-out-of-range", Severity::error, "optimizer.params.betas", found);
  }

  /// "[0.9, 1.5]".
  static std::string listed(const Value& list) {
    std::string text;
    for (const Value& item : list.items) text += (text.empty() ? "" : ", ") + spec::shown(item);
    return "[" + text + "]";
  }

  /// Python's json keeps 1000.0 a float, hjson makes it a whole number.
  void check_warmup_is_whole(std::int64_t warmup) {
    const Value* value = value_at(root_, "scheduler.params.warmup_num_steps");
    if (value->kind != ValueKind::number || value->text.find_first_of(".eE") == std::string::npos)
      return;
    tell("warmup-not-whole",
         inputs_.run || inputs_.accelerate ? Severity::error : Severity::warning,
         "scheduler.params.warmup_num_steps",
         {{"found", value->text}, {"whole", fmt::format("{}", warmup)}});
  }

  void check_scheduler(const Value& scheduler) {
    const auto type = text_at(root_, "scheduler.type");
    if (!type) return;
    const auto found = std::find_if(schedulers.begin(), schedulers.end(),
                                    [&](const Scheduler& each) { return each.type == *type; });
    const bool is_torchs = std::find(torch_schedulers.begin(), torch_schedulers.end(), *type) !=
                           torch_schedulers.end();
    if (found == schedulers.end() && is_torchs) return;
    if (found == schedulers.end()) {
      std::vector<std::string> names(torch_schedulers.begin(), torch_schedulers.end());
      for (const Scheduler& each : schedulers) names.emplace_back(each.type);
      return tell_no_class("scheduler-must-be-torchs", "scheduler.type", *type, names);
    }
    const Value* params = scheduler.find("params");
    if (params == nullptr)
      return tell("scheduler-without-params", Severity::error, "scheduler.params",
                  {{"type", *type}});
    const auto known = words(found->arguments);
    for (const spec::Entry& entry : params->entries)
      if (std::find(known.begin(), known.end(), entry.key) == known.end() &&
          entry.key != "last_batch_iteration")
        tell("scheduler-argument", Severity::error, "scheduler.params." + entry.key,
             {{"type", *type}, {"known", fmt::format("{}", fmt::join(known, ", "))}});
    for (const std::string& key : words(found->required))
      if (params->find(key) == nullptr)
        tell("scheduler-argument-missing", Severity::error, "scheduler.params." + key,
             {{"type", *type}});
    const auto warmup = whole_at(root_, "scheduler.params.warmup_num_steps");
    const auto total = whole_at(root_, "scheduler.params.total_num_steps");
    if (warmup && *warmup < 1)
      tell("warmup-not-positive", Severity::error, "scheduler.params.warmup_num_steps",
           {{"found", fmt::format("{}", *warmup)}});
    if (warmup && *warmup >= 1) check_warmup_is_whole(*warmup);
    if (warmup && total && *total < *warmup)
      tell("fewer-steps-than-warmup", Severity::warning, "scheduler.params.total_num_steps",
           {{"total", fmt::format("{}", *total)}, {"warmup", fmt::format("{}", *warmup)}});
    if (found->type.starts_with("Warmup")) {
      const double least = number_at(root_, "scheduler.params.warmup_min_lr").value_or(0);
      tell("two-updates-at-minimum", Severity::info, "scheduler.type",
           {{"type", *type}, {"lr", fmt::format("{}", least)}});
    }
  }

  const Inputs& inputs_;
  const Value& root_;
  std::vector<Finding>& findings_;
};

}  // namespace

bool is_own_scheduler(std::string_view type) {
  return std::any_of(schedulers.begin(), schedulers.end(),
                     [&](const Scheduler& each) { return each.type == type; });
}

void check_optimizer(const Inputs& inputs, std::vector<Finding>& findings) {
  OptimizerRules(inputs, findings).check();
}

}  // namespace underkeel::doctor
