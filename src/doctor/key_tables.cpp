#include "doctor/key_tables.h"

#include <array>

namespace underkeel::doctor {
namespace {

using enum ValueType;

constexpr std::array offload_param_keys = {
    KeyRule{.key = "device", .type = choice, .fallback = "none", .choices = "none|cpu|nvme"},
    KeyRule{.key = "nvme_path", .type = text, .fallback = "null"},
    KeyRule{.key = "buffer_count", .type = whole, .fallback = "5", .least = 0},
    KeyRule{.key = "buffer_size", .type = whole, .fallback = "1e8", .least = 0},
    KeyRule{.key = "max_in_cpu", .type = whole, .fallback = "1e9", .least = 0},
    KeyRule{.key = "pin_memory", .type = boolean, .fallback = "true"},
};

constexpr std::array offload_optimizer_keys = {
    KeyRule{.key = "device", .type = choice, .fallback = "none", .choices = "none|cpu|nvme"},
    KeyRule{.key = "nvme_path", .type = text, .fallback = "null"},
    KeyRule{.key = "buffer_count", .type = whole, .fallback = "4", .least = 0},
    KeyRule{.key = "pin_memory", .type = boolean, .fallback = "true"},
    KeyRule{.key = "pipeline_read", .type = boolean, .fallback = "false"},
    KeyRule{.key = "pipeline_write", .type = boolean, .fallback = "false"},
    KeyRule{.key = "fast_init", .type = boolean, .fallback = "false"},
    KeyRule{.key = "ratio", .type = number, .fallback = "1.0", .least = 0, .most = 1},
    KeyRule{.key = "super_offload", .type = boolean, .fallback = "false"},
    KeyRule{.key = "cpuadam_cores_perc", .type = number, .fallback = "0.8", .least = 0, .most = 1},
};

constexpr std::array leaf_module_keys = {
    KeyRule{.key = "classes", .type = list},
    KeyRule{.key = "names", .type = list},
    KeyRule{.key = "name_suffixes", .type = list},
};

constexpr std::array loco_keys = {
    KeyRule{.key = "err_beta", .type = number, .fallback = "0.8"},
    KeyRule{.key = "reset_T", .type = whole, .fallback = "1024"},
};

constexpr std::array fp16_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "auto_cast", .type = boolean, .fallback = "false"},
    KeyRule{.key = "loss_scale", .type = number, .fallback = "0", .least = 0},
    KeyRule{.key = "initial_scale_power", .type = whole, .fallback = "16"},
    KeyRule{.key = "loss_scale_window", .type = whole, .fallback = "1000", .least = 1},
    KeyRule{.key = "hysteresis", .type = whole, .fallback = "2"},
    KeyRule{.key = "consecutive_hysteresis", .type = boolean, .fallback = "false"},
    KeyRule{.key = "min_loss_scale", .type = whole, .fallback = "1", .least = 1},
    KeyRule{.key = "fp16_master_weights_and_grads",
            .type = boolean,
            .fallback = "false",
            .stages = "123"},
};

constexpr std::array bf16_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "immediate_grad_update", .type = boolean, .fallback = "false"},
    KeyRule{.key = "check_grad_overflow", .type = boolean, .fallback = "true", .stages = "012"},
    KeyRule{.key = "bf16_master_weights_and_grads",
            .type = boolean,
            .fallback = "false",
            .stages = "123"},
    KeyRule{.key = "bf16_optimizer_states", .type = boolean, .fallback = "false"},
};

constexpr std::string_view type_names = "fp32|fp16|bf16|float32|float16|bfloat16|float|half";
constexpr std::array data_types_keys = {
    KeyRule{.key = "grad_accum_dtype", .type = choice, .fallback = "null", .choices = type_names},
    KeyRule{.key = "param_dtype", .type = choice, .fallback = "null", .choices = type_names},
    KeyRule{.key = "buffer_dtype", .type = choice, .fallback = "null", .choices = type_names},
    KeyRule{.key = "keep_in_fp32_modules", .type = list, .fallback = "auto"},
};

constexpr std::array autocast_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "dtype", .type = text, .fallback = "null"},
    KeyRule{.key = "lower_precision_safe_modules", .type = list, .fallback = "null"},
};

constexpr std::array optimizer_keys = {
    KeyRule{.key = "type", .type = text},
    KeyRule{.key = "params", .type = mapping},
    KeyRule{.key = "legacy_fusion", .type = boolean, .fallback = "false", .stages = "0"},
};

