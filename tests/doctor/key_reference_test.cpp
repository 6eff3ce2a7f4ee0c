// The key tables beside what DeepSpeed 0.19.6 has: sections, types, defaults, and the stages at which a key acts, written
// out once more by hand of the reader of its source, so that a slip in the tables shows. What doctor says of a right, a
// wrong and a misplaced value of each is in key_rules_test.cpp.

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/key_tables.h"

namespace underkeel::doctor {
namespace {

/// Lines of "key type default stages"; `-` for none.
struct Known {
  std::string_view section;
  std::string_view keys;
};

constexpr Known known[] = {
    {"",
     R"(train_batch_size whole null -
train_micro_batch_size_per_gpu whole null -
gradient_accumulation_steps whole null -
managed_gradient_accumulation boolean true -
optimizer mapping - -
scheduler mapping - -
fp16 mapping - -
bf16 mapping null -
bfloat16 mapping - -
data_types mapping - -
torch_autocast mapping - -
amp mapping - 0
gradient_clipping number 1.0 -
prescale_gradients boolean false 012
gradient_predivide_factor number 1.0 -
gradient_allreduce_op choice mean -
communication_data_type choice null -
seq_parallel_communication_data_type choice fp32 -
sparse_gradients boolean false 0
use_data_before_expert_parallelism boolean false -
disable_allgather boolean false -
sequence_parallel_size whole 1 -
data_parallel_size whole null -
zero_optimization mapping - -
zero_allow_untested_optimizer boolean false -
zero_force_ds_cpu_optimizer boolean true -
aio mapping - -
activation_checkpointing mapping - -
checkpoint mapping - -
steps_per_print whole null -
wall_clock_breakdown boolean false -
memory_breakdown boolean false -
dump_state boolean false -
dataloader_drop_last boolean false -
log_level text null -
vocabulary_size whole null -
timers mapping - -
flops_profiler mapping - -
tensorboard mapping - -
wandb mapping - -
csv_monitor mapping - -
comet mapping - -
comms_logger mapping - -
elasticity mapping - -
compile mapping - -
tensor_parallel mapping - -
expert_parallel mapping - -
hybrid_engine mapping - -
pipeline mapping - -
autotuning mapping - -
compression_training mapping - -
data_efficiency mapping - -
curriculum_learning mapping - -
progressive_layer_drop mapping - -
eigenvalue mapping - -
quantize_training mapping - -
sparse_attention mapping - -
weight_quantization mapping - -
nebula mapping - -
datastates_ckpt mapping - -
graph_harvesting boolean - -)"},
    {"zero_optimization",
     R"(stage whole 0 -
contiguous_gradients boolean true 123
reduce_scatter boolean true 123
use_multi_rank_bucket_allreduce boolean true 12
reduce_bucket_size whole 5e8 123
allgather_partitions boolean true -
allgather_bucket_size whole 5e8 12
overlap_comm boolean null 123
compute_grad_norm boolean true 12
parameter_alignment boolean false 12
load_from_fp32_weights boolean true 12
elastic_checkpoint boolean false 12
sub_group_size whole 1e9 3
ignore_unused_parameters boolean true 12
round_robin_gradients boolean false 12
legacy_stage1 boolean false 1
stage3_prefetch_bucket_size whole 5e7 3
prefetch_bucket_size whole 5e7 3
stage3_param_persistence_threshold whole 1e5 3
param_persistence_threshold whole 1e5 3
stage3_model_persistence_threshold whole 9223372036854775807 3
model_persistence_threshold whole 9223372036854775807 3
stage3_max_live_parameters whole 1e9 3
max_live_parameters whole 1e9 3
stage3_max_reuse_distance whole 1e9 3
max_reuse_distance whole 1e9 3
stage3_gather_16bit_weights_on_model_save boolean false 3
gather_16bit_weights_on_model_save boolean false 3
stage3_gather_fp16_weights_on_model_save boolean false 3
stage3_module_granularity_threshold whole 0 3
module_granularity_threshold whole 0 3
stage3_use_all_reduce_for_fetch_params boolean false 3
use_all_reduce_for_fetch_params boolean false 3
stage3_allgather_sequential boolean false 3
allgather_sequential boolean false 3
leaf_module mapping - 3
memory_efficient_linear boolean true 3
override_module_apply boolean true 3
pipeline_loading_checkpoint boolean false 3
log_trace_cache_warnings boolean false 3
enable_sanity_checks boolean false 123
zero_hpz_partition_size whole 1 3
zero_quantized_weights boolean false 3
zero_quantized_nontrainable_weights boolean false 3
zero_quantized_gradients boolean false 3
zeropp_loco_param mapping null 3
mics_shard_size whole -1 3
mics_hierarchical_params_gather boolean false 3
save_muon_momentum_buffer_in_memory boolean false 3
zenflow mapping null 123
offload_param mapping null 3
offload_optimizer mapping null 123
cpu_offload boolean null 123
cpu_offload_param boolean null 3
cpu_offload_use_pin_memory boolean null -
grad_hooks boolean - -)"},
    {"zero_optimization.offload_param",
     R"(device choice none -
nvme_path text null -
buffer_count whole 5 -
buffer_size whole 1e8 -
max_in_cpu whole 1e9 -
pin_memory boolean true -)"},
    {"zero_optimization.offload_optimizer",
     R"(device choice none -
nvme_path text null -
buffer_count whole 4 -
pin_memory boolean true -
pipeline_read boolean false -
pipeline_write boolean false -
fast_init boolean false -
ratio number 1.0 -
super_offload boolean false -
cpuadam_cores_perc number 0.8 -)"},
    {"zero_optimization.leaf_module",
     R"(classes list - -
names list - -
name_suffixes list - -)"},
    {"zero_optimization.zeropp_loco_param",
     R"(err_beta number 0.8 -
reset_T whole 1024 -)"},
    {"fp16",
     R"(enabled boolean false -
auto_cast boolean false -
loss_scale number 0 -
initial_scale_power whole 16 -
loss_scale_window whole 1000 -
hysteresis whole 2 -
consecutive_hysteresis boolean false -
min_loss_scale whole 1 -
fp16_master_weights_and_grads boolean false 123)"},
    {"bf16",
     R"(enabled boolean false -
immediate_grad_update boolean false -
check_grad_overflow boolean true 012
bf16_master_weights_and_grads boolean false 123
bf16_optimizer_states boolean false -)"},
    {"data_types",
     R"(grad_accum_dtype choice null -
param_dtype choice null -
buffer_dtype choice null -
keep_in_fp32_modules list auto -)"},
    {"torch_autocast",
     R"(enabled boolean false -
dtype text null -
lower_precision_safe_modules list null -)"},
    {"optimizer",
     R"(type text - -
params mapping - -
legacy_fusion boolean false 0)"},
    {"optimizer.params",
     R"(lr number 1e-3 -
betas list [0.9,0.999] -
eps number 1e-8 -
weight_decay number 0 -
bias_correction boolean true -
torch_adam boolean false -
adam_w_mode boolean true -
amsgrad boolean false -
fp32_optimizer_states boolean true -
max_grad_norm number - -)"},
    {"scheduler",
     R"(type text - -
params mapping - -)"},
    {"scheduler.params",
     R"(warmup_min_lr number 0 -
warmup_max_lr number 0.001 -
warmup_num_steps whole 1000 -
warmup_type choice log -
total_num_steps whole - -
warmup_min_ratio number 0 -
cos_min_ratio number 1e-4 -
cycle_min_lr number - -
cycle_max_lr number - -
decay_lr_rate number 0 -
cycle_first_step_size whole 2000 -
cycle_second_step_size whole null -
cycle_first_stair_count whole 0 -
cycle_second_stair_count whole null -
decay_step_size whole 0 -
cycle_momentum boolean true -
cycle_min_mom number 0.8 -
cycle_max_mom number 0.9 -
decay_mom_rate number 0 -
lr_range_test_min_lr number 1e-3 -
lr_range_test_step_size whole 2000 -
lr_range_test_step_rate number 1.0 -
lr_range_test_staircase boolean false -
last_batch_iteration whole -1 -)"},
    {"aio",
     R"(block_size whole 1048576 -
queue_depth whole 8 -
intra_op_parallelism whole 1 -
single_submit boolean false -
overlap_events boolean true -
use_gds boolean false -
thread_count whole - -)"},
    {"activation_checkpointing",
     R"(partition_activations boolean false -
number_checkpoints whole null -
contiguous_memory_optimization boolean false -
cpu_checkpointing boolean false -
synchronize_checkpoint_boundary boolean false -
profile boolean false -)"},
    {"checkpoint",
     R"(tag_validation choice Warn -
load_universal boolean false -
use_node_local_storage boolean false -
parallel_write mapping - -
checkpoint_serialization boolean true -
writer mapping null -)"},
    {"checkpoint.parallel_write", R"(pipeline_stage boolean false -)"},
    {"checkpoint.writer",
     R"(type choice fast -
io_buffer_size whole 67108864 -
io_buffer_double boolean true -
show_statistics boolean false -
data_parallel choice null -
decoupled boolean false -
io_multiplier whole 1 -)"},
    {"flops_profiler",
     R"(enabled boolean false -
recompute_fwd_factor number 0 -
profile_step whole 1 -
module_depth whole -1 -
top_modules whole 1 -
detailed boolean true -
output_file text null -)"},
    {"tensorboard",
     R"(enabled boolean false -
output_path text - -
job_name text DeepSpeedJobName -)"},
    {"csv_monitor",
     R"(enabled boolean false -
output_path text - -
job_name text DeepSpeedJobName -)"},
    {"wandb",
     R"(enabled boolean false -
group text null -
team text null -
project text deepspeed -)"},
    {"timers", R"(throughput mapping - -)"},
    {"timers.throughput",
     R"(enabled boolean true -
synchronized boolean true -)"},
    {"elasticity",
     R"(enabled boolean false -
max_train_batch_size whole 2000 -
micro_batch_sizes list [2,4,6] -
min_gpus whole 1 -
max_gpus whole 10000 -
min_time whole 0 -
prefer_larger_batch boolean true -
ignore_non_elastic_batch_info boolean false -
version number 0.2 -
num_gpus_per_node whole 1 -
model_parallel_size whole 1 -)"},
};

std::string type_name(ValueType type) {
  constexpr const char* names[] = {"boolean", "whole",   "number", "text",
                                   "choice",  "mapping", "list",   "any"};
  return names[static_cast<std::size_t>(type)];
}

std::string without_blanks(std::string_view text) {
  std::string made;
  for (const char c : text)
    if (c != ' ') made += c;
  return made.empty() ? "-" : made;
}

std::string line_of_rule(const KeyRule& rule) {
  return fmt::format("{} {} {} {}", rule.key, type_name(rule.type), without_blanks(rule.fallback),
                     without_blanks(rule.stages));
}

TEST(KeyTables, HaveTheTypesDefaultsAndStagesOfDeepspeed) {
  std::size_t count = 0;
  for (const Known& section : known) {
    const SectionTable* table = find_section(section.section);
    ASSERT_NE(table, nullptr) << section.section;
    std::string lines;
    for (const KeyRule& rule : table->keys)
      lines += (lines.empty() ? "" : "\n") + line_of_rule(rule);
    EXPECT_EQ(lines, section.keys) << section.section;
    ++count;
  }
  EXPECT_GE(section_tables().size(), count);
}

}  // namespace
}  // namespace underkeel::doctor
