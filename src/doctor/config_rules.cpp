#include "doctor/config_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace underkeel::doctor {
namespace {

using spec::Value;
using spec::ValueKind;

/// What a rule of pairs may ask of a config.
struct Facts {
  const Value& root;
  int stage = 0;
  std::int64_t ranks = 1;
  bool has_run_file = false;

  bool on(std::string_view path, bool fallback = false) const {
    return truth_at(root, path).value_or(fallback);
  }
  bool has(std::string_view path) const {
    const Value* value = value_at(root, path);
    return value != nullptr && value->kind != ValueKind::null;
  }
  /// A section of another kind is refused, not empty.
  bool has_section(std::string_view path) const {
    const Value* value = value_at(root, path);
    return value != nullptr && value->kind == ValueKind::mapping;
  }
  std::string zero_text(std::string_view key, std::string fallback) const {
    return text_at(root, fmt::format("zero_optimization.{}", key)).value_or(std::move(fallback));
  }
  std::string offload(std::string_view which) const {
    if (stage < 1) return "none";
    const std::string old = which == "offload_optimizer" ? "cpu_offload" : "cpu_offload_param";
    if (on("zero_optimization." + old)) return "cpu";
    return zero_text(fmt::format("{}.device", which), "none");
  }
};

/// A combination of keys that DeepSpeed refuses, or that does not do what it seems to.
struct Rule {
  std::string_view id;
  std::string_view key;
  Severity severity;
  bool (*holds)(const Facts&);
};

constexpr std::array rules = {
    Rule{"fp16-and-bf16", "bf16.enabled", Severity::error,
         [](const Facts& f) {
           return f.on("fp16.enabled") && (f.on("bf16.enabled") || f.on("bfloat16.enabled"));
         }},
    Rule{"amp-with-zero", "amp.enabled", Severity::error,
         [](const Facts& f) { return f.on("amp.enabled") && f.stage > 0; }},
    Rule{"prescale-with-reduce-scatter", "prescale_gradients", Severity::error,
         [](const Facts& f) {
           return f.on("prescale_gradients") && f.stage >= 2 &&
                  f.on("zero_optimization.reduce_scatter", true);
         }},
    Rule{"predivide-with-reduce-scatter", "gradient_predivide_factor", Severity::error,
         [](const Facts& f) {
           return number_at(f.root, "gradient_predivide_factor").value_or(1) != 1 && f.stage >= 2 &&
                  f.on("zero_optimization.reduce_scatter", true);
         }},
    Rule{"sum-at-stage-3", "gradient_allreduce_op", Severity::error,
         [](const Facts& f) {
           return f.stage == 3 && text_at(f.root, "gradient_allreduce_op") == "sum";
         }},
    Rule{"legacy-stage-1", "zero_optimization.legacy_stage1", Severity::error,
         [](const Facts& f) { return f.on("zero_optimization.legacy_stage1"); }},
    Rule{"elastic-checkpoint-at-stage-3", "zero_optimization.elastic_checkpoint", Severity::error,
         [](const Facts& f) {
           return f.stage == 3 && f.on("zero_optimization.elastic_checkpoint");
         }},
    Rule{"gradient-type-at-stage-0", "data_types.grad_accum_dtype", Severity::error,
         [](const Facts& f) {
           const auto type = text_at(f.root, "data_types.grad_accum_dtype");
           const bool is_f32 = type == "fp32" || type == "float32" || type == "float";
           return f.stage == 0 && type && is_f32 &&
                  (f.on("fp16.enabled") || f.on("bf16.enabled") || f.on("bfloat16.enabled"));
         }},
    Rule{"gradient-type-at-stage-2", "data_types.grad_accum_dtype", Severity::warning,
         [](const Facts& f) { return f.stage == 2 && f.has("data_types.grad_accum_dtype"); }},
    Rule{"offload-at-stage-0", "zero_optimization.offload_optimizer", Severity::warning,
         [](const Facts& f) {
           return f.stage == 0 && (f.zero_text("offload_optimizer.device", "none") != "none" ||
                                   f.on("zero_optimization.cpu_offload"));
         }},
    Rule{"offload-without-device", "zero_optimization.offload_param", Severity::warning,
         [](const Facts& f) {
           return f.has_section("zero_optimization.offload_param") &&
                  !f.has("zero_optimization.offload_param.device");
         }},
    Rule{"offload-without-device", "zero_optimization.offload_optimizer", Severity::warning,
         [](const Facts& f) {
           return f.has_section("zero_optimization.offload_optimizer") &&
                  !f.has("zero_optimization.offload_optimizer.device");
         }},
    Rule{"nvme-means-cpu", "zero_optimization.offload_optimizer.device", Severity::warning,
         [](const Facts& f) {
           return f.stage >= 1 && f.stage <= 2 && f.offload("offload_optimizer") == "nvme";
         }},
    Rule{"nvme-without-path", "zero_optimization.offload_optimizer.nvme_path", Severity::error,
         [](const Facts& f) {
           return f.stage == 3 && f.offload("offload_optimizer") == "nvme" &&
                  !f.has("zero_optimization.offload_optimizer.nvme_path");
         }},
    Rule{"nvme-without-path", "zero_optimization.offload_param.nvme_path", Severity::error,
         [](const Facts& f) {
           return f.stage == 3 && f.offload("offload_param") == "nvme" &&
                  !f.has("zero_optimization.offload_param.nvme_path");
         }},
    Rule{"ratio-below-stage-3", "zero_optimization.offload_optimizer.ratio", Severity::error,
         [](const Facts& f) {
           return f.stage < 3 &&
                  number_at(f.root, "zero_optimization.offload_optimizer.ratio").value_or(1) < 1;
         }},
    Rule{"allgather-bucket-is-odd", "zero_optimization.allgather_bucket_size", Severity::error,
         [](const Facts& f) {
           return whole_at(f.root, "zero_optimization.allgather_bucket_size").value_or(0) % 2 != 0;
         }},
    Rule{"contiguous-without-count", "activation_checkpointing.contiguous_memory_optimization",
         Severity::warning,
         [](const Facts& f) {
           return f.on("activation_checkpointing.contiguous_memory_optimization") &&
                  !f.has("activation_checkpointing.number_checkpoints");
         }},
    Rule{"master-type-needs-offload", "fp16.fp16_master_weights_and_grads", Severity::error,
         [](const Facts& f) {
           return f.on("fp16.fp16_master_weights_and_grads") &&
                  f.offload("offload_optimizer") == "none";
         }},
    Rule{"master-type-needs-offload", "bf16.bf16_master_weights_and_grads", Severity::error,
         [](const Facts& f) {
           return f.on("bf16.bf16_master_weights_and_grads") &&
                  !f.on("bf16.bf16_optimizer_states") && f.offload("offload_optimizer") == "none";
         }},
    Rule{"bf16-states-need-bf16-master", "bf16.bf16_optimizer_states", Severity::error,
         [](const Facts& f) {
           return f.on("bf16.bf16_optimizer_states") && !f.on("bf16.bf16_master_weights_and_grads");
         }},
    Rule{"round-robin-mixes-parameters", "zero_optimization.round_robin_gradients",
         Severity::warning,
         [](const Facts& f) {
           return f.on("zero_optimization.round_robin_gradients") && f.stage >= 1 && f.stage <= 2 &&
                  f.ranks > 1;
         }},
    Rule{"elasticity-with-batch", "elasticity", Severity::error,
         [](const Facts& f) {
           return f.on("elasticity.enabled") && !f.on("elasticity.ignore_non_elastic_batch_info") &&
                  (f.has("train_batch_size") || f.has("train_micro_batch_size_per_gpu") ||
                   f.has("gradient_accumulation_steps"));
         }},
    Rule{"decoupled-writer-cannot-be-read", "checkpoint.writer.type", Severity::warning,
         [](const Facts& f) {
           return f.has("checkpoint.writer") &&
                  text_at(f.root, "checkpoint.writer.type").value_or("fast") == "fast";
         }},
    Rule{"bf16-unchecked-at-stage-3", "zero_optimization.stage", Severity::info,
         [](const Facts& f) {
           return f.stage == 3 && (f.on("bf16.enabled") || f.on("bfloat16.enabled"));
         }},
};

}  // namespace

