// The keys of a DeepSpeed config that deepspeed_config.cpp does not read itself.

#include <array>

#include "spec/run_keys.h"

namespace underkeel::spec {
namespace {

constexpr KeyUse no_effect = KeyUse::no_effect;
constexpr KeyUse refused = KeyUse::refused;
constexpr std::string_view off_or_auto = "null|false|auto";

constexpr std::array top_keys = {
    RunKey{"managed_gradient_accumulation", refused, "null|true", "the engine always accumulates"},
    RunKey{"prescale_gradients", refused, off_or_auto, "gradients are averaged after the sum"},
    RunKey{"gradient_predivide_factor", refused, "null|1", "gradients are averaged after the sum"},
    RunKey{"gradient_allreduce_op", refused, "null|mean", "gradients are always averaged"},
    RunKey{"seq_parallel_communication_data_type"},
    RunKey{"sparse_gradients", refused, off_or_auto, "sparse gradients are not supported"},
    RunKey{"use_data_before_expert_parallelism"},
    RunKey{"disable_allgather"},
    RunKey{"sequence_parallel_size", refused, "null|1|auto",
           "sequence parallelism is not supported"},
    RunKey{"data_parallel_size"},
    RunKey{"zero_allow_untested_optimizer"},
    RunKey{"zero_force_ds_cpu_optimizer"},
    RunKey{"steps_per_print"},
    RunKey{"wall_clock_breakdown"},
    RunKey{"memory_breakdown"},
    RunKey{"dump_state"},
    RunKey{"dataloader_drop_last"},
    RunKey{"log_level"},
    RunKey{"vocabulary_size"},
    RunKey{"timers"},
    RunKey{"activation_checkpointing", no_effect, "",
           "it does nothing to a Hugging Face model in DeepSpeed either; "
           "disable_gradient_checkpointing and underkeel.recompute are the keys"},
    RunKey{"aio", no_effect, "", "it acts with NVMe offload only"},
    RunKey{"checkpoint"},
    RunKey{"nebula"},
    RunKey{"datastates_ckpt"},
    RunKey{"flops_profiler"},
    RunKey{"tensorboard"},
    RunKey{"wandb"},
    RunKey{"csv_monitor"},
    RunKey{"comet"},
    RunKey{"comms_logger"},
    RunKey{"compile"},
    RunKey{"graph_harvesting"},
};

constexpr std::array zero_keys = {
    RunKey{"contiguous_gradients"},
    RunKey{"reduce_scatter"},
    RunKey{"use_multi_rank_bucket_allreduce"},
    RunKey{"allgather_partitions"},
    RunKey{"compute_grad_norm"},
    RunKey{"parameter_alignment"},
    RunKey{"load_from_fp32_weights"},
    RunKey{"elastic_checkpoint"},
    RunKey{"sub_group_size"},
    RunKey{"ignore_unused_parameters"},
    RunKey{"round_robin_gradients"},
    RunKey{"legacy_stage1", refused, off_or_auto, "DeepSpeed refuses it as well"},
    RunKey{"use_all_reduce_for_fetch_params"},
    RunKey{"stage3_use_all_reduce_for_fetch_params"},
    RunKey{"allgather_sequential"},
    RunKey{"stage3_allgather_sequential"},
    RunKey{"module_granularity_threshold"},
    RunKey{"stage3_module_granularity_threshold"},
    RunKey{"leaf_module"},
    RunKey{"memory_efficient_linear"},
    RunKey{"override_module_apply"},
    RunKey{"pipeline_loading_checkpoint"},
    RunKey{"log_trace_cache_warnings"},
    RunKey{"enable_sanity_checks"},
    RunKey{"zero_hpz_partition_size", refused, "null|1|auto",
           "a second shard per node is not supported"},
    RunKey{"zero_quantized_weights", refused, off_or_auto,
           "quantised collectives are not supported"},
    RunKey{"zero_quantized_nontrainable_weights", refused, off_or_auto,
           "quantised collectives are not supported"},
    RunKey{"zero_quantized_gradients", refused, off_or_auto,
           "quantised collectives are not supported"},
    RunKey{"zeropp_loco_param", refused, "null|auto", "quantised collectives are not supported"},
    RunKey{"mics_shard_size", refused, "null|-1|auto", "MiCS is not supported"},
    RunKey{"mics_hierarchical_params_gather", refused, off_or_auto, "MiCS is not supported"},
    RunKey{"save_muon_momentum_buffer_in_memory"},
    RunKey{"zenflow", refused, "null|auto", "ZenFlow is not supported"},
};

}  // namespace

std::span<const RunKey> deepspeed_keys() {
  return top_keys;
}

std::span<const RunKey> deepspeed_zero_keys() {
  return zero_keys;
}

}  // namespace underkeel::spec
