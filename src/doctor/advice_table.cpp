// One entry a piece of advice on a config, its stages and offload. The figures and words of the answers: wording_advice.cpp.
// Not here: advice on the run around it (advice_table_run.cpp).

#include <array>

#include "doctor/advice_rules.h"

namespace underkeel::doctor {
namespace {

using enum Truth;

constexpr std::array rules = {
    // Keys and calls.
    AdviceRule{.id = "advice-gather-needed-for-checkpoint",
               .truth = is_true,
               .words = "gather_16bit_weights_on_model_save & default|默认 & ~false~|~off~|关 & "
                        "!must|required|incomplete|必须|不完整"},
    AdviceRule{
        .id = "advice-gather-needed-for-checkpoint",
        .truth = is_false,
        .words =
            "gather_16bit_weights_on_model_save & must be|required|incomplete|~complete~|default "
            "true|defaults to true|default is true|need to be|needs to be|be true|必须|"
            "完整|默认"},
    AdviceRule{.id = "advice-gather-cures-first-step",
               .truth = is_false,
               .words =
                   "gather_16bit_weights_on_model_save & off|false|disable|turn|set|关|设 & first "
                   "step|oom|out of memory|cure|第一步|爆显存|显存"},
    AdviceRule{.id = "advice-persistence-threshold",
               .truth = is_half,
               .words = "param_persistence_threshold & 1e5|auto|1e9|100000",
               .key = "zero_optimization.stage3_param_persistence_threshold"},
    AdviceRule{.id = "advice-explicit-bucket",
               .truth = is_false,
               .words = "reduce_bucket_size & explicit|safer|5e8|500000000 & auto|safer",
               .key = "zero_optimization.reduce_bucket_size",
               .value = "500000000",
               .scale = Scale::merit,
               .sides = "5e8/500000000/explicit|auto"},
    AdviceRule{
        .id = "advice-buckets-too-large",
        .truth = is_half,
        .words = "reduce_bucket_size|prefetch_bucket_size & default|默认 & large|big|huge|大"},
    AdviceRule{.id = "advice-smaller-bucket-no-overlap",
               .truth = is_half,
               .words = "reduce_bucket_size & small|lower|~reduce~|小|低 & overlap_comm & "
                        "off|false|disable|关"},
    AdviceRule{.id = "advice-smaller-bucket-no-overlap",
               .truth = is_half,
               .words = "reduce_bucket_size|allgather_bucket_size & "
                        "small|lower|~reduce~|~decreas|~shrink|小|低 & "
                        "!overlap_comm|default|默认|max_live"},
    AdviceRule{.id = "advice-prefetch-is-default",
               .truth = is_half,
               .words = "prefetch_bucket_size & 5e7|50000000",
               .key = "zero_optimization.stage3_prefetch_bucket_size",
               .value = "50000000"},
    AdviceRule{.id = "advice-live-is-default",
               .truth = is_half,
               .words = "max_live_parameters|max_reuse_distance & 1e9|1000000000",
               .key = "zero_optimization.stage3_max_live_parameters",
               .value = "1000000000"},
    AdviceRule{.id = "advice-sub-group-is-default",
               .truth = is_half,
               .words = "sub_group_size & 1e9|1000000000",
               .key = "zero_optimization.sub_group_size",
               .value = "1000000000"},
    AdviceRule{.id = "advice-overlap-is-default",
               .truth = is_half,
               .words = "overlap_comm & !smaller|lower|reduce_bucket_size",
               .key = "zero_optimization.overlap_comm",
               .value = "true",
               .is_action = true},
    AdviceRule{.id = "advice-reduce-scatter-is-default",
               .truth = is_half,
               .words = "reduce_scatter",
               .key = "zero_optimization.reduce_scatter",
               .value = "true",
               .is_action = true},
    AdviceRule{.id = "advice-no-such-key-opt-offload",
               .truth = is_false,
               .words = "zero_force_opt_offload",
               .key = "zero_force_opt_offload"},
    AdviceRule{.id = "advice-no-such-key-cpu-offload",
               .truth = is_false,
               .words = "zero_force_ds_cpu_offload",
               .key = "zero_force_ds_cpu_offload"},
    AdviceRule{.id = "advice-force-cpu-optimizer",
               .truth = is_false,
               .words = "zero_force_ds_cpu_optimizer",
               .key = "zero_force_ds_cpu_optimizer",
               .value = "false"},
    AdviceRule{.id = "advice-no-such-key-leaf-modules",
               .truth = is_false,
               .words = "zero_3_leaf_modules",
               .key = "zero_3_leaf_modules"},
    AdviceRule{.id = "advice-no-such-key-offload-optimizer",
               .truth = is_false,
               .words = "zero_offload_optimizer",
               .key = "zero_offload_optimizer"},
    AdviceRule{.id = "advice-use-pin-memory-dead",
               .truth = is_false,
               .words = "cpu_offload_use_pin_memory",
               .key = "zero_optimization.cpu_offload_use_pin_memory"},
    AdviceRule{.id = "advice-cpu-offload-pin",
               .truth = is_half,
               .words = "cpu_offload & pin_memory & !use_pin_memory"},
    AdviceRule{.id = "advice-pin-memory-stage-2",
               .truth = is_half,
               .words = "offload_optimizer & pin_memory",
               .key = "zero_optimization.offload_optimizer.pin_memory",
               .value = "true"},
    AdviceRule{.id = "advice-aio",
               .truth = is_false,
               .words = "aio & enabled|thread_count",
               .key = "aio.enabled"},
    AdviceRule{.id = "advice-aio", .truth = is_false, .key = "aio.thread_count"},
    AdviceRule{.id = "advice-save-async", .truth = is_false, .words = "save_async"},
    AdviceRule{
        .id = "advice-activation-checkpointing",
        .truth = is_false,
        .words = "activation_checkpointing|partition_activations|contiguous_memory_optimization",
        .key = "activation_checkpointing"},
    AdviceRule{
        .id = "advice-comments", .truth = is_half, .words = "// & comment|注释 & json|config|配置"},
    AdviceRule{
        .id = "advice-trainer-py", .truth = is_false, .words = "llamafactory/train/trainer.py"},
    AdviceRule{.id = "advice-two-saves",
               .truth = is_half,
               .words = "save_model & save_checkpoint & same|both|or"},
    AdviceRule{.id = "advice-zero-init",
               .truth = is_false,
               .words = "zero.init & yourself|~by hand~|manually|~explicitly|自己|手动|手工|显式 & "
                        "have to|~has to|~must|~need|~required|~call|必须|需要|一定要|只能|调用"},
    AdviceRule{.id = "advice-zero-init", .truth = is_true, .words = "zero.init"},
    AdviceRule{.id = "advice-device-map", .truth = is_false, .words = "device_map"},
    AdviceRule{.id = "advice-low-cpu-mem", .truth = is_half, .words = "low_cpu_mem_usage"},
    AdviceRule{.id = "advice-zero-init-argument",
               .truth = is_false,
               .words = "zero_init & from_pretrained"},
    AdviceRule{.id = "advice-tie-weights",
               .truth = is_false,
               .words = "tie_weights",
               .key = "tie_weights"},
    AdviceRule{.id = "advice-empty-cache-diagnosis",
               .truth = is_half,
               .words = "memory_summary|清理显存|清空显存|清缓存|清空缓存|清显存|清理缓存|empty_"
                        "cache|gc.collect"},
    // Statements.
    AdviceRule{.id = "advice-broadcast-forward",
               .truth = is_false,
               .words = "forward|前向 & own|拥有|所有者 & broadcast|广播"},
    AdviceRule{
        .id = "advice-gradients-to-owner",
        .truth = is_half,
        .words = "gradient|梯度 & aggregat|reduc|sent|collect|聚合|汇总|归约 & owner|所有者|拥有"},
    AdviceRule{.id = "advice-checkpoint-collects",
               .truth = is_false,
               .words =
                   "save_checkpoint & collect|gather|full parameters|收集|聚合|完整参数 & rank "
                   "0|rank0|main process|主进程"},
    AdviceRule{.id = "advice-model-save-collects",
               .truth = is_half,
               .words = "save_model|save_16bit_model & collect|gather|full|收集|完整 & "
                        "cpu|host|主机|内存 & rank 0|rank0"},
    AdviceRule{
        .id = "advice-checkpointing-room-for-save",
        .truth = is_half,
        .words =
            "gradient checkpointing|activation checkpointing|recompute & room|space|memory & the "
            "save|a save|at save|each save|every save|while saving|during saving"},
    AdviceRule{.id = "advice-nvidia-smi",
               .truth = is_half,
               .words = "nvidia-smi|memory_allocated|memory_reserved"},
    AdviceRule{.id = "advice-optimizer-collected-at-save",
               .truth = is_false,
               .words = "optimizer state|optimizer states|优化器状态 & save|保存 & "
                        "collect|gather|redistribut|收集|重新分配"},
    AdviceRule{
        .id = "advice-parameter-cache",
        .truth = is_false,
        .words = "parameter cache|cached parameters|参数缓存 & invalid|clear|save|失效|保存"},
    AdviceRule{.id = "advice-outside-zero-init",
               .truth = is_true,
               .words = "outside & zero.init & whole|full|each|every"},
    AdviceRule{.id = "advice-save-at-boundary",
               .truth = is_half,
               .words = "save|保存 & accumulation|累积 & boundary|边界"},
    AdviceRule{.id = "advice-metrics-no-grad",
               .truth = is_true,
               .words = "no_grad & metric|evaluat|forward|指标|评估|前向"},
    AdviceRule{.id = "advice-clear-cache-after-save",
               .truth = is_half,
               .words = "clear|empty|清 & cache|缓存 & after|后 & save|saving|checkpoint|保存"},
    AdviceRule{.id = "advice-stage-2-no-gathers",
               .truth = is_half,
               .words = "z2 & avoid|~no~|避免|不用 & gather|收集 & save|保存"},
    AdviceRule{.id = "advice-weights-on-gpu",
               .truth = is_false,
               .words = "from_pretrained & gpu|cuda|显卡 & default|directly|默认|直接"},
    AdviceRule{.id = "advice-meta-device",
               .truth = is_half,
               .words = "meta device|meta-device|device=meta|init_empty_weights"},
    AdviceRule{
        .id = "advice-fp32-weights",
        .truth = is_false,
        .words = "fp32|float32|32-bit|32 bit & weights|parameters|权重|参数 & 14 gb|14gb|14 g|14g"},
    AdviceRule{.id = "advice-pin-off",
               .truth = is_true,
               .words =
                   "pin_memory|pin memory|~pinned|~pinning|锁页 & ~off~|false|~disabl|关|禁用 & "
                   "~host~|~ram~|cpu memory|system memory|主机|cpu内存|cpu 内存|内存占用 & "
                   "~lower|~reduc|~sav|~less~|~spare|~cut|降低|减少|省|节省|少占 & "
                   "!~gpu|~vram|~oom|out of memory|显存|ulimit|pcie"},
    AdviceRule{.id = "advice-pin-off",
               .truth = is_false,
               .words = "pin_memory|pin memory|pinned|pinning|锁页 & off|~turn|false|disable|turn "
                        "off|drags|pcie|"
                        "关|关闭|关掉|禁用 & !ulimit"},
    AdviceRule{.id = "advice-pin-on-saves",
               .truth = is_false,
               .words = "pin_memory|pinned|pinning|锁页 & ~on~|true|enable|开 & "
                        "fragment|release|saves|sooner|碎片|释放|省"},
    AdviceRule{.id = "advice-swap",
               .truth = is_false,
               .words = "~swap|交换分区|交换空间 & offload|host|~ram|space|卸载|内存 & "
                        "large|need|add|increase|big|大|需要|加"},
    AdviceRule{.id = "advice-drop-optimizer-offload",
               .truth = is_false,
               .words = "offload|卸载 & bandwidth|cpu is slow|slow cpu|带宽 & "
                        "disable|remove|turn off|drop|关|去掉 & optimizer|优化器",
               .decided_by = "parameters_only"},
    AdviceRule{.id = "advice-drop-optimizer-offload",
               .truth = is_false,
               .words = "offload|卸载 & disable|~disabling|remove|turn off|turning off|~drop|关|"
                        "去掉|禁用|取消|停用 & optimizer|优化器 & param|参数 & ~keep|~only~|~just~|"
                        "~alone|保留|只|仅",
               .decided_by = "parameters_only"},
    AdviceRule{.id = "advice-drop-optimizer-offload",
               .truth = is_false,
               .words = "offload|卸载 & not the optimizer|not optimizer|not offload_optimizer|"
                        "without the optimizer|而不是优化器|而非优化器|不卸载优化器|不要卸载优化器|"
                        "别卸载优化器 & param|参数",
               .decided_by = "parameters_only"},
    AdviceRule{
        .id = "advice-gradients-stay",
        .truth = is_false,
        .words =
            "~gradient~|~gradients~|梯度 & ~stay|~remain|~still~|留在|仍 & gpu|device|显卡|显存 & "
            "offload|卸载"},
    AdviceRule{.id = "advice-stage-3-uses-more",
               .truth = is_false,
               .words = "z3 & less memory|less gpu memory|less vram|uses less|needs less|needs "
                        "more|takes less|takes more|更省|更少|省显存|more memory|more gpu "
                        "memory|more vram|uses more|use more|uses much "
                        "more|更多显存|更占|"
                        "更费|更多内存 & z2",
               .decided_by = "stage3_larger",
               .scale = Scale::memory,
               .sides = "z3|z2"},
    AdviceRule{
        .id = "advice-stage-3-one-gpu",
        .truth = is_half,
        .words =
            "z3 & one gpu|single gpu|single card|one card|单卡|一张卡|单张 & pointless|useless|no "
            "use|communication|sense|没意义|没有意义|无意义|没用|没有用|通信"},
    AdviceRule{
        .id = "advice-stage-3-fits",
        .truth = is_false,
        .words =
            "z3 & without offload|no offload|~pure~|不卸载|不offload|不用offload|不 offload|不用 "
            "offload & ~fits~|~fit~|~enough~|~runs~|~run~|~works~|~oom|out of "
            "memory|爆|够|放|装|跑",
        .decided_by = "stage3_plain",
        .claims_fit = true,
        .amount_of = "stage3_plain"},
    AdviceRule{.id = "advice-stage-2-fits",
               .truth = is_false,
               .words =
                   "z2 & without offload|no offload|不卸载|不offload|不用offload|不 "
                   "offload|不用 offload & "
                   "~fits~|~fit~|~enough~|~runs~|~run~|~works~|~oom|out of memory|爆|够|放|装|跑",
               .decided_by = "stage2_plain",
               .claims_fit = true,
               .amount_of = "stage2_plain"},
    AdviceRule{.id = "advice-stage-2-offload-takes-60",
               .truth = is_false,
               .words = "z2 & offload|卸载 & ~60|~70 & gb|g",
               .decided_by = "stage2_offload_60"},
    AdviceRule{.id = "advice-stage-2-offload-enough",
               .truth = is_true,
               .words =
                   "z2 & offload|卸载 & enough|sufficient|suffices|is fine|works|够|足够|就行 & "
                   "!without|no offload|offload_param|parameter offload|参数卸载|不卸载|不offload|"
                   "不用offload|不 offload|不用 offload",
               .decided_by = "stage2_offloaded",
               .claims_fit = true,
               .amount_of = "stage2_offloaded"},
    AdviceRule{.id = "advice-checkpointing-beats-offload",
               .truth = is_half,
               .words = "activation checkpointing|gradient checkpointing|激活检查点|梯度检查点 & "
                        "~more~|更 & ~than~|比 & "
                        "offload|卸载"},
    AdviceRule{.id = "advice-checkpointing-before-deepspeed",
               .truth = is_false,
               .words =
                   "gradient_checkpointing|gradient checkpointing|梯度检查点 & ~before~|之前 & "
                   "deepspeed|offload"},
    AdviceRule{.id = "advice-mask-replicated",
               .truth = is_false,
               .words =
                   "attention mask|attention_mask|position ids|position_ids|注意力掩码|位置编码 & "
                   "replicat|copied|copy|each card|复制|每张卡"},
    AdviceRule{.id = "advice-old-transformers-buffers",
               .truth = is_half,
               .words = "older transformers|old transformers|transformers version & "
                        "pre-allocate|preallocate|gradient buffer"},
    AdviceRule{.id = "advice-model-half",
               .truth = is_true,
               .words = "model.half & remove|close|deepspeed cast|let deepspeed|do not|don't"},
    AdviceRule{.id = "advice-qlora",
               .truth = is_true,
               .words = "qlora|4-bit|4bit|4位 & ~10 gb|~10gb|~10 g|~10g|~fits~|~fit~|~7b~|放得下",
               .decided_by = "base_4bit",
               .amount_of = "qlora_run"},
    AdviceRule{.id = "advice-load-bf16",
               .truth = is_true,
               .words = "torch_dtype|load in bf16|bfloat16 & load|from_pretrained"},
    AdviceRule{
        .id = "advice-model-to-cuda",
        .truth = is_half,
        .words =
            "model.to('cuda')|model.to(\"cuda\")|model.cuda()|.to(device) & before|doubles|double"},
    AdviceRule{
        .id = "advice-load-on-cpu-first",
        .truth = is_half,
        .words =
            "~load|加载 & cpu first|to the cpu|on cpu|先到cpu|到 cpu|到cpu & initialize|deepspeed"},
    AdviceRule{
        .id = "advice-count-temporaries",
        .truth = is_half,
        .words = "~eval~|~evaluation~|评估 & checkpoint|检查点 & temporar|~peak|~count|临时|峰值"},
    AdviceRule{.id = "advice-padding",
               .truth = is_half,
               .words =
                   "padding|padded|sequence length|max_length|填充 & batch 1|batch size 1|batch "
                   "size is 1|culprit|元凶|罪魁|导致"},
    AdviceRule{.id = "advice-stage-2-faster",
               .truth = is_true,
               .words = "z2 & offload|卸载 & faster|slower|快|慢 & z3",
               .scale = Scale::speed,
               .sides = "z2|z3"},
    AdviceRule{.id = "advice-version-mismatch",
               .truth = is_half,
               .words =
                   "version|upgrad|~update|版本|升级 & "
                   "mismatch|incompatib|upgrad|~update|~latest|不匹配|不兼容|不一致|升级|最新 & "
                   "transformers|deepspeed|~torch~|pytorch|~cuda~|accelerate|bitsandbytes"},
    AdviceRule{.id = "advice-first-step",
               .truth = is_true,
               .words = "first step|~step 1~|第一步|第 1 步|第1步 & "
                        "explode|~oom|out of memory|crash|where it|爆|溢出|内存不足|显存不足"},
};

}  // namespace

std::span<const AdviceRule> config_advice() {
  return rules;
}

}  // namespace underkeel::doctor
