// What answers to advice on the run around a config say: slots are figures of advice_run_figures.cpp.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array run_wording_table = {
    Wording{
        "advice-lora-fits",
        {"{truth}: LoRA of rank {lora_rank} on all layers needs {lora_run_low} to {lora_run_high} "
         "of each GPU with the activations, on {ranks} ranks at stage {stage_now}; {card} are "
         "there",
         "{truth}：秩 {lora_rank} 的全层 LoRA 连同激活占每张 GPU {lora_run_low} 到 "
         "{lora_run_high}（{ranks} 个 rank，stage {stage_now}）；现有 {card}"},
        {}},
    Wording{"advice-not-recognised",
            {"no piece of advice in this text is one that doctor knows: of {sentences} sentences "
             "none was "
             "judged, the first is `{first}`",
             "这段文字里没有 doctor 认得的建议：{sentences} 句话都没有评判，第一句是 `{first}`"},
            {"doctor answers advice that names a key or a setting: stages, offload, buckets, "
             "pin_memory, recomputation, batch, cutoff_len, the allocator, the optimizer, LoRA",
             "doctor 能评判提到键或设置的建议：stage、卸载、桶、pin_memory、重计算、批大小、"
             "cutoff_len、分配器、优化器、LoRA"}},
    Wording{"advice-passed-over",
            {"passed over, for want of advice that doctor knows: {count} of {sentences} sentences; "
             "the first is "
             "`{first}`",
             "因没有 doctor 认得的建议而略过：{sentences} 句话中的 {count} 句；第一句是 `{first}`"},
            {}},
    Wording{"advice-expandable-segments",
            {"{truth}: expandable_segments cures fragmentation alone, which is what torch reserves "
             "beyond what is allocated: {fragments} {fragments_source}; the {allocated} that are "
             "allocated stay, of {fragments_card}",
             "{truth}：expandable_segments 只能治碎片，即 torch "
             "保留而未分配的部分：{fragments_source}为 {fragments}；已分配的 {allocated} "
             "不会减少，显存共 {fragments_card}"},
            {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment that starts the "
             "program",
             "在启动程序的环境里设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}},
    Wording{"advice-max-split-size",
            {"{truth}: max_split_size_mb keeps large blocks from being cut, which cures "
             "fragmentation alone: {fragments} {fragments_source}; the {allocated} that are "
             "allocated stay, of {fragments_card}",
             "{truth}：max_split_size_mb 不让大块被切开，只能治碎片：{fragments_source}为 "
             "{fragments}；已分配的 {allocated} 不会减少，显存共 {fragments_card}"},
            {"expandable_segments:True does it without a size to guess",
             "expandable_segments:True 不用猜大小就能做到"}},
    Wording{"advice-empty-cache-steps",
            {"{truth}: emptying the cache gives back what is reserved and not allocated, "
             "{fragments} {fragments_source}, which torch does by itself before it reports a lack; "
             "the {allocated} that are allocated stay, and each time costs a pause",
             "{truth}：清缓存归还的是保留而未分配的部分，{fragments_source}为 "
             "{fragments}，torch 在报告不足之前自己就会这样做；已分配的 {allocated} "
             "不会减少，每次还要停顿"},
            {}},
    Wording{"advice-lower-live",
            {"{truth}: stage3_max_live_parameters, stage3_max_reuse_distance and "
             "stage3_prefetch_bucket_size bound what stage 3 holds gathered: at stage {stage_now} "
             "on {ranks} ranks {live_now} as it is and {live_least} with all of them at 0, which "
             "costs gathers",
             "{truth}：stage3_max_live_parameters、stage3_max_reuse_distance 和 "
             "stage3_prefetch_bucket_size 限制 stage 3 同时收集的参数：stage "
             "{stage_now}、rank 数 {ranks} 时，现在为 {live_now}，全部设为 0 时为 "
             "{live_least}，代价是更多的收集"},
            {}},
    Wording{"advice-recompute",
            {"{truth}: with micro-batch {micro} and {tokens} tokens activations take at least "
             "{activations_kept} without recomputation and {activations_recomputed} with it; here "
             "it is {recompute_now}, and LLaMA-Factory has it on unless "
             "disable_gradient_checkpointing is true",
             "{truth}：微批 {micro}、{tokens} 个 token 时，激活不重计算至少占 "
             "{activations_kept}，重计算则为 {activations_recomputed}；此处{recompute_now}，"
             "LLaMA-Factory 默认开启，除非 disable_gradient_checkpointing 为 true"},
            {}},
    Wording{
        "advice-recompute-share",
        {"{truth}: with micro-batch {micro} and {tokens} tokens a GPU needs at least {needed_kept} "
         "without "
         "recomputation and {needed_recomputed} with it, which spares {share_saved} of it where "
         "{share_said} "
         "were said; weights and optimizer state stay",
         "{truth}：微批 {micro}、{tokens} 个 token 时，不重计算 GPU 至少需要 "
         "{needed_kept}，重计算需要 "
         "{needed_recomputed}：减少 {share_saved}，而说的是 {share_said}；权重和优化器状态不变"},
        {}},
    Wording{"advice-batch-of-one",
            {"{truth}: activations take at least {activations} with micro-batch {micro} and "
             "{activations_of_batch} with {batch_said}; gradient_accumulation_steps {rounds} then "
             "makes "
             "{samples_then} a rank and update, {samples_now} as it is; weights and optimizer "
             "state do not "
             "change",
             "{truth}：微批 {micro} 时激活至少占 {activations}，微批 {batch_said} 时为 "
             "{activations_of_batch}；那时 gradient_accumulation_steps 设为 {rounds}，每个 rank "
             "每次更新为 "
             "{samples_then} 条，现在为 {samples_now} 条；权重和优化器状态不变"},
            {}},
    Wording{"advice-lower-cutoff",
            {"{truth}: activations take at least {activations} at {tokens} tokens and "
             "{activations_of_length} at {tokens_said}; weights and optimizer state do not shrink, "
             "and what is cut off is not trained",
             "{truth}：{tokens} 个 token 时激活至少占 {activations}，{tokens_said} 个时为 "
             "{activations_of_length}；权重和优化器状态不会变小，被截掉的部分也不参与训练"},
            {}},
    Wording{
        "advice-group-by-length",
        {"{truth}: grouping spares padding on the way, but the longest samples still meet: "
         "activations "
         "of micro-batch {micro} and {tokens} tokens take at least {activations}, and the run must "
         "hold them once",
         "{truth}：按长度分组可减少平时的填充，但最长的样本仍会凑在一起：微批 {micro}、{tokens} 个 "
         "token "
         "的激活至少占 {activations}，训练中总要放下一次"},
        {}},
    Wording{
        "advice-allocator-setting",
        {"{truth}: settings of torch's allocator cure fragmentation alone, which is what torch "
         "reserves "
         "beyond what is allocated: {fragments} {fragments_source}; the {allocated} that are "
         "allocated stay, of {fragments_card}. The variable without a value changes nothing",
         "{truth}：torch 分配器的设置只能治碎片，即 torch 保留而未分配的部分：{fragments_source}为 "
         "{fragments}；已分配的 {allocated} 不会减少，显存共 "
         "{fragments_card}。只写变量名而没有值则没有变化"},
        {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment that starts the "
         "program",
         "在启动程序的环境里设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}},
    Wording{"advice-flash-attention",
            {"{truth}: flash attention spares the matrices of scores, {scores} for micro-batch "
             "{micro} and {tokens} tokens in {score_layers} layers; sdpa, the "
             "default of transformers, holds none of them either, so it helps against eager "
             "attention alone (flash_attn: disabled)",
             "{truth}：flash attention 省去注意力分数矩阵：微批 {micro}、{tokens} 个 token、"
             "{score_layers} 层时为 {scores}；transformers 默认的 sdpa "
             "也不保存它们，所以只有相对 eager（flash_attn: disabled）才有帮助"},
            {}},
    Wording{"advice-lora-instead",
            {"{truth}: weights, gradients, optimizer state and buffers take {state_now} of each "
             "GPU here ({method_now}); LoRA of rank {lora_rank} on all layers takes {state_lora}, "
             "on a 4-bit base {state_qlora}; activations stay much the same",
             "{truth}：权重、梯度、优化器状态和缓冲在此占每张 GPU "
             "{state_now}（{method_now}）；在所有层上用秩为 {lora_rank} 的 LoRA 占 "
             "{state_lora}，4 位基座上占 {state_qlora}；激活大致不变"},
            {}},
    Wording{"advice-stage-3-offload",
            {"{truth}: stage 3 with parameters and optimizer on the host needs {offloaded_low} to "
             "{offloaded_high} of each GPU with the activations, {card} are there; a node needs at "
             "least {offloaded_host} of host memory (available: {host_limit})",
             "{truth}：stage 3 且参数和优化器都放在主机时，连同激活每张 GPU 需要 {offloaded_low} "
             "到 {offloaded_high}，现有 {card}；每个节点至少需要 {offloaded_host} "
             "主机内存（可用：{host_limit}）"},
            {}},
    Wording{"advice-offload-pipeline",
            {"{truth}: pipeline_read and pipeline_write let the disk read the next sub-group and "
             "write the last one while the CPU updates another: for speed, with device nvme and "
             "more than one sub-group alone (here: optimizer {optimizer_on}, sub-groups of a rank: "
             "{sub_groups}). Each sub-group in flight holds 4 buffers of {disk_buffer}",
             "{truth}：pipeline_read 和 pipeline_write 让磁盘在 CPU "
             "更新一个子组时读下一个、写上一个：只影响速度，且只在 device 为 nvme "
             "并有多个子组时有用（此处：优化器{optimizer_on}，每个 rank 的子组数：{sub_groups}"
             "）。每个在途的子组占 4 个 {disk_buffer} 的缓冲"},
            {"with device nvme: buffer_count 8 for one of the two ({disk_buffers_of_two} "
             "page-locked a rank), 12 for "
             "both ({disk_buffers_of_three}); with the default of 4 the second update runs out of "
             "swap buffers",
             "device 为 nvme 时：只开一个则 buffer_count 设为 8（每个 rank 锁页 "
             "{disk_buffers_of_two}），都开则设为 "
             "12（{disk_buffers_of_three}）；默认的 4 会使第二次更新缺少交换缓冲"}},
    Wording{"advice-fast-init",
            {"{truth}: fast_init makes the fp32 weights on the disk from the 16-bit ones there, "
             "piece by piece, when a run starts: it spares time, takes no memory off a step, and "
             "does something only where optimizer and parameters are both on NVMe (here: optimizer "
             "{optimizer_on}, parameters {parameters_on})",
             "{truth}：fast_init 在训练启动时逐块地由磁盘上的 16 位权重生成 fp32 "
             "权重：它省时间，不减少训练步的内存，而且只有优化器和参数都在 NVMe "
             "上时才起作用（此处：优化器{optimizer_on}，参数{parameters_on}）"},
            {}},
};

constexpr std::array run_phrase_table = {
    Phrase{"fragments.log", {"in the log", "日志中"}},
    Phrase{"fragments.forecast", {"at most here", "在此最多"}},
    Phrase{"recompute.on", {"on already", "已经开启"}},
    Phrase{"recompute.off", {"off", "没有开启"}},
    Phrase{"method.full", {"all weights are trained", "训练全部权重"}},
    Phrase{"method.lora", {"it is LoRA already", "已经是 LoRA"}},
    Phrase{"method.qlora", {"it is LoRA on a quantised base already", "已经是量化基座上的 LoRA"}},
    Phrase{"place-of.none", {"on the GPU", "在 GPU 上"}},
    Phrase{"place-of.cpu", {"in host memory", "在主机内存"}},
    Phrase{"place-of.nvme", {"on NVMe", "在 NVMe 上"}},
};

}  // namespace

std::span<const Wording> run_advice_wordings() {
  return run_wording_table;
}

std::span<const Phrase> run_advice_phrases() {
  return run_phrase_table;
}

}  // namespace underkeel::doctor