constexpr std::array adam_keys = {
    KeyRule{.key = "lr", .type = number, .fallback = "1e-3", .least = 0},
    KeyRule{.key = "betas", .type = list, .fallback = "[0.9, 0.999]"},
    KeyRule{.key = "eps", .type = number, .fallback = "1e-8", .least = 0},
    KeyRule{.key = "weight_decay", .type = number, .fallback = "0", .least = 0},
    KeyRule{.key = "bias_correction", .type = boolean, .fallback = "true"},
    KeyRule{.key = "torch_adam", .type = boolean, .fallback = "false"},
    KeyRule{.key = "adam_w_mode", .type = boolean, .fallback = "true"},
    KeyRule{.key = "amsgrad", .type = boolean, .fallback = "false"},
    KeyRule{.key = "fp32_optimizer_states", .type = boolean, .fallback = "true"},
    KeyRule{.key = "max_grad_norm", .type = number, .special = "key-max-grad-norm"},
};

constexpr std::array scheduler_keys = {
    KeyRule{.key = "type", .type = text},
    KeyRule{.key = "params", .type = mapping},
};

// Of all five schedulers; which takes which is checked in scheduler_rules.cpp.
constexpr std::array schedule_keys = {
    KeyRule{.key = "warmup_min_lr", .type = number, .fallback = "0"},
    KeyRule{.key = "warmup_max_lr", .type = number, .fallback = "0.001"},
    KeyRule{.key = "warmup_num_steps", .type = whole, .fallback = "1000"},
    KeyRule{.key = "warmup_type", .type = choice, .fallback = "log", .choices = "log|linear"},
    KeyRule{.key = "total_num_steps", .type = whole},
    KeyRule{.key = "warmup_min_ratio", .type = number, .fallback = "0"},
    KeyRule{.key = "cos_min_ratio", .type = number, .fallback = "1e-4"},
    KeyRule{.key = "cycle_min_lr", .type = number},
    KeyRule{.key = "cycle_max_lr", .type = number},
    KeyRule{.key = "decay_lr_rate", .type = number, .fallback = "0"},
    KeyRule{.key = "cycle_first_step_size", .type = whole, .fallback = "2000"},
    KeyRule{.key = "cycle_second_step_size", .type = whole, .fallback = "null"},
    KeyRule{.key = "cycle_first_stair_count", .type = whole, .fallback = "0"},
    KeyRule{.key = "cycle_second_stair_count", .type = whole, .fallback = "null"},
    KeyRule{.key = "decay_step_size", .type = whole, .fallback = "0"},
    KeyRule{.key = "cycle_momentum", .type = boolean, .fallback = "true"},
    KeyRule{.key = "cycle_min_mom", .type = number, .fallback = "0.8"},
    KeyRule{.key = "cycle_max_mom", .type = number, .fallback = "0.9"},
    KeyRule{.key = "decay_mom_rate", .type = number, .fallback = "0"},
    KeyRule{.key = "lr_range_test_min_lr", .type = number, .fallback = "1e-3"},
    KeyRule{.key = "lr_range_test_step_size", .type = whole, .fallback = "2000"},
    KeyRule{.key = "lr_range_test_step_rate", .type = number, .fallback = "1.0"},
    KeyRule{.key = "lr_range_test_staircase", .type = boolean, .fallback = "false"},
    KeyRule{.key = "last_batch_iteration", .type = whole, .fallback = "-1"},
};

constexpr std::array aio_keys = {
    KeyRule{.key = "block_size", .type = whole, .fallback = "1048576"},
    KeyRule{.key = "queue_depth", .type = whole, .fallback = "8"},
    KeyRule{.key = "intra_op_parallelism", .type = whole, .fallback = "1"},
    KeyRule{.key = "single_submit", .type = boolean, .fallback = "false"},
    KeyRule{.key = "overlap_events", .type = boolean, .fallback = "true"},
    KeyRule{.key = "use_gds", .type = boolean, .fallback = "false"},
    KeyRule{.key = "thread_count", .type = whole, .special = "key-thread-count"},
};

constexpr std::array activation_keys = {
    KeyRule{.key = "partition_activations", .type = boolean, .fallback = "false"},
    KeyRule{.key = "number_checkpoints", .type = whole, .fallback = "null"},
    KeyRule{.key = "contiguous_memory_optimization", .type = boolean, .fallback = "false"},
    KeyRule{.key = "cpu_checkpointing", .type = boolean, .fallback = "false"},
    KeyRule{.key = "synchronize_checkpoint_boundary", .type = boolean, .fallback = "false"},
    KeyRule{.key = "profile", .type = boolean, .fallback = "false"},
};

