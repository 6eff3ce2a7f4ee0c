// The top level. DeepSpeed has no list of known keys there: it asks for the ones it knows.

#include <array>

#include "doctor/key_tables.h"

namespace underkeel::doctor {
namespace {

using enum ValueType;

constexpr std::array keys = {
    KeyRule{.key = "train_batch_size", .type = whole, .fallback = "null", .least = 1},
    KeyRule{.key = "train_micro_batch_size_per_gpu", .type = whole, .fallback = "null", .least = 1},
    KeyRule{.key = "gradient_accumulation_steps", .type = whole, .fallback = "null", .least = 1},
    KeyRule{.key = "managed_gradient_accumulation", .type = boolean, .fallback = "true"},
    KeyRule{.key = "optimizer", .type = mapping},
    KeyRule{.key = "scheduler", .type = mapping},
    KeyRule{.key = "fp16", .type = mapping},
    KeyRule{.key = "bf16", .type = mapping, .fallback = "null"},
    KeyRule{.key = "bfloat16", .type = mapping, .other = "bf16"},
    KeyRule{.key = "data_types", .type = mapping},
    KeyRule{.key = "torch_autocast", .type = mapping},
    KeyRule{.key = "amp", .type = mapping, .stages = "0"},
    KeyRule{.key = "gradient_clipping", .type = number, .fallback = "1.0"},
    KeyRule{.key = "prescale_gradients", .type = boolean, .fallback = "false", .stages = "012"},
    KeyRule{.key = "gradient_predivide_factor", .type = number, .fallback = "1.0"},
    KeyRule{.key = "gradient_allreduce_op",
            .type = choice,
            .fallback = "mean",
            .choices = "mean|sum",
            .any_case = true},
    KeyRule{.key = "communication_data_type",
            .type = choice,
            .fallback = "null",
            .choices = "fp32|fp16|bf16",
            .any_case = true},
    KeyRule{.key = "seq_parallel_communication_data_type",
            .type = choice,
            .fallback = "fp32",
            .choices = "fp32|fp16|bf16",
            .any_case = true},
    KeyRule{.key = "sparse_gradients", .type = boolean, .fallback = "false", .stages = "0"},
    KeyRule{.key = "use_data_before_expert_parallelism", .type = boolean, .fallback = "false"},
    KeyRule{
        .key = "disable_allgather", .type = boolean, .fallback = "false", .special = "key-dead"},
    KeyRule{.key = "sequence_parallel_size", .type = whole, .fallback = "1", .least = 1},
    KeyRule{.key = "data_parallel_size", .type = whole, .fallback = "null", .least = 1},
    KeyRule{.key = "zero_optimization", .type = mapping},
    KeyRule{.key = "zero_allow_untested_optimizer", .type = boolean, .fallback = "false"},
    KeyRule{.key = "zero_force_ds_cpu_optimizer", .type = boolean, .fallback = "true"},
    KeyRule{.key = "aio", .type = mapping},
    KeyRule{.key = "activation_checkpointing",
            .type = mapping,
            .special = "key-activation-checkpointing"},
    KeyRule{.key = "checkpoint", .type = mapping},
    KeyRule{.key = "steps_per_print", .type = whole, .fallback = "null"},
    KeyRule{.key = "wall_clock_breakdown", .type = boolean, .fallback = "false"},
    KeyRule{.key = "memory_breakdown", .type = boolean, .fallback = "false"},
    KeyRule{.key = "dump_state", .type = boolean, .fallback = "false"},
    KeyRule{.key = "dataloader_drop_last", .type = boolean, .fallback = "false"},
    KeyRule{.key = "log_level", .type = text, .fallback = "null"},
    KeyRule{.key = "vocabulary_size", .type = whole, .fallback = "null", .least = 1},
    KeyRule{.key = "timers", .type = mapping},
    KeyRule{.key = "flops_profiler", .type = mapping},
    KeyRule{.key = "tensorboard", .type = mapping},
    KeyRule{.key = "wandb", .type = mapping},
    KeyRule{.key = "csv_monitor", .type = mapping},
    KeyRule{.key = "comet", .type = mapping},
    KeyRule{.key = "comms_logger", .type = mapping},
    KeyRule{.key = "elasticity", .type = mapping},
    KeyRule{.key = "compile", .type = mapping},
    KeyRule{.key = "tensor_parallel", .type = mapping},
    KeyRule{.key = "expert_parallel", .type = mapping},
    KeyRule{.key = "hybrid_engine", .type = mapping},
    KeyRule{.key = "pipeline", .type = mapping},
    KeyRule{.key = "autotuning", .type = mapping},
    KeyRule{.key = "compression_training", .type = mapping},
    KeyRule{.key = "data_efficiency", .type = mapping},
    KeyRule{.key = "curriculum_learning", .type = mapping},
    KeyRule{.key = "progressive_layer_drop", .type = mapping},
    KeyRule{.key = "eigenvalue", .type = mapping},
    KeyRule{.key = "quantize_training", .type = mapping},
    KeyRule{.key = "sparse_attention", .type = mapping},
    KeyRule{.key = "weight_quantization", .type = mapping},
    KeyRule{.key = "nebula", .type = mapping},
    KeyRule{.key = "datastates_ckpt", .type = mapping},
    KeyRule{.key = "graph_harvesting", .type = boolean},
};

}  // namespace

std::span<const KeyRule> top_level_keys() {
  return keys;
}

}  // namespace underkeel::doctor
