#include "doctor/run_facts.h"

#include <fmt/format.h>

#include "doctor/document.h"
#include "spec/fields.h"

namespace underkeel::doctor {

RunFacts run_facts(const spec::Value& root) {
  RunFacts run;
  const auto whole = [&](std::string_view key, std::int64_t& place) {
    if (const auto value = whole_at(root, key); value && *value > 0) place = *value;
  };
  const auto number = [&](std::string_view key, double& place) {
    if (const auto value = number_at(root, key)) place = *value;
  };
  const auto truth = [&](std::string_view key, bool& place) {
    if (const auto value = truth_at(root, key)) place = *value;
  };
  whole("per_device_train_batch_size", run.micro_batch);
  whole("per_device_eval_batch_size", run.evaluation_batch);
  whole("gradient_accumulation_steps", run.accumulation_steps);
  whole("cutoff_len", run.cutoff_tokens);
  number("learning_rate", run.learning_rate);
  number("weight_decay", run.weight_decay);
  number("adam_beta1", run.beta1);
  number("adam_beta2", run.beta2);
  number("adam_epsilon", run.epsilon);
  number("max_grad_norm", run.max_grad_norm);
  number("warmup_steps", run.warmup_steps);
  number("warmup_ratio", run.warmup_ratio);
  truth("bf16", run.bf16);
  truth("fp16", run.fp16);
  truth("pure_bf16", run.pure_bf16);
  run.recomputes = !truth_at(root, "disable_gradient_checkpointing").value_or(false);
  run.is_lora = text_at(root, "finetuning_type").value_or("lora") == "lora";
  whole("lora_rank", run.lora_rank);
  if (const spec::Value* targets = value_at(root, "lora_target")) {
    run.lora_targets.clear();
    if (targets->kind == spec::ValueKind::text) run.lora_targets = spec::split_words(targets->text);
    for (const spec::Value& item : targets->items) run.lora_targets.push_back(item.text);
  }
  number("lora_dropout", run.lora_dropout);
  run.has_eager_attention = text_at(root, "flash_attn").value_or("") == "disabled";
  run.has_fused_kernels = truth_at(root, "enable_liger_kernel").value_or(false) ||
                          truth_at(root, "use_unsloth").value_or(false);
  whole("quantization_bit", run.quantization_bits);
  truth("double_quantization", run.double_quantization);
  const std::string evaluates = text_at(root, "eval_strategy").value_or("no");
  run.evaluates = evaluates != "no" || truth_at(root, "do_eval").value_or(false);
  run.reduces_logits = truth_at(root, "compute_accuracy").value_or(false);
  run.keeps_logits = run.reduces_logits || truth_at(root, "predict_with_generate").value_or(false);
  const spec::Value* strategy = value_at(root, "save_strategy");
  const bool is_off =
      strategy != nullptr && ((strategy->kind == spec::ValueKind::boolean && !strategy->boolean) ||
                              strategy->text == "no");
  run.saves = !is_off;
  const bool by_steps =
      strategy == nullptr || (strategy->text != "epoch" && strategy->text != "best");
  run.save_every =
      by_steps ? fmt::format("{}", number_at(root, "save_steps").value_or(500)) : strategy->text;
  const bool compares = truth_at(root, "load_best_model_at_end").value_or(false) ||
                        text_at(root, "metric_for_best_model").has_value() ||
                        text_at(root, "lr_scheduler_type") == "reduce_lr_on_plateau";
  run.keeps_best = compares && evaluates != "no" && run.save_every != "best";
  number("save_steps", run.save_steps);
  number("max_steps", run.max_steps);
  number("num_train_epochs", run.epochs);
  whole("save_total_limit", run.save_total_limit);
  truth("save_only_model", run.saves_model_only);
  run.resumes = value_at(root, "resume_from_checkpoint") != nullptr &&
                text_at(root, "resume_from_checkpoint").has_value();
  run.template_name = text_at(root, "template").value_or("");
  return run;
}

}  // namespace underkeel::doctor
