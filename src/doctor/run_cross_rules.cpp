// Settings of a run file that LLaMA-Factory and the Trainer refuse together, or without another.

#include "doctor/config_rules.h"
#include "doctor/document.h"
#include "doctor/run_facts.h"

namespace underkeel::doctor {
namespace {

constexpr std::string_view factory = "LLaMA-Factory";
constexpr std::string_view trainer = "Trainer";

class CrossCheck {
 public:
  CrossCheck(const Inputs& inputs, std::vector<Finding>& findings)
      : inputs_(inputs), root_(inputs.run->root), findings_(findings) {
    if (inputs.deepspeed) stage_ = stage_in(inputs.deepspeed->root);
  }

  void check_all() {
    const std::string stage = text_at(root_, "stage").value_or("sft");
    if (stage != "sft")
      for (const std::string_view key :
           {"predict_with_generate", "neat_packing", "train_on_prompt", "mask_history"})
        if (is_on(key)) needs(key, "stage: sft", factory);
    if (is_on("mask_history") && is_on("train_on_prompt"))
      exclude("mask_history", "train_on_prompt", factory);
    const double split = number_at(root_, "val_size").value_or(0);
    if (is_given("eval_dataset") && split > 1e-6) exclude("val_size", "eval_dataset", factory);
    if (is_on("streaming")) {
      if (number_at(root_, "max_steps").value_or(-1) < 0) needs("streaming", "max_steps", factory);
      if (is_given("max_samples")) exclude("streaming", "max_samples", factory);
      if (split > 1e-6 && split < 1) exclude("streaming", "val_size", factory);
    }
    const std::string method = text_at(root_, "finetuning_type").value_or("lora");
    if (method != "lora")
      for (const std::string_view key :
           {"use_rslora", "use_dora", "loraplus_lr_ratio", "pissa_init", "adapter_name_or_path"})
        if (is_on(key)) needs(key, "finetuning_type: lora", factory);
    if (!inputs_.deepspeed) return;
    for (const std::string_view key : {"use_galore", "use_apollo"})
      if (is_on(key)) exclude(key, "deepspeed", factory);
    if (stage_ == 3)
      for (const std::string_view key : {"use_unsloth", "pissa_init"})
        if (is_on(key)) exclude(key, "zero_optimization.stage: 3", factory);
    if (is_on("save_only_model") && is_on("load_best_model_at_end"))
      exclude("save_only_model", "load_best_model_at_end", trainer);
  }

 private:
  bool is_given(std::string_view key) const {
    const spec::Value* const value = value_at(root_, key);
    return value != nullptr && value->kind != spec::ValueKind::null;
  }
  /// Given, and not a plain no.
  bool is_on(std::string_view key) const {
    return is_given(key) && truth_at(root_, key).value_or(true);
  }
  void exclude(std::string_view first, std::string_view second, std::string_view who) {
    tell("run-keys-exclude", first, second, who);
  }
  void needs(std::string_view first, std::string_view second, std::string_view who) {
    tell("run-key-needs", first, second, who);
  }
  void tell(std::string_view id, std::string_view first, std::string_view second,
            std::string_view who) {
    findings_.push_back({.id = std::string(id),
                         .severity = Severity::error,
                         .engine = Engine::deepspeed,
                         .file = inputs_.run->file,
                         .key = std::string(first),
                         .line = line_of(root_, first),
                         .slots = {{"first", std::string(first)},
                                   {"second", std::string(second)},
                                   {"who", std::string(who)}}});
  }

  const Inputs& inputs_;
  const spec::Value& root_;
  std::vector<Finding>& findings_;
  int stage_ = 0;
};

}  // namespace

void check_run_by_itself(const Inputs& inputs, std::vector<Finding>& findings) {
  if (inputs.run) CrossCheck(inputs, findings).check_all();
}

}  // namespace underkeel::doctor