constexpr std::array checkpoint_keys = {
    KeyRule{.key = "tag_validation",
            .type = choice,
            .fallback = "Warn",
            .choices = "Ignore|Warn|Fail",
            .any_case = true},
    KeyRule{.key = "load_universal", .type = boolean, .fallback = "false"},
    KeyRule{.key = "use_node_local_storage", .type = boolean, .fallback = "false"},
    KeyRule{.key = "parallel_write", .type = mapping},
    KeyRule{.key = "checkpoint_serialization", .type = boolean, .fallback = "true"},
    KeyRule{.key = "writer", .type = mapping, .fallback = "null"},
};

constexpr std::array parallel_write_keys = {
    KeyRule{.key = "pipeline_stage", .type = boolean, .fallback = "false"},
};

constexpr std::array writer_keys = {
    KeyRule{.key = "type", .type = choice, .fallback = "fast", .choices = "mock|python|fast"},
    KeyRule{.key = "io_buffer_size", .type = whole, .fallback = "67108864", .least = 0},
    KeyRule{.key = "io_buffer_double", .type = boolean, .fallback = "true"},
    KeyRule{.key = "show_statistics", .type = boolean, .fallback = "false"},
    KeyRule{.key = "data_parallel",
            .type = choice,
            .fallback = "null",
            .choices = "replica|socket|machine"},
    KeyRule{.key = "decoupled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "io_multiplier", .type = whole, .fallback = "1"},
};

constexpr std::array profiler_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "recompute_fwd_factor", .type = number, .fallback = "0"},
    KeyRule{.key = "profile_step", .type = whole, .fallback = "1"},
    KeyRule{.key = "module_depth", .type = whole, .fallback = "-1"},
    KeyRule{.key = "top_modules", .type = whole, .fallback = "1"},
    KeyRule{.key = "detailed", .type = boolean, .fallback = "true"},
    KeyRule{.key = "output_file", .type = text, .fallback = "null"},
};

constexpr std::array tensorboard_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "output_path", .type = text},
    KeyRule{.key = "job_name", .type = text, .fallback = "DeepSpeedJobName"},
};

constexpr std::array wandb_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "group", .type = text, .fallback = "null"},
    KeyRule{.key = "team", .type = text, .fallback = "null"},
    KeyRule{.key = "project", .type = text, .fallback = "deepspeed"},
};

constexpr std::array timers_keys = {KeyRule{.key = "throughput", .type = mapping}};

constexpr std::array throughput_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "true"},
    KeyRule{.key = "synchronized", .type = boolean, .fallback = "true"},
};

constexpr std::array elasticity_keys = {
    KeyRule{.key = "enabled", .type = boolean, .fallback = "false"},
    KeyRule{.key = "max_train_batch_size", .type = whole, .fallback = "2000"},
    KeyRule{.key = "micro_batch_sizes", .type = list, .fallback = "[2, 4, 6]"},
    KeyRule{.key = "min_gpus", .type = whole, .fallback = "1"},
    KeyRule{.key = "max_gpus", .type = whole, .fallback = "10000"},
    KeyRule{.key = "min_time", .type = whole, .fallback = "0"},
    KeyRule{.key = "prefer_larger_batch", .type = boolean, .fallback = "true"},
    KeyRule{.key = "ignore_non_elastic_batch_info", .type = boolean, .fallback = "false"},
    KeyRule{.key = "version", .type = number, .fallback = "0.2"},
    KeyRule{.key = "num_gpus_per_node", .type = whole, .fallback = "1"},
    KeyRule{.key = "model_parallel_size", .type = whole, .fallback = "1"},
};

constexpr std::span<const KeyRule> none;

