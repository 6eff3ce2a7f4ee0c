// One entry a piece of advice on the run around a config: allocator, activations, batch, lengths, and the pipeline of a
// disk. The figures: advice_run_figures.cpp; the words: wording_advice_run.cpp.

#include <array>

#include "doctor/advice_rules.h"

namespace underkeel::doctor {
namespace {

constexpr std::array run_rules = {
    AdviceRule{.id = "advice-expandable-segments",
               .words = "expandable_segments|expandable segments|可扩展段",
               .decided_by = "fragments",
               .is_action = true},
    AdviceRule{.id = "advice-max-split-size",
               .words = "max_split_size",
               .decided_by = "fragments",
               .is_action = true},
    AdviceRule{.id = "advice-allocator-setting",
               .words = "pytorch_cuda_alloc_conf|pytorch_alloc_conf|garbage_collection_threshold|"
                        "cudamallocasync & !expandable_segments|max_split_size",
               .decided_by = "fragments",
               .is_action = true},
    AdviceRule{.id = "advice-empty-cache-steps",
               .truth = Truth::is_half,
               .words = "empty_cache|清缓存|清空缓存|清显存|清理显存|清空显存|清理缓存 & "
                        "every|~each~|~step|periodic|regular|~after~|~loop|每|定期|之后|后",
               .is_action = true},
    AdviceRule{.id = "advice-lower-live",
               .words = "max_live_parameters|max_reuse_distance|prefetch_bucket & ~lower|~reduce~|"
                        "reducing|smaller|~decreas|~shrink|~halve|~small~|minimi|调小|减小|降低|"
                        "改小|调低",
               .decided_by = "live",
               .is_action = true},
    AdviceRule{
        .id = "advice-recompute",
        .words = "gradient checkpointing|gradient_checkpointing|gradient-checkpointing|activation "
                 "checkpointing|activation-checkpointing|recompute|recomputation|grad "
                 "checkpointing|gradient checkpoint|梯度检查点|激活检查点|重计算 & !more "
                 "than|saves more|~before~|~room~|beats|更省|之前|halve|half|一半|%",
        .decided_by = "recompute",
        .is_action = true},
    AdviceRule{
        .id = "advice-recompute-share",
        .words = "gradient checkpointing|gradient_checkpointing|gradient-checkpointing|activation "
                 "checkpointing|recomputation|梯度检查点|激活检查点|重计算 & "
                 "halve|halving|half|~%|%|一半|减半 & !offload|卸载",
        .decided_by = "share",
        .number = Quantity::percent},
    AdviceRule{
        .id = "advice-batch-of-one",
        .words =
            "batch size|batch_size|batchsize|batch-size|micro-batch|micro batch|micro_batch|"
            "minibatch|mini-batch|~batch~|~bs~|批大小|批量大小|批次大小|批量|微批|batch改|batch调|"
            "batch设|batch 改|batch 调 & ~to 1|~to 2|~to 4|~to one|= |=|: |~1~|~2~|~3~|~4~|~6~|"
            "~8~|~16~|~32~|~64~|~of~|~one~|~two~|smaller|~lower|~reduc|~decreas|~halv|~cut|~drop|"
            "~small~|~down|~too large~|~too "
            "big~|~shrink|调小|改小|减小|降低|减少|调低|设为|设成|改成|改为|降到|调到|小一点|"
            "小点|太大|调成 & !padding|~boundary|no offload|eval_batch|eval batch|~evaluation|"
            "eval_batch_size|评估|验证|train_batch_size is not|padded|gradient_accumulation_steps "
            "does|different data",
        .decided_by = "batch",
        .is_action = true,
        .number = Quantity::batch},
    AdviceRule{.id = "advice-batch-of-one",
               .words = "per_device_train_batch_size|train_micro_batch_size_per_gpu",
               .decided_by = "batch",
               .is_action = true,
               .number = Quantity::batch},
    AdviceRule{
        .id = "advice-lower-cutoff",
        .words = "cutoff_len|cutoff length|cutoff len|~cutoff~|cut-off|max_seq_len|max_length|max "
                 "length|max_len~|max_seq_length|max seq|maximum length|maximum sequence|sequence "
                 "length|seq length|seq_len|seqlen|context length|context "
                 "window|model_max_length|max_source_length|max_input_length|block_size|shorter "
                 "sequences|shorter inputs|shorter "
                 "samples|序列|截断|最大长度|文本长度|上下文长度|长度 & "
                 "~lower|~reduc|smaller|~shorter|~shorten|~decreas|~cut~|~cutting~|~halve|~halving|"
                 "~half~|~limit|~truncat|~set~|~to~|=|: "
                 "|~512~|~1024~|~2048~|~256~|~128~|~4096~|调小|改小|减小|降低|缩短|减少|调低|设为|"
                 "设成|改成|改为|降到|调到|短一点|短点|截断到|调成 & !padding|padded|~culprit",
        .decided_by = "cutoff",
        .is_action = true,
        .number = Quantity::tokens},
    AdviceRule{.id = "advice-group-by-length",
               .truth = Truth::is_half,
               .words = "group_by_length|group by length|length bucketing|length-grouped|bucket by "
                        "length|按长度分组",
               .is_action = true},
    AdviceRule{
        .id = "advice-flash-attention",
        .words = "flash attention|flash-attention|flash_attn|flash-attn|flashattention|flash attn|"
                 "flash_attention|~fa2~|~sdpa~|xformers|memory efficient attention|"
                 "memory-efficient attention|闪存注意力",
        .decided_by = "scores",
        .is_action = true},
    AdviceRule{.id = "advice-lora-fits",
               .words = "~lora~ & ~fits~|~fit~|放得下|放不下|装得下|装不下 & "
                        "!qlora|4bit|4-bit|lora_target|target modul|~full~|全参",
               .decided_by = "lora_run",
               .claims_fit = true,
               .amount_of = "lora_run"},
    AdviceRule{.id = "advice-lora-instead",
               .words = "~rank~|lora_rank|秩|~r =|~r= & ~lora~|lora_rank|lora秩|lora的 & "
                        "~use|~using|~train|~switch|~try|~tune|~fine|~go~|用|换|训练|微调|试|上 & "
                        "!qlora|lora_target|target modul|target_modul|10 gb|10gb|4bit|4-bit|"
                        "load_in|~lower|~reduc|~decreas|~smaller|~increas|~rais|~higher|降|减|调|"
                        "改成|改为|设",
               .decided_by = "lora",
               .is_action = true,
               .number = Quantity::rank,
               .on_lora_run = "advice-lora-rank"},
    AdviceRule{.id = "advice-lora-instead",
               .words =
                   "~lora~ & !qlora|~rank~|lora_rank|lora_target|target modul|target_modul|~r =|"
                   "~r=|10 gb|10gb|秩|4bit|4-bit|load_in",
               .decided_by = "lora",
               .is_action = true,
               .unless = "advice-lora-fits"},
    AdviceRule{.id = "advice-stage-3-offload",
               .words =
                   "z3 & offload|卸载 & ~use~|~try~|~switch|~enable|~go~|~with~|+|~need|用|开|"
                   "换|试|加|改 & !without|no offload|~pure~|faster|slower|more memory|one gpu|"
                   "single|~stay|~fails|单卡|更快|更慢|slower|比z|比 z|不卸载",
               .decided_by = "stage3_offloaded",
               .is_action = true},
    AdviceRule{.id = "advice-offload-pipeline",
               .words = "pipeline_read|pipeline_write|offload_optimizer.pipeline|"
                        "offload_optimizer & pipeline",
               .key = "zero_optimization.offload_optimizer.pipeline_read",
               .value = "true",
               .decided_by = "pipeline",
               .is_action = true},
    AdviceRule{.id = "advice-offload-pipeline",
               .key = "zero_optimization.offload_optimizer.pipeline_write",
               .value = "true",
               .decided_by = "pipeline",
               .is_action = true},
    AdviceRule{.id = "advice-fast-init",
               .words = "~fast_init~",
               .key = "zero_optimization.offload_optimizer.fast_init",
               .value = "true",
               .decided_by = "fast_init",
               .is_action = true},
};

}  // namespace

std::span<const AdviceRule> run_advice() {
  return run_rules;
}

}  // namespace underkeel::doctor
