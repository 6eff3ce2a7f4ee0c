// One entry a piece of advice on the run around a config: allocator, activations, batch, lengths, optimizer, method, and
// the pipeline of a disk. The figures: advice_run_figures.cpp; the words: wording_advice_run.cpp.

#include <array>

#include "doctor/advice_rules.h"

namespace underkeel::doctor {
namespace {

constexpr std::array run_rules = {
    AdviceRule{.id = "advice-expandable-segments",
               .words = "expandable_segments|expandable segments",
               .decided_by = "fragments"},
    AdviceRule{.id = "advice-max-split-size", .words = "max_split_size", .decided_by = "fragments"},
    AdviceRule{.id = "advice-empty-cache-steps",
               .truth = Truth::is_half,
               .words = "empty_cache & every|each|step|periodic|regular|after|loop"},
    AdviceRule{.id = "advice-lower-live",
               .words = "max_live_parameters|max_reuse_distance|prefetch_bucket & lower|~reduce~|"
                        "reducing|smaller|decrease|shrink|halve|small|minimi",
               .decided_by = "live"},
    AdviceRule{.id = "advice-recompute",
               .words = "gradient checkpointing|gradient_checkpointing|activation checkpointing|"
                        "recompute|recomputation & enable|turn on|switch on|~use~|using|~try~|"
                        "~set~|true|activate~|disable_gradient_checkpointing: false & !more than|"
                        "saves more|before|room|disable_gradient_checkpointing: true|~disable~|"
                        "turn off|switch off|do not use|don't use",
               .decided_by = "recompute"},
    AdviceRule{.id = "advice-batch-of-one",
               .words = "batch & to 1~|= 1~|=1~|: 1~|size 1~|of 1~|of one|to one|size one|smaller|"
                        "lower|~reduce~|decrease|accumulat & !padding|boundary|no offload",
               .decided_by = "batch_of_one"},
    AdviceRule{.id = "advice-lower-cutoff",
               .words =
                   "cutoff_len|cutoff length|cut-off|max_seq_len|max_length|sequence length|"
                   "context length|shorter sequences & lower|~reduce~|reducing|smaller|"
                   "shorter|shorten|decrease|~cut~|halve|~512~|~1024~|~2048~ & !padding|padded",
               .decided_by = "cutoff"},
    AdviceRule{.id = "advice-flash-attention",
               .words = "flash attention|flash-attention|flash_attn|flashattention|"
                        "flash_attention|~fa2~|sdpa",
               .decided_by = "scores"},
    AdviceRule{.id = "advice-8-bit-adam",
               .words = "8-bit adam|8bit adam|adamw_8bit|adamw_bnb_8bit|adam8bit|adamw8bit|"
                        "8-bit optimizer|8bit optimizer|adam 8-bit|adam 8bit|paged_adamw|"
                        "paged adam|paged optimizer|paged 8-bit|paged 8bit",
               .decided_by = "adam_8bit"},
    AdviceRule{.id = "advice-lora-instead",
               .words = "lora & instead|rather than|switch|~use~|~try~|go with|change to & !10 gb|"
                        "10gb",
               .decided_by = "lora"},
    AdviceRule{.id = "advice-stage-3-offload",
               .words = "z3 & offload & ~use~|~try~|switch|enable|~go~|with|+|need & !without|no "
                        "offload|pure|faster|slower|more memory|one gpu|single|stay|fails",
               .decided_by = "stage3_offloaded"},
    AdviceRule{.id = "advice-offload-pipeline",
               .words = "pipeline_read|pipeline_write|offload_optimizer.pipeline|"
                        "offload_optimizer & pipeline",
               .key = "zero_optimization.offload_optimizer.pipeline_read",
               .value = "true",
               .decided_by = "pipeline"},
    AdviceRule{.id = "advice-offload-pipeline",
               .key = "zero_optimization.offload_optimizer.pipeline_write",
               .value = "true",
               .decided_by = "pipeline"},
    AdviceRule{.id = "advice-fast-init",
               .words = "~fast_init~",
               .key = "zero_optimization.offload_optimizer.fast_init",
               .value = "true",
               .decided_by = "fast_init"},
};

}  // namespace

std::span<const AdviceRule> run_advice() {
  return run_rules;
}

}  // namespace underkeel::doctor