const std::array tables = {
    SectionTable{{.name = ""}, top_level_keys()},
    SectionTable{{.name = "zero_optimization", .reader = Reader::pydantic}, zero_keys()},
    SectionTable{{.name = "zero_optimization.offload_param", .reader = Reader::pydantic},
                 offload_param_keys},
    SectionTable{{.name = "zero_optimization.offload_optimizer", .reader = Reader::pydantic},
                 offload_optimizer_keys},
    SectionTable{{.name = "zero_optimization.leaf_module", .reader = Reader::pydantic},
                 leaf_module_keys},
    SectionTable{{.name = "zero_optimization.zeropp_loco_param"}, loco_keys},
    SectionTable{{.name = "zero_optimization.zenflow", .reader = Reader::pydantic, .is_open = true},
                 none},
    SectionTable{{.name = "fp16", .reader = Reader::pydantic}, fp16_keys},
    SectionTable{{.name = "bf16", .reader = Reader::pydantic}, bf16_keys},
    SectionTable{{.name = "bfloat16", .reader = Reader::pydantic}, bf16_keys},
    SectionTable{{.name = "data_types"}, data_types_keys},
    SectionTable{{.name = "torch_autocast"}, autocast_keys},
    SectionTable{{.name = "optimizer"}, optimizer_keys},
    SectionTable{{.name = "optimizer.params", .reader = Reader::arguments}, adam_keys},
    SectionTable{{.name = "scheduler"}, scheduler_keys},
    SectionTable{{.name = "scheduler.params", .reader = Reader::arguments}, schedule_keys},
    SectionTable{{.name = "aio"}, aio_keys},
    SectionTable{{.name = "activation_checkpointing"}, activation_keys},
    SectionTable{{.name = "checkpoint"}, checkpoint_keys},
    SectionTable{{.name = "checkpoint.parallel_write"}, parallel_write_keys},
    SectionTable{{.name = "checkpoint.writer"}, writer_keys},
    SectionTable{{.name = "flops_profiler"}, profiler_keys},
    SectionTable{{.name = "tensorboard", .reader = Reader::pydantic}, tensorboard_keys},
    SectionTable{{.name = "csv_monitor", .reader = Reader::pydantic}, tensorboard_keys},
    SectionTable{{.name = "wandb", .reader = Reader::pydantic}, wandb_keys},
    SectionTable{{.name = "timers"}, timers_keys},
    SectionTable{{.name = "timers.throughput", .reader = Reader::pydantic}, throughput_keys},
    SectionTable{{.name = "elasticity"}, elasticity_keys},
};

/// "auto" that the HF Trainer or accelerate replaces by a number of theirs, and what that is made of.
struct Filling {
  std::string_view section, key, source;
};
constexpr Filling fillings[] = {
    {"", "train_micro_batch_size_per_gpu", "per_device_train_batch_size"},
    {"", "gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"", "train_batch_size", "per_device_train_batch_size x gradient_accumulation_steps x ranks"},
    {"", "gradient_clipping", "max_grad_norm"},
    {"", "steps_per_print", "inf"},
    {"optimizer.params", "lr", "learning_rate"},
    {"optimizer.params", "betas", "adam_beta1, adam_beta2"},
    {"optimizer.params", "eps", "adam_epsilon"},
    {"optimizer.params", "weight_decay", "weight_decay"},
    {"scheduler.params", "warmup_min_lr", "0"},
    {"scheduler.params", "warmup_max_lr", "learning_rate"},
    {"scheduler.params", "warmup_num_steps", "warmup_steps, warmup_ratio"},
    {"scheduler.params", "total_num_steps", "max_steps, num_train_epochs"},
    {"fp16", "enabled", "fp16"},
    {"bf16", "enabled", "bf16"},
    {"bfloat16", "enabled", "bf16"},
    {"zero_optimization", "stage", "2"},
    {"zero_optimization", "reduce_bucket_size", "hidden_size^2"},
    {"zero_optimization", "stage3_prefetch_bucket_size", "0.9 hidden_size^2"},
    {"zero_optimization", "stage3_param_persistence_threshold", "10 hidden_size"},
    {"zero_optimization", "stage3_gather_16bit_weights_on_model_save", "false"},
    {"zero_optimization.offload_param", "device", "none"},
    {"zero_optimization.offload_param", "nvme_path", "none"},
    {"zero_optimization.offload_optimizer", "device", "none"},
    {"zero_optimization.offload_optimizer", "nvme_path", "none"},
};

}  // namespace

std::span<const SectionTable> section_tables() {
  return tables;
}

const SectionTable* find_section(std::string_view name) {
  for (const SectionTable& table : tables)
    if (table.section.name == name) return &table;
  return nullptr;
}

const KeyRule* find_key(const SectionTable& table, std::string_view key) {
  for (const KeyRule& rule : table.keys)
    if (rule.key == key) return &rule;
  return nullptr;
}

std::vector<const SectionTable*> sections_of(std::string_view key) {
  std::vector<const SectionTable*> found;
  for (const SectionTable& table : tables)
    if (find_key(table, key) != nullptr) found.push_back(&table);
  return found;
}

std::string_view filling_of(std::string_view section, std::string_view key) {
  for (const Filling& filling : fillings)
    if (filling.section == section && filling.key == key) return filling.source;
  return {};
}

}  // namespace underkeel::doctor