int stage_in(const Value& config) {
  const Value* zero = config.find("zero_optimization");
  if (zero == nullptr) return 0;
  if (zero->kind == ValueKind::boolean) return zero->boolean ? 1 : 0;
  if (is_auto_at(config, "zero_optimization.stage")) return 2;
  return static_cast<int>(
      std::clamp<std::int64_t>(lax_whole_at(config, "zero_optimization.stage").value_or(0), 0, 3));
}

void check_combinations(const Inputs& inputs, std::vector<Finding>& findings) {
  const Document& config = *inputs.deepspeed;
  const Facts facts{config.root, stage_in(config.root), inputs.ranks.count, inputs.run.has_value()};
  for (const Rule& rule : rules) {
    if (!rule.holds(facts)) continue;
    findings.push_back({.id = std::string(rule.id),
                        .severity = rule.severity,
                        .engine = Engine::deepspeed,
                        .file = config.file,
                        .key = std::string(rule.key),
                        .line = line_of(config.root, rule.key),
                        .slots = {{"key", std::string(rule.key)},
                                  {"stage", fmt::format("{}", facts.stage)},
                                  {"ranks", fmt::format("{}", facts.ranks)}}});
  }
}

std::vector<Finding> check_config(const Inputs& inputs) {
  std::vector<Finding> findings;
  if (!inputs.deepspeed || inputs.deepspeed->root.kind != ValueKind::mapping) return findings;
  if (!inputs.has_unread) check_batch(inputs, findings);
  check_against_run_file(inputs, findings);
  check_combinations(inputs, findings);
  check_optimizer(inputs, findings);
  return findings;
}

}  // namespace underkeel::doctor
