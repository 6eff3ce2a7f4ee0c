// What answers to popular advice say. `{truth}` is the verdict; other slots are figures of advice_rules.cpp.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{
        "advice-gather-needed-for-checkpoint",
        {"{truth}: stage3_gather_16bit_weights_on_model_save is false by default and concerns "
         "the export of whole weights ({weights_16} here); save_checkpoint's shards are complete "
         "without it",
         "{truth}：stage3_gather_16bit_weights_on_model_save 默认为 "
         "false，只关系到完整权重的导出（此处 {weights_16}）；没有它，save_checkpoint "
         "的分片也是完整的"},
        {}},
    Wording{"advice-gather-cures-first-step",
            {"{truth}: stage3_gather_16bit_weights_on_model_save is not used before a save, so it "
             "cannot cure the first step; on at a save it gathers {module} at a time on each card",
             "{truth}：stage3_gather_16bit_weights_on_model_save "
             "在保存之前不起作用，治不了第一步；保存时它每次在每张卡上收集 {module}"},
            {}},
    Wording{
        "advice-persistence-threshold",
        {"{truth}: stage3_param_persistence_threshold: \"auto\" is {threshold_auto} {model} and "
         "keeps "
         "{gathered_auto} gathered, 1e5 keeps {gathered_1e5}, 1e9 keeps {gathered_1e9}; 1e5 "
         "frees nothing against auto where both figures are equal, and 1e9 costs from the first "
         "steps on, not after a save",
         "{truth}：stage3_param_persistence_threshold：\"auto\" {model}为 "
         "{threshold_auto}，常驻 {gathered_auto}；1e5 常驻 "
         "{gathered_1e5}；1e9 常驻 {gathered_1e9}。前两者相等时 1e5 并不比 auto "
         "省；1e9 从最初几步就占用，而不是保存之后"},
        {}},
    Wording{"advice-explicit-bucket",
            {"{truth}: an explicit reduce_bucket_size of 5e8 is not safer than \"auto\": it takes "
             "{bucket_default} instead of {bucket_auto}",
             "{truth}：显式写 5e8 的 reduce_bucket_size 并不比 \"auto\" 稳妥：占 "
             "{bucket_default}，而不是 {bucket_auto}"},
            {"\"reduce_bucket_size\": \"auto\"", "\"reduce_bucket_size\": \"auto\""}},
    Wording{
        "advice-buckets-too-large",
        {"{truth}: the default reduce bucket is {bucket_default} ({bucket_auto} with \"auto\"), "
         "the default prefetch bucket {prefetch}; here the reduce bucket has {bucket_elements} "
         "elements ({bucket_source}), with its copies at most {bucket_share} of {card}",
         "{truth}：默认归约桶为 {bucket_default}（\"auto\" 时 {bucket_auto}），默认预取桶为 "
         "{prefetch}；此处归约桶为 {bucket_elements} 个元素（{bucket_source}），连同副本最多占 "
         "{card} 的 {bucket_share}"},
        {}},
    Wording{
        "advice-smaller-bucket-no-overlap",
        {"{truth}: with {bucket_elements} elements ({bucket_source}) a smaller bucket without "
         "overlap saves at most {bucket_saving_3} at stage 3 (bucket and copy) and "
         "{bucket_saving_12} at stages 1 and 2, on {ranks} ranks: {bucket_share} of {card}",
         "{truth}：桶为 {bucket_elements} 个元素（{bucket_source}）时，更小的桶且关闭 overlap，在 "
         "stage 3 最多省 {bucket_saving_3}（桶与副本），在 stage 1、2 最多省 "
         "{bucket_saving_12}，rank 数 {ranks}：为 {card} 的 {bucket_share}"},
        {}},
    Wording{"advice-prefetch-is-default",
            {"{truth}: 5e7 is the default of stage3_prefetch_bucket_size ({prefetch}): nothing "
             "changes",
             "{truth}：5e7 就是 stage3_prefetch_bucket_size "
             "的默认值（{prefetch}）：没有任何变化"},
            {}},
    Wording{
        "advice-live-is-default",
        {"{truth}: 1e9 is the default of stage3_max_live_parameters and "
         "stage3_max_reuse_distance, and the former bounds prefetching only; gathered parameters "
         "take up to {live} here",
         "{truth}：1e9 就是 stage3_max_live_parameters 和 "
         "stage3_max_reuse_distance 的默认值，且前者只限制预取；此处收集的参数最多占 {live}"},
        {}},
    Wording{"advice-sub-group-is-default",
            {"{truth}: 1e9 is the default of sub_group_size: nothing changes",
             "{truth}：1e9 就是 sub_group_size 的默认值：没有任何变化"},
            {}},
    Wording{
        "advice-overlap-is-default",
        {"{truth}: overlap_comm is true by default at stage 3: nothing changes there; at stages "
         "1 and 2 true costs a second bucket, {bucket} with {bucket_elements} elements "
         "({bucket_source})",
         "{truth}：overlap_comm 在 stage 3 默认就是 true：没有变化；在 stage "
         "1、2 设为 true 要多一个桶，{bucket_elements} 个元素（{bucket_source}）时为 {bucket}"},
        {}},
    Wording{
        "advice-reduce-scatter-is-default",
        {"{truth}: reduce_scatter is true by default: nothing changes; with {bucket_elements} "
         "elements ({bucket_source}) on {ranks} ranks false spares a copy of the bucket of at most "
         "{bucket_copy_12} at stages 1 and 2, {bucket_copy_3} at stage 3",
         "{truth}：reduce_scatter 默认就是 true：没有变化；桶为 {bucket_elements} "
         "个元素（{bucket_source}）、rank 数 {ranks} 时，设为 false 可省去桶的副本：在 stage 1、2 "
         "最多 "
         "{bucket_copy_12}，在 stage 3 最多 {bucket_copy_3}"},
        {}},
    Wording{"advice-no-such-key-opt-offload",
            {"{truth}: `zero_force_opt_offload` never existed: at the top level it is passed over "
             "without a word, in zero_optimization it stops the run with a ValidationError",
             "{truth}：`zero_force_opt_offload` 从未存在：放在顶层会被静默忽略，放在 "
             "zero_optimization 里会以 ValidationError 停止"},
            {"{offload_remedy}", "{offload_remedy}"}},
    Wording{
        "advice-no-such-key-cpu-offload",
        {"{truth}: `zero_force_ds_cpu_offload` never existed: at the top level it is passed over "
         "without a word, in zero_optimization it stops the run with a ValidationError",
         "{truth}：`zero_force_ds_cpu_offload` 从未存在：放在顶层会被静默忽略，放在 "
         "zero_optimization 里会以 ValidationError 停止"},
        {"{offload_remedy}", "{offload_remedy}"}},
    Wording{
        "advice-force-cpu-optimizer",
        {"{truth}: zero_force_ds_cpu_optimizer has no effect on memory and no GPU optimizer is "
         "involved: false merely lets an optimizer that is not DeepSpeed's run on the CPU; with "
         "an optimizer in the config it is irrelevant",
         "{truth}：zero_force_ds_cpu_optimizer 不影响内存，也没有涉及 GPU "
         "优化器：false 只是允许非 DeepSpeed 的优化器在 CPU 上运行；配置里有 optimizer "
         "时它无关紧要"},
        {"leave it out", "去掉它"}},
    Wording{"advice-no-such-key-leaf-modules",
            {"{truth}: `zero_3_leaf_modules` never existed (leaf_module, or set_z3_leaf_modules, "
             "does); leaf modules are for mixtures of experts, marking decoder layers only raises "
             "what is gathered at once",
             "{truth}：`zero_3_leaf_modules` 从未存在（有的是 leaf_module 或 "
             "set_z3_leaf_modules）；leaf 模块用于混合专家，标记解码层只会增大同时收集的量"},
            {"remove it", "删除它"}},
    Wording{"advice-no-such-key-offload-optimizer",
            {"{truth}: `zero_offload_optimizer` never existed: it is passed over or refused",
             "{truth}：`zero_offload_optimizer` 从未存在：会被忽略或拒绝"},
            {"{offload_remedy}", "{offload_remedy}"}},
    Wording{"advice-use-pin-memory-dead",
            {"{truth}: cpu_offload_use_pin_memory is only warned about, it has no effect",
             "{truth}：cpu_offload_use_pin_memory 只会引发警告，没有效果"},
            {"pin_memory in offload_optimizer", "在 offload_optimizer 里写 pin_memory"}},
    Wording{"advice-cpu-offload-pin",
            {"{truth}: cpu_offload is a bare switch of old; page-locking is "
             "offload_optimizer.pin_memory and offload_param.pin_memory",
             "{truth}：cpu_offload 只是旧的开关；锁页由 "
             "offload_optimizer.pin_memory 和 offload_param.pin_memory "
             "控制"},
            {}},
    Wording{
        "advice-pin-memory-stage-2",
        {"{truth}: offload_optimizer.pin_memory is true by default since v0.19.5; it page-locks "
         "{pinned} of host memory here, {pinned_rounded} when blocks are rounded up, and no "
         "device memory",
         "{truth}：offload_optimizer.pin_memory 自 v0.19.5 起默认为 "
         "true；此处锁页主机内存 {pinned}，块上取整后 {pinned_rounded}，不占设备内存"},
        {}},
    Wording{
        "advice-aio",
        {"{truth}: aio has no `enabled`, and thread_count is intra_op_parallelism since 0.16.4: "
         "both are passed over without a word; aio serves NVMe offload and does not touch "
         "torch.save",
         "{truth}：aio 没有 `enabled`，thread_count 自 0.16.4 起叫 "
         "intra_op_parallelism：两者都被静默忽略；aio 只服务于 NVMe 卸载，与 "
         "torch.save 无关"},
        {}},
    Wording{
        "advice-save-async",
        {"{truth}: save_checkpoint has no argument save_async: a TypeError; asynchronous saving "
         "is checkpoint.writer.decoupled",
         "{truth}：save_checkpoint 没有 save_async 参数：会报 "
         "TypeError；异步保存是 checkpoint.writer.decoupled"},
        {}},
    Wording{"advice-activation-checkpointing",
            {"{truth}: the activation_checkpointing section does nothing to a Hugging Face model; "
             "recomputation itself saves at least {recompute_saves} for {batch} tokens here",
             "{truth}：activation_checkpointing 部分对 Hugging Face "
             "模型不起作用；真正的重计算在此对 {batch} 个 token 至少省 {recompute_saves}"},
            {"gradient_checkpointing=True, or disable_gradient_checkpointing: false",
             "gradient_checkpointing=True，或 "
             "disable_gradient_checkpointing: false"}},
    Wording{
        "advice-comments",
        {"{truth}: comments are fine for DeepSpeed itself (hjson) and a syntax error through the "
         "HF Trainer",
         "{truth}：注释对 DeepSpeed 本身（hjson）没有问题，但经 HF Trainer 就是语法错误"},
        {"remove them", "删除注释"}},
    Wording{"advice-trainer-py",
            {"{truth}: that path does not exist, and the SFT and PT trainers do not override "
             "save_model: it is HF's",
             "{truth}：该路径不存在，SFT 和 PT 训练器也没有重写 save_model：用的是 HF 的"},
            {}},
    Wording{"advice-two-saves",
            {"{truth}: they are quite different: save_checkpoint writes each rank's shards and "
             "gathers nothing, save_model builds up {weights_16} on rank 0's host at stage 3",
             "{truth}：两者完全不同：save_checkpoint 写各 rank "
             "的分片，不收集任何东西；save_model 在 stage 3 会在 rank 0 主机上累积 "
             "{weights_16}"},
            {}},
    Wording{"advice-zero-init",
            {"{truth}: zero.Init matters: without it each card takes the whole {weights_16} while "
             "loading at stage 3; the HF Trainer applies it by itself when TrainingArguments exist "
             "before the model",
             "{truth}：zero.Init 很重要：没有它，stage 3 加载时每张卡要放下整个 "
             "{weights_16}；只要 TrainingArguments 先于模型创建，HF Trainer 会自动启用"},
            {}},
    Wording{"advice-device-map",
            {"{truth}: device_map with ZeRO-3 is a ValueError in transformers",
             "{truth}：device_map 与 ZeRO-3 同用在 transformers 中是 "
             "ValueError"},
            {"remove device_map", "去掉 device_map"}},
    Wording{"advice-low-cpu-mem",
            {"{truth}: low_cpu_mem_usage with ZeRO-3 is a ValueError in older transformers and "
             "without effect in newer ones: zero.Init does that",
             "{truth}：low_cpu_mem_usage 与 ZeRO-3 同用在旧 transformers 中是 "
             "ValueError，在新版中没有效果：由 zero.Init 负责"},
            {}},
    Wording{"advice-zero-init-argument",
            {"{truth}: from_pretrained has no argument zero_init: it is automatic at stage 3 when "
             "TrainingArguments exist first",
             "{truth}：from_pretrained 没有 zero_init 参数：stage 3 且先有 "
             "TrainingArguments 时自动启用"},
            {}},
    Wording{
        "advice-tie-weights",
        {"{truth}: tie_weights is no key of DeepSpeed; tied weights are one parameter, and their "
         "size here is {module} at most",
         "{truth}：tie_weights 不是 DeepSpeed 的键；绑定的权重是同一个参数，此处最多 "
         "{module}"},
        {}},
    Wording{
        "advice-empty-cache-diagnosis",
        {"{truth}: fine as diagnosis; empty_cache helps against fragmentation only, not against "
         "a real shortfall",
         "{truth}：用于诊断没有问题；empty_cache 只对碎片有用，对真正的不足无效"},
        {}},
    Wording{"advice-broadcast-forward",
            {"{truth}: in forward no GPU owns a parameter: each is cut in {ranks} slices and "
             "collected by all-gather",
             "{truth}：前向时没有哪张 GPU 拥有某个参数：每个参数都切成 {ranks} 片，由 "
             "all-gather 收集"},
            {}},
    Wording{
        "advice-gradients-to-owner",
        {"{truth}: by reduce-scatter each of the {ranks} ranks gets its slice of every gradient; "
         "there is no owner GPU of a parameter",
         "{truth}：通过 reduce-scatter，{ranks} 个 rank "
         "各得到每个梯度的一片；不存在参数的所有者 GPU"},
        {}},
    Wording{"advice-checkpoint-collects",
            {"{truth}: save_checkpoint at stage 3 gathers nothing: each rank writes its shard",
             "{truth}：stage 3 的 save_checkpoint 不收集任何东西：每个 rank 写自己的分片"},
            {}},
    Wording{"advice-model-save-collects",
            {"{truth}: right for the 16-bit export with the gather flag: {weights_16} build up on "
             "rank 0's host; but each module ({module} at most) is first gathered on every GPU",
             "{truth}：对打开收集选项的 16 位导出成立：rank 0 主机上累积 "
             "{weights_16}；但每个模块（最多 {module}）会先在所有 GPU 上收集"},
            {}},
    Wording{"advice-checkpointing-room-for-save",
            {"{truth}: moot: no activations are alive at a save, with recomputation or without",
             "{truth}：无关：保存时没有激活存活，无论是否重计算"},
            {}},
    Wording{"advice-nvidia-smi",
            {"{truth}: useful; nvidia-smi shows reserved memory, which does not fall after a step "
             "unless the cache is emptied",
             "{truth}：有用；nvidia-smi 显示的是保留内存，不清缓存时一步之后不会下降"},
            {}},
    Wording{
        "advice-optimizer-collected-at-save",
        {"{truth}: optimizer state ({state} a rank here) never moves at a save: each rank writes "
         "its own",
         "{truth}：优化器状态（此处每个 rank {state}）在保存时从不移动：各 rank 写自己的"},
        {}},
    Wording{"advice-parameter-cache",
            {"{truth}: there is no parameter cache that a save invalidates; only the persistent "
             "parameters are gathered again, {gathered_auto} with \"auto\"",
             "{truth}：不存在会被保存作废的参数缓存；只有常驻参数会重新收集，\"auto\" 时为 "
             "{gathered_auto}"},
            {}},
    Wording{"advice-outside-zero-init",
            {"{truth}: true until initialize, which shards such tensors one at a time; the "
             "{weights_16} on every card come only when nothing was built under zero.Init",
             "{truth}：在 initialize 之前成立，它会逐个切分这些张量；只有完全没有用 zero.Init "
             "构建时，每张卡才会出现 {weights_16}"},
            {}},
    Wording{
        "advice-save-at-boundary",
        {"{truth}: moot under the HF Trainer, which saves at the boundary; partially accumulated "
         "gradients are not saved",
         "{truth}：在 HF Trainer 下无关，它本来就在边界保存；部分累积的梯度不会保存"},
        {}},
    Wording{"advice-metrics-no-grad",
            {"{truth}: true in general: a forward pass with gradients keeps at least "
             "{recompute_saves} more for {batch} tokens here; LLaMA-Factory does not do it",
             "{truth}：一般成立：带梯度的前向在此对 {batch} 个 token 至少多占 "
             "{recompute_saves}；LLaMA-Factory 没有这样做"},
            {}},
    Wording{"advice-clear-cache-after-save",
            {"{truth}: may help against fragmentation; no cure for a real shortfall on {card}",
             "{truth}：可能缓解碎片；对 {card} 上真正的不足无效"},
            {}},
    Wording{"advice-stage-2-no-gathers",
            {"{truth}: true, but stage 2 keeps the whole {weights_16} on each card",
             "{truth}：成立，但 stage 2 每张卡都保留整个 {weights_16}"},
            {}},
    Wording{"advice-weights-on-gpu",
            {"{truth}: from_pretrained loads to the CPU; the true issue is a missing zero.Init, "
             "which sends the whole {weights_16} through each GPU",
             "{truth}：from_pretrained 加载到 CPU；真正的问题是缺少 zero.Init，它会让整个 "
             "{weights_16} 经过每张 GPU"},
            {}},
    Wording{
        "advice-meta-device",
        {"{truth}: a load in fp32 takes {weights_32} of host memory, not of the card; zero.Init "
         "is the mechanism that avoids whole copies",
         "{truth}：以 fp32 加载占 {weights_32} 主机内存，而不是显卡；避免整份副本的机制是 "
         "zero.Init"},
        {}},
    Wording{"advice-fp32-weights",
            {"{truth}: {parameters} parameters take {weights_32} in fp32; {weights_16} is 16 bit",
             "{truth}：{parameters} 个参数在 fp32 下占 "
             "{weights_32}；{weights_16} 是 16 位"},
            {}},
    Wording{
        "advice-pin-off",
        {"{truth}: page-locking takes host memory ({pinned} here, {pinned_rounded} rounded), "
         "none of the GPU's: switching it off cures no GPU shortfall and makes transfers slower",
         "{truth}：锁页占用主机内存（此处 {pinned}，上取整后 {pinned_rounded}），不占 "
         "GPU：关闭它治不了 GPU 不足，还会使传输变慢"},
        {}},
    Wording{"advice-pin-on-saves",
            {"{truth}: page-locking changes speed, not device memory: it takes {pinned} of host "
             "memory here, {pinned_rounded} rounded",
             "{truth}：锁页改变的是速度而不是设备内存：此处占主机内存 {pinned}，上取整后 "
             "{pinned_rounded}"},
            {}},
    Wording{"advice-swap",
            {"{truth}: page-locked memory cannot be swapped, {pinned} here; the pageable moments "
             "({moments_host}) could be, at ruinous speed",
             "{truth}：锁页内存无法交换，此处 "
             "{pinned}；可分页的动量（{moments_host}）可以，但速度惨不忍睹"},
            {}},
    Wording{"advice-drop-optimizer-offload",
            {"{truth}: bandwidth costs time, not memory; without optimizer offload a rank needs "
             "{parameters_only} at stage 3 with parameter offload alone, {card} are there: "
             "{parameters_only_fits}",
             "{truth}：带宽影响时间而非内存；去掉优化器卸载后，stage 3 仅卸载参数时每个 rank 需要 "
             "{parameters_only}，现有 {card}：{parameters_only_fits}"},
            {}},
    Wording{"advice-gradients-stay",
            {"{truth}: at stages 2 and 3 gradients leave the GPU bucket by bucket ({bucket}, "
             "{bucket_source}) during the backward pass",
             "{truth}：在 stage 2、3，梯度在反向过程中逐桶（{bucket}，{bucket_source}）离开 GPU"},
            {}},
    Wording{
        "advice-stage-3-uses-more",
        {"{truth}: without offload a rank holds at most {stage3_most} at stage 3 and {stage2_most} "
         "at "
         "stage 2, on {ranks} ranks before activations; of stage 3 come a bucket, its copy and "
         "gathered "
         "parameters, {extra_of_stage3} at most, against the whole {weights_16} that stage 2 keeps",
         "{truth}：不卸载时，{ranks} 个 rank、不计激活，每个 rank 在 stage 3 最多占 "
         "{stage3_most}，在 stage 2 "
         "最多占 {stage2_most}；stage 3 多出的是桶、副本和收集的参数，最多 {extra_of_stage3}，而 "
         "stage 2 "
         "要完整保留 {weights_16}"},
        {}},
    Wording{
        "advice-stage-3-one-gpu",
        {"{truth}: on one rank nothing is sharded, but stage 3 is the only stage with "
         "offload_param: {stage3_offload} at most before activations, {stage2_offload} at stage 2",
         "{truth}：单 rank 上什么也没切分，但只有 stage 3 有 "
         "offload_param：不计激活最多 {stage3_offload}，stage 2 则为 "
         "{stage2_offload}"},
        {}},
    Wording{"advice-stage-3-fits",
            {"{truth}: stage 3 without offload needs {stage3} a rank on {ranks} ranks before "
             "activations and {stage3_plain_low} to {stage3_plain_high} with them as the run is, "
             "{card} are there; a node needs at least {stage3_plain_host} of host memory "
             "{stage3_plain_host_phase} (available: {host_limit})",
             "{truth}：不卸载的 stage 3 在 {ranks} 个 rank 时每个 rank 不计激活需要 "
             "{stage3}，按现有训练连同激活为 {stage3_plain_low} 到 {stage3_plain_high}，现有 "
             "{card}；每个节点至少需要 {stage3_plain_host} "
             "主机内存，{stage3_plain_host_phase}（可用：{host_limit}）"},
            {}},
    Wording{"advice-stage-2-fits",
            {"{truth}: stage 2 without offload needs {stage2} a rank on {ranks} ranks before "
             "activations and {stage2_plain_low} to {stage2_plain_high} with them as the run is, "
             "{card} are there; a node needs at least {stage2_plain_host} of host memory "
             "{stage2_plain_host_phase} (available: {host_limit})",
             "{truth}：不卸载的 stage 2 在 {ranks} 个 rank 时每个 rank 不计激活需要 "
             "{stage2}，按现有训练连同激活为 {stage2_plain_low} 到 {stage2_plain_high}，现有 "
             "{card}；每个节点至少需要 {stage2_plain_host} "
             "主机内存，{stage2_plain_host_phase}（可用：{host_limit}）"},
            {}},
    Wording{"advice-stage-2-offload-takes-60",
            {"{truth}: stage 2 with the optimizer on the host needs {stage2_offload} a rank and "
             "activations; the host's {stage2_offload_host} ({stage2_offload_host_more} with "
             "accumulation) is the limit",
             "{truth}：优化器放在主机的 stage 2 每个 rank 需要 {stage2_offload} "
             "加激活；瓶颈是主机的 {stage2_offload_host}（有累积时 "
             "{stage2_offload_host_more}）"},
            {}},
    Wording{
        "advice-stage-2-offload-enough",
        {"{truth}: stage 2 with the optimizer on the host needs {stage2_offload} a rank before "
         "activations and {stage2_offloaded_low} to {stage2_offloaded_high} with them as the run "
         "is, {card} are there; the host needs "
         "{stage2_offload_host}, {stage2_offload_host_more} with accumulation (available: "
         "{host_limit})",
         "{truth}：优化器放在主机的 stage 2 每个 rank 需要 {stage2_offload} "
         "（不计激活），按现有训练连同激活为 {stage2_offloaded_low} 到 "
         "{stage2_offloaded_high}，现有 "
         "{card}；主机需要 "
         "{stage2_offload_host}，有累积时 {stage2_offload_host_more}（可用："
         "{host_limit}）"},
        {}},
    Wording{"advice-checkpointing-beats-offload",
            {"{truth}: depends: recomputation saves at least {recompute_saves} for {batch} "
             "tokens, optimizer offload {freed_by_offload} a rank here; long sequences want both",
             "{truth}：视情况而定：{batch} 个 token，重计算至少省 "
             "{recompute_saves}，优化器卸载在此每个 rank 省 "
             "{freed_by_offload}；长序列两者都要"},
            {}},
    Wording{"advice-checkpointing-before-deepspeed",
            {"{truth}: gradient checkpointing and offload do not know of each other; the order "
             "switches nothing off",
             "{truth}：梯度检查点与卸载互不相干；先后顺序不会关闭任何一个"},
            {}},
    Wording{"advice-mask-replicated",
            {"{truth}: data-parallel ranks have different data: masks and positions are not "
             "replicated from card to card",
             "{truth}：数据并行的各 rank 数据不同：掩码和位置不会在卡间复制"},
            {}},
    Wording{"advice-old-transformers-buffers",
            {"{truth}: no trace of it was found in the code; not certain for every version",
             "{truth}：代码中没有找到痕迹；不能对每个版本断言"},
            {}},
    Wording{"advice-model-half",
            {"{truth}: reasonable: the engine casts to 16 bit ({weights_16}) by itself",
             "{truth}：合理：引擎会自行转换为 16 位（{weights_16}）"},
            {}},
    Wording{"advice-load-bf16",
            {"{truth}: good for host memory ({weights_16} instead of {weights_32}); on the GPU no "
             "difference, the engine casts before it moves",
             "{truth}：对主机内存有好处（{weights_16} 而不是 {weights_32}）；在 GPU "
             "上没有区别，引擎先转换再搬运"},
            {}},
    Wording{"advice-model-to-cuda",
            {"{truth}: not doubled, the same parameters are moved; but an fp32 model then sits on "
             "the GPU whole, {weights_32} of {card}, before partition or offload",
             "{truth}：不会翻倍，搬的是同样的参数；但 fp32 模型会在切分或卸载之前完整放在 GPU "
             "上，{weights_32}，共有 {card}"},
            {"leave the model on the CPU", "把模型留在 CPU"}},
    Wording{
        "advice-load-on-cpu-first",
        {"{truth}: right for stages 0 to 2; at stage 3 without zero.Init the whole {weights_16} "
         "still passes through each GPU",
         "{truth}：对 stage 0 到 2 是对的；在 stage 3 没有 zero.Init 时，整个 "
         "{weights_16} 仍会经过每张 GPU"},
        {}},
    Wording{"advice-count-temporaries",
            {"{truth}: evaluation yes; a DeepSpeed checkpoint needs almost nothing on the GPU",
             "{truth}：评估要算；DeepSpeed 检查点在 GPU 上几乎不需要什么"},
            {}},
    Wording{
        "advice-padding",
        {"{truth}: plausible: activations and logits grow with the padded length; at {batch} "
         "tokens "
         "recomputation decides over {recompute_saves} here; not a matter of DeepSpeed",
         "{truth}：有可能：激活和 logits 随填充后的长度增长；{batch} 个 token 时重计算在此关系到 "
         "{recompute_saves}；与 DeepSpeed 无关"},
        {}},
    Wording{
        "advice-stage-2-faster",
        {"{truth}: stage 2 is generally the faster: it moves no parameters layer by layer; it "
         "keeps "
         "{weights_16} on each card for it; not measured",
         "{truth}：一般 stage 2 更快：它不逐层搬运参数；代价是每张卡保留 {weights_16}；未经测量"},
        {}},
    Wording{"advice-version-mismatch",
            {"{truth}: cannot be judged without versions", "{truth}：没有版本信息无法判断"},
            {"give both versions", "请给出两者的版本"}},
    Wording{
        "advice-first-step",
        {"{truth}: often true: since v0.13.2 the moments appear at the first update, {moments} a "
         "rank on the GPU without offload, {moments_host} in host memory with it. With offload "
         "on, a GPU shortfall in step 1 points to activations, to the {weights_16} of a load "
         "without zero.Init, or to keys that were passed over",
         "{truth}：常常成立：自 v0.13.2 起动量在第一次更新时出现，不卸载时每个 rank 在 GPU 上 "
         "{moments}，卸载时在主机内存 {moments_host}。已卸载却在第 1 步 GPU "
         "不足，则应看激活、没有 zero.Init 时加载的 {weights_16}，或被忽略的键"},
        {}},
};

}  // namespace

std::span<const Wording> advice_wordings() {
  return wordings;
}

}  // namespace underkeel::doctor
