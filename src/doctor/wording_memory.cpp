// What findings about memory say.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"memory-not-judged",
            {"DeepSpeed stops on `{key}` before it takes memory: what it would hold is not judged",
             "DeepSpeed 在占用内存之前就会因 `{key}` 停止：不判断它会占用多少"},
            {"mend the key and ask again", "请修正该键后再次运行"}},
    Wording{"memory-of-unknown-model",
            {"the memory model counts dense models of the Llama family alone: what DeepSpeed would "
             "hold for {model} is not judged",
             "内存模型只计算 Llama 系列的稠密模型：不判断 DeepSpeed 对 {model} 会占用多少"},
            {"measure a few steps with DeepSpeed", "请用 DeepSpeed 实测几步"}},
    Wording{"memory-without-model",
            {"no model is given: whether memory suffices is not judged",
             "没有给出模型：不判断内存是否足够"},
            {"give the model's folder or config.json", "请给出模型文件夹或 config.json"}},
    Wording{"deepspeed-not-counted",
            {"`{key}` is {value}: {why}; the figures do not count it, so they cannot show that the "
             "run fits",
             "`{key}` 为 {value}：{why}；估算没有计入它，因此不能证明放得下"},
            {"measure a few steps with it; without the key the figures are those of the run",
             "请带上它实测几步；去掉该键时估算才对应该训练"}},
    Wording{"deepspeed-does-not-fit",
            {"does not fit: {space} {phase} needs at least {low}, {limit} are there; largest: "
             "{terms}{most}",
             "放不下：{space}在{phase}至少需要 {low}，只有 {limit}；最大的几项：{terms}{most}"},
            {"{cure}", "{cure}"}},
    Wording{"deepspeed-fits",
            {"fits: {space} is the tightest, {phase}, with {low} to {high} of {limit}; {margin} "
             "are left; "
             "largest: {terms}",
             "能放下：最紧张的是{space}（{phase}），需要 {low} 到 {high}，共有 {limit}；余 "
             "{margin}；最大的几项：{terms}"},
            {}},
    Wording{
        "deepspeed-may-not-fit",
        {"may not fit: {space} {phase} needs {low} to {high}, {limit} are there; largest: {terms}",
         "可能放不下：{space}在{phase}需要 {low} 到 {high}，共有 {limit}；最大的几项：{terms}"},
        {"{cure}", "{cure}"}},
    Wording{"deepspeed-long-samples-do-not-fit",
            {"if samples are as long as cutoff_len, {tokens} tokens: {space} {phase} needs at "
             "least {low}, {limit} are there; the data were not read, and a batch is padded to its "
             "longest sample only; largest: {terms}",
             "若样本与 cutoff_len 等长（{tokens} 个 token）：{space}在{phase}至少需要 {low}，只有 "
             "{limit}；数据未读取，而批次只填充到其中最长的样本；最大的几项：{terms}"},
            {"give the data and the tokenizer, which tell how long the samples are. {cure}",
             "请提供数据与分词器以得知样本长度。{cure}"}},
    Wording{"deepspeed-lengths-not-known",
            {"the config alone says neither how long samples are nor what is saved; with {tokens} "
             "tokens and saves {space} {phase} needs at least {low}, {limit} are there; largest: "
             "{terms}",
             "单独的配置既没有说明样本长度，也没有说明保存什么；按 {tokens} 个 token "
             "并保存计，{space}在{phase}至少需要 {low}，只有 {limit}；最大的几项：{terms}"},
            {"give the run file, whose cutoff_len bounds the length. {cure}",
             "请同时给出训练文件，其中 cutoff_len 限定长度。{cure}"}},
    Wording{
        "deepspeed-fits-where-known",
        {"fits as far as the machine is known: {space} {phase} needs {low} to {high} of {limit}",
         "就已知的机器信息而言能放下：{space}在{phase}需要 {low} 到 {high}，共有 {limit}"},
        {"give --hardware with gpu_mem_gib and host_ram_gib, or --memory device=..,host=..",
         "请给出含 gpu_mem_gib 和 host_ram_gib 的 --hardware，或 --memory device=..,host=.."}},
    Wording{
        "no-deepspeed-config",
        {"there is no DeepSpeed config: the figures are those of the HF Trainer's own loop, which "
         "splits nothing: {total} bytes a parameter that trains ({weight} of weights, {gradient} "
         "of "
         "gradients, {moments} of moments) on every rank; what comes on top is a range",
         "没有 DeepSpeed 配置：按 HF Trainer 自己的循环计，不做任何切分：每个 rank "
         "上每个被训练的参数 "
         "{total} 字节（权重 {weight}，梯度 {gradient}，动量 {moments}）；其余部分只是一个范围"},
        {}},
    Wording{"no-deepspeed-config-named",
            {"there is no DeepSpeed config: the figures are those of DeepSpeed at stage 0",
             "没有 DeepSpeed 配置：其数字按 DeepSpeed stage 0 计"},
            {}},
    Wording{"deepspeed-no-machine",
            {"no machine is given: a rank needs {low} to {high} of device memory; largest: {terms}",
             "没有给出机器：每个 rank 需要 {low} 到 {high} 设备内存；最大的几项：{terms}"},
            {"give --hardware hardware.yaml, or --memory device=80GiB,host=512GiB",
             "请给出 --hardware hardware.yaml，或 --memory device=80GiB,host=512GiB"}},
    Wording{"device-state",
            {"before activations and context a rank holds up to {step} in forward and backward "
             "({terms}{checks}) and {update} in the update",
             "不计激活与上下文，每个 rank 在前向与反向中最多持有 {step}（{terms}{checks}），更新时 "
             "{update}"},
            {}},
    Wording{"device-reserved",
            {"what a rank allocates has its peak at {peak}; nvidia-smi shows more: torch's cache "
             "reserves up to {reserved} where memory is plenty, and gives back what it can when "
             "it is short; beside that, context and libraries take {context}",
             "每个 rank 已分配内存的峰值为 {peak}；nvidia-smi 显示得更多：内存充裕时 torch "
             "的缓存最多保留 {reserved}，不足时归还能归还的部分；上下文与库另占 {context}"},
            {}},
    Wording{
        "rounding-may-not-fit",
        {"{before} at most of {limit} would do for {space} {phase}, but torch rounds page-locked "
         "blocks up to powers of two: {rounded} then",
         "{space}在{phase}最多 {before}，现有 {limit}，本可放下；但 torch "
         "会把锁页块上取整到二的幂：届时为 {rounded}"},
        {"PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:1 in a torch that has it, or "
         "\"pin_memory\": false, which is slower",
         "在支持的 torch 中设 PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:1，或用较慢的 "
         "\"pin_memory\": false"}},
    Wording{
        "first-update",
        {"a rank holds {set_up} of model state after set-up and {backward} after the backward "
         "pass, once gradients are reduced; the first update then asks for {moments} of moments, "
         "which did not exist before, and {copies} of temporaries: {peak} at its peak, without "
         "activations and context. A resumed run has the moments in its first forward pass",
         "每个 rank 在初始化后持有 {set_up} 模型状态，反向并归约梯度之后 "
         "{backward}；第一次更新再要 {moments} 的动量（此前并不存在）和 {copies} 的临时量：峰值 "
         "{peak}，不计激活与上下文。恢复的训练在第一次前向时动量就已存在"},
        {}},
    Wording{"nvme-buffer-too-small",
            {"offload_param.buffer_size is {buffer} elements; the largest matrix has {elements}, "
             "{share} of them on each of {ranks} ranks, and a share must fit into one buffer: "
             "DeepSpeed stops with an assertion at start",
             "offload_param.buffer_size 为 {buffer} 个元素；最大的矩阵有 {elements} 个，{ranks} 个 "
             "rank 上每个占 {share}，而一份必须放进一个缓冲区：DeepSpeed 启动时就会断言失败"},
            {"offload_param.buffer_size: {share} or more (buffer_count of them are page-locked)",
             "offload_param.buffer_size: {share} 或更大（共有 buffer_count 个，均为锁页内存）"}},
    Wording{"one-rank-saves-nothing",
            {"stage {stage} on one rank splits nothing: {state} of model state ({parts}) are on "
             "the one card",
             "单个 rank 上 stage {stage} 什么也没切分：{state} 的模型状态（{parts}）都在一张卡上"},
            {"offload_optimizer: cpu takes {freed} of them off the card",
             "offload_optimizer: cpu 可把其中 {freed} 移出显卡"}},
    Wording{"all-reduce-copy",
            {"communication: at stage 0 a copy of at most 500000000 gradients is made for the "
             "all-reduce, {copy}; reduce_bucket_size does nothing there",
             "通信：stage 0 的 all-reduce 会复制最多 500000000 个梯度元素，共 {copy}；此时 "
             "reduce_bucket_size 不起作用"},
            {}},
    Wording{"bf16-optimizer-copy",
            {"communication: BF16_Optimizer has no buckets; gradients of a group are copied into "
             "the type that is sent, up to {copy}; reduce_bucket_size does nothing there",
             "通信：BF16_Optimizer 没有桶；一组梯度会复制成通信类型，最多 {copy}；此时 "
             "reduce_bucket_size 不起作用"},
            {}},
    Wording{"bucket-bytes",
            {"communication buffers: {bucket} of buckets ({count} x {elements} elements, {size}) "
             "and up to {copy} for a copy in the reduction, {both} together; \"auto\" makes a "
             "bucket hidden size squared, {auto_elements} elements, {auto}",
             "通信缓冲：桶 {bucket}（{count} x {elements} 个元素，{size}），归约时的副本最多 "
             "{copy}，共 {both}；\"auto\" 会使一个桶等于隐藏维度的平方，即 {auto_elements} "
             "个元素，{auto}"},
            {"{do}", "{do}"}},
    Wording{"live-window",
            {"{besides}gathered parameters take up to {live}: "
             "stage3_max_live_parameters "
             "{max_live} bounds prefetching, and what is alive drifts towards it",
             "{besides}收集的参数最多占 {live}：stage3_max_live_parameters {max_live} "
             "只限制预取，存活量会趋近它"},
            {"lower stage3_max_live_parameters and stage3_max_reuse_distance together",
             "同时降低 stage3_max_live_parameters 和 stage3_max_reuse_distance"}},
    Wording{"host-phases",
            {"host memory of a node: {steady} steadily ({terms}), {saving} during a save, {after} "
             "after it; its Python processes take {processes} more; page cache is not counted, the "
             "system takes it back",
             "每节点主机内存：稳态 {steady}（{terms}），保存时 {saving}，保存后 {after}；其 Python "
             "进程另占 {processes}；页缓存不计入，系统会回收"},
            {}},
    Wording{"host-steady",
            {"host memory of a node: {steady} steadily ({terms}); its Python processes take "
             "{processes} more; the run saves nothing; page cache is not counted, the system takes "
             "it back",
             "每节点主机内存：稳态 {steady}（{terms}）；其 Python 进程另占 "
             "{processes}；该训练不保存；页缓存不计入，系统会回收"},
            {}},
    Wording{"resume-host",
            {"a resume reads each rank's optimizer file whole: {file} on a node{besides}",
             "恢复训练会整体读入每个 rank 的优化器文件：每节点 {file}{besides}"},
            {}},
    Wording{"resume-host-may-be-short",
            {"a resume reads each rank's optimizer file whole: {file} on a node{besides}, and "
             "up to {most} with all that is a range and the Python "
             "processes ({processes}); {limit} are there. A fresh start does not need it",
             "恢复训练会整体读入每个 rank 的优化器文件：每节点 "
             "{file}{besides}；计入各项上限和 Python 进程（{processes}）最多 {most}；只有 {limit}。"
             "从头开始不需要它"},
            {"know it before the first save: {cure}", "请在第一次保存之前了解这一点：{cure}"}},
    Wording{
        "resume-host-short",
        {"a resume reads each rank's optimizer file whole: {file} on a node{besides}, and "
         "the Python processes {processes}; {limit} are there. A fresh "
         "start does not need it; a resume from its own checkpoint would be ended by the system "
         "(exit code -9)",
         "恢复训练会整体读入每个 rank 的优化器文件：每节点 "
         "{file}{besides}，Python 进程另占 {processes}；只有 {limit}。从头开始不需要它；"
         "从自己的检查点恢复会被系统终止（退出码 -9）"},
        {"know it before the first save: {cure}", "请在第一次保存之前了解这一点：{cure}"}},
    Wording{"resume-copies-swap-files",
            {"a resume copies the optimizer's swap files, {swap} on a node, from the checkpoint "
             "back to nvme_path: host memory stays at {resume} and the Python processes' "
             "{processes}",
             "恢复训练会把优化器的交换文件（每节点 {swap}）从检查点复制回 nvme_path：主机内存仍为 "
             "{resume}，Python 进程另占 {processes}"},
            {}},
    Wording{
        "page-locked",
        {"{low} of host memory are page-locked before rounding, {high} with each block rounded "
         "up to a "
         "power of two, at worst {worst}; limit: {limit}",
         "锁页主机内存：取整前 {low}，每块上取整到二的幂后 {high}，最坏 {worst}；上限：{limit}"},
        {}},
    Wording{"swap-does-not-help",
            {"swap space does not help here: {pinned} of the host memory are page-locked",
             "交换空间在此无用：主机内存中有 {pinned} 是锁页的"},
            {}},
    Wording{"nvme-bytes",
            {"NVMe of a node takes {low} to {high} (fp32 gradients are swapped too); free: {limit}",
             "每节点 NVMe 占用 {low} 到 {high}（fp32 梯度也会换出）；空闲：{limit}"},
            {}},
    Wording{"load-needs-zero-init",
            {"with zero.Init (the Trainer applies it at stage 3 when TrainingArguments exist "
             "before the model "
             "does) the model is split as it is built. Loaded first, each card takes the whole "
             "{whole} for a "
             "moment, and the node's host memory {ranks} copies: {copies} in 16 bit, {copies_f32} "
             "in 32 bit; "
             "available: {limit}",
             "有 zero.Init 时（stage 3 下，只要 TrainingArguments 先于模型创建，Trainer "
             "会自动启用）模型在构建时即切分。若先加载，每张卡会暂时放下整个 "
             "{whole}，每节点主机内存则有 "
             "{ranks} 份：16 位 {copies}，32 位 {copies_f32}；可用：{limit}"},
            {"make TrainingArguments before from_pretrained",
             "在 from_pretrained 之前创建 TrainingArguments"}},
    Wording{"whole-model-above-one-card",
            {"the whole model is {whole} in 16 bit, more than one card's {limit}: no export may "
             "gather it on "
             "one; our export goes through one tensor at a time, {tensor} at most",
             "整个模型 16 位为 {whole}，超过单卡的 "
             "{limit}：导出不能在一张卡上收集它；我们的导出逐个张量进行，"
             "最多 {tensor}"},
            {}},
    Wording{"weights-stay-whole",
            {"offload_param does nothing at stage {stage}: the 16-bit weights stay whole on each "
             "card, {whole} (available: {limit})",
             "offload_param 在 stage {stage} 不起作用：16 "
             "位权重完整留在每张卡上，{whole}（可用：{limit}）"},
            {}},
    Wording{"parameter-offload-at-stage-3",
            {"at stage 3 the same block makes a rank need {range} of device memory, activations "
             "and context included: {verdict} with DeepSpeed",
             "在 stage 3，同样的配置使每个 rank 需要 {range} 设备内存（含激活与上下文）：用 "
             "DeepSpeed {verdict}"},
            {"{do}", "{do}"}},
    Wording{
        "save-gathers-modules",
        {"the weights file: one module at a time is gathered on every card ({module} at most), and "
         "rank 0 "
         "builds up all {whole} on the host",
         "权重文件：每次在所有卡上收集一个模块（最多 {module}），rank 0 在主机上累积全部 {whole}"},
        {}},
    Wording{
        "save-without-weights",
        {"interval checkpoint (save interval {every}): sharded state, resumable, no single weights "
         "file. "
         "Final output: no weights file ({whole}) either, "
         "stage3_gather_16bit_weights_on_model_save is "
         "false",
         "间隔检查点（保存间隔 "
         "{every}）：分片状态，可恢复，没有单一权重文件。最终输出：同样没有权重文件"
         "（{whole}），因为 stage3_gather_16bit_weights_on_model_save 为 false"},
        {"set the flag, or make weights afterwards: zero_to_fp32.py with DeepSpeed, underkeel "
         "export with "
         "ours",
         "打开该选项，或事后生成权重：DeepSpeed 用 zero_to_fp32.py，本引擎用 underkeel export"}},
    Wording{"adapter-sizes",
            {"adapters: {count} parameters, {size_16} in 16 bit or {size_32} in 32 bit, "
             "{checkpoint} with optimizer state; the frozen base is {base}",
             "适配器：{count} 个参数，16 位 {size_16}，32 位 {size_32}，含优化器状态 "
             "{checkpoint}；冻结的基座为 {base}"},
            {}},
    Wording{
        "adapter-save-collects-base",
        {"a save that collects adapters only needs {adapters} on rank 0; older code collects the "
         "frozen "
         "base as well, {base} more on rank 0's host (available: {limit})",
         "只收集适配器的保存在 rank 0 上需要 {adapters}；旧代码连冻结的基座也收集，rank 0 主机再要 "
         "{base}（可用：{limit}）"},
        {}},
    Wording{
        "adapter-save-may-end-the-run",
        {"a save that collects adapters only needs {adapters} on rank 0; older code collects the "
         "frozen "
         "base as well, {base} more on rank 0's host: with {limit} the run is then ended by the "
         "system",
         "只收集适配器的保存在 rank 0 上需要 {adapters}；旧代码连冻结的基座也收集，rank 0 主机再要 "
         "{base}：主机只有 {limit} 时训练会被系统终止"},
        {"use a peft and transformers that save adapters only, or our engine, which streams them",
         "使用只保存适配器的 peft 与 transformers 版本，或用流式保存的本引擎"}},
    Wording{
        "quantised-base-is-whole",
        {"a base of {bits} bits is not split by stage 3: {values} of values, {scales} of scales "
         "and {rest} of 16-bit embedding and head are {whole} on every card when it is "
         "loaded{if_f32}; "
         "available: {limit}",
         "{bits} 位基座不会被 stage 3 切分：量化值 {values}、缩放系数 {scales}、16 位嵌入与输出头 "
         "{rest}，加载时每张卡共 {whole}{if_f32}；可用：{limit}"},
        {"{do}", "{do}"}},
    Wording{"activations-at-least",
            {"without recomputation the activations of a micro-batch take at least {bytes} until "
             "the backward pass ({layers} layers x {tokens} tokens x {values} values x {element} "
             "bytes), with any engine",
             "不重计算时，一个微批的激活在反向之前至少占 {bytes}（{layers} 层 x {tokens} 个 token "
             "x {values} 个值 x {element} 字节），与引擎无关"},
            {}},
    Wording{
        "activations-kept",
        {"{recompute}, {kept} of activations wait for the backward pass in transformers' code; the "
         "loss then works with {loss}, and a layer with {layer}",
         "{recompute}时，transformers 的代码为反向保留 {kept} 激活；之后损失计算用 {loss}，"
         "一层计算用 {layer}"},
        {}},
    Wording{"scores-in-f32",
            {"in f32, with {query_heads} query heads on {key_heads} key heads, attention may hold "
             "all scores (measured with transformers 4.57 and later): activations take {peak}, "
             "in 16 bit {peak_16}",
             "用 f32 且 {query_heads} 个查询头共用 {key_heads} 个键头时，注意力可能保留全部分数"
             "（transformers 4.57 及以后的版本实测）：激活占 {peak}，16 位时占 {peak_16}"},
            {"bf16: true", "bf16: true"}},
    Wording{
        "logits-whole",
        {"whole logits of a micro-batch ({sequences} x {tokens} tokens, vocabulary {vocabulary}) "
         "are {f32} "
         "in fp32, and {f16} beside it in 16 bit; our engine holds pieces of them",
         "一个微批的完整 logits（{sequences} x {tokens} 个 token，词表 {vocabulary}）在 fp32 下为 "
         "{f32}，另有 16 位 {f16}；本引擎只持有其中一部分"},
        {}},
    Wording{"evaluation-of-one-batch",
            {"an evaluation needs one batch at a time ({batch} x {tokens} tokens): whole fp32 "
             "logits of it are "
             "{one}, however many samples there are",
             "评估每次只需一个批（{batch} x {tokens} 个 token）：其完整 fp32 logits 为 "
             "{one}，与样本数无关"},
            {}},
    Wording{"evaluation-of-all-samples",
            {"an evaluation needs one batch at a time ({batch} x {tokens} tokens): {one} of whole "
             "fp32 logits, "
             "however many samples there are; kept for all {samples} samples they would be {all}",
             "评估每次只需一个批（{batch} x {tokens} 个 token）：完整 fp32 logits 为 "
             "{one}，与样本数无关；若为全部 {samples} 个样本保留则为 {all}"},
            {}},
    Wording{
        "evaluation-keeps-logits",
        {"a token-level metric is asked for (LLaMA-Factory's compute_accuracy reduces each batch "
         "to token ids "
         "first): keeping the logits of {samples} samples of {tokens} tokens "
         "takes {all} in fp32 or {all_16} in 16 bit (available: {limit}); reduced to token ids "
         "they "
         "are "
         "{ids} at 4 bytes or {ids_64} at 8, as much again for the labels (a batch of {batch}: "
         "{one})",
         "要求了 token 级指标（LLaMA-Factory 的 compute_accuracy 会先把每批归约为 token id）：保留 "
         "{samples} 个样本、每个 {tokens} 个 token 的 logits 在 fp32 需 "
         "{all}，16 位需 {all_16}（可用：{limit}）；若归约为 token id，每个 4 字节只需 "
         "{ids}，每个 8 字节为 {ids_64}，标签再要同样多（一个批 {batch}：{one}）"},
        {"preprocess_logits_for_metrics with argmax; eval_accumulation_steps only moves them to "
         "the host",
         "用 preprocess_logits_for_metrics 取 argmax；eval_accumulation_steps "
         "只是把它们搬到主机"}},
    Wording{
        "evaluation-keeps-logits-of-many",
        {"a metric over tokens or generated answers is asked for, and how many evaluation samples "
         "there are is not known here: keeping the logits of each {samples} samples of {tokens} "
         "tokens takes {all} in fp32 or {all_16} in 16 bit (available: {limit}); reduced to token "
         "ids they are {ids} at 4 bytes or {ids_64} at 8, as much again for the labels (a batch "
         "of {batch}: {one}). LLaMA-Factory's compute_accuracy reduces each batch first",
         "要求了 token 级或生成结果的指标，而这里不知道有多少评估样本：每 {samples} 个样本、每个 "
         "{tokens} 个 token 的 logits 若保留，在 fp32 需 {all}，16 位需 {all_16}（可用：{limit}）；"
         "若归约为 token id，每个 4 字节只需 {ids}，每个 8 字节为 {ids_64}，标签再要同样多（一个批 "
         "{batch}：{one}）。LLaMA-Factory 的 compute_accuracy 会先归约每个批"},
        {"give doctor the data, or a data-shape.json with their number and length",
         "把数据交给 doctor，或给出写有数量和长度的 data-shape.json"}},
    Wording{
        "evaluation-keeps-raw-logits",
        {"the evaluation keeps raw logits (predict_with_generate without compute_accuracy): "
         "{samples} samples of {tokens} tokens take {all} of host memory in fp32 or {all_16} in "
         "16 bit (available: {limit}); reduced to token ids they are {ids} at 4 bytes or {ids_64} "
         "at 8, as much again for the labels (a batch of {batch}: {one})",
         "评估会保留原始 logits（predict_with_generate，且未归约）：{samples} 个样本、每个 "
         "{tokens} "
         "个 token 在 fp32 需主机内存 {all}，16 位需 {all_16}（可用：{limit}）；若归约为 token "
         "id，每个 4 字节只需 {ids}，每个 8 字节为 {ids_64}，标签再要同样多（一个批 "
         "{batch}：{one}）"},
        {"reduce each batch first: preprocess_logits_for_metrics with argmax; "
         "eval_accumulation_steps only moves the logits to the host",
         "先归约每个批：用 preprocess_logits_for_metrics 取 argmax；eval_accumulation_steps 只是把 "
         "logits 搬到主机"}},
    Wording{"bf16-weights-in-fp16",
            {"the weights were stored in bf16 and are trained in fp16, whose largest value is "
             "65504: they can overflow at once or every few steps. State of a rank, weights, "
             "gradients and optimizer: {state_16} in fp16; in an fp32 run {state_32} with "
             "underkeel and {theirs_32} with DeepSpeed, and activations twice as large",
             "权重以 bf16 保存，却用 fp16 训练，其最大值为 65504：可能立刻或每隔几步溢出。每个 "
             "rank 的状态（权重、梯度与优化器）：fp16 为 {state_16}；fp32 训练时 underkeel 为 "
             "{state_32}，DeepSpeed 为 {theirs_32}，且激活翻倍"},
            {"{advice}", "{advice}"}},
    Wording{"no-bf16-on-this-gpu",
            {"this GPU (compute capability {capability}) has no bf16: it begins with 8.0",
             "该 GPU（计算能力 {capability}）不支持 bf16：从 8.0 开始才有"},
            {"fp16 with loss scaling, or fp32", "使用带损失缩放的 fp16，或 fp32"}},
    Wording{"own-layout",
            {"our layout at stage {stage}: {device} of model state a rank ({terms}), none of it on "
             "the host; all of it before the first step",
             "本引擎在 stage {stage} 的布局：每个 rank 的模型状态 "
             "{device}（{terms}），主机上没有；全部在第一步之前就位"},
            {}},
    Wording{"own-layout-with-offload",
            {"our layout at stage {stage} with these offloads would be {device} of model state a "
             "rank ({terms}; the less where gradients leave at once, the more where they stay) and "
             "{host} on the host for all ranks ({host_terms}){nvme}{locked}. Offload is not built "
             "yet: a rank of "
             "ours holds {all}",
             "本引擎在 stage {stage} 及这些卸载下的布局将是：每个 rank 的模型状态 "
             "{device}（{terms}；梯度立即移出时取小值，留在卡上时取大值），所有 rank 合计主机 "
             "{host}（{host_terms}）{nvme}{locked}。卸载尚未实现：本引擎的每个 rank 持有 {all}"},
            {}},
    Wording{"own-layout-nvme-short",
            {"our layout would put at least {low} on NVMe of a node ({terms}); {limit} are free "
             "there",
             "本引擎的布局在每节点 NVMe 上至少需要 {low}（{terms}）；空闲只有 {limit}"},
            {"free the folder of nvme_path, or offload to cpu",
             "腾出 nvme_path 所在的文件夹，或卸载到 cpu"}},
};

constexpr std::array parts = {
    Phrase{"live.besides", {"besides", "除"}},
    Phrase{"live.shards", {" of shards, ", " 的分片外，"}},
    Phrase{"row.resume-fails",
           {"a resume of it does not fit a node's host memory: up to",
            "由它恢复训练时每节点主机内存放不下：最多"}},
    Phrase{"row.resume-unknown",
           {"a resume of it may not fit a node's host memory: up to",
            "由它恢复训练时每节点主机内存可能放不下：最多"}},
    Phrase{"row.disk", {"disk", "磁盘"}},
    Phrase{"rest.device", {"device memory of a rank", "每个 rank 的设备内存"}},
    Phrase{"rest.of", {" of", "，可用"}},
    Phrase{"rest.fits", {", which fits; ", "，能放下；"}},
    Phrase{"rest.then", {"; ", "；"}},
    Phrase{"layout.locked",
           {"; if a node page-locks all of its part, that is",
            "；若每节点把自己的部分全部锁页，则为"}},
    Phrase{"layout.of-limit", {"against a limit of", "，上限为"}},
    Phrase{"layout.locks-fit", {", which it keeps to", "，没有超过"}},
    Phrase{"layout.locks-may-not-fit", {", which it may pass", "，可能超过"}},
    Phrase{"layout.locks-do-not-fit", {", which it passes", "，超过了"}},
    Phrase{"layout.and-nvme", {", and on NVMe for all ranks", "，所有 rank 合计 NVMe"}},
};

}  // namespace

std::span<const Wording> memory_wordings() {
  return wordings;
}

std::span<const Phrase> memory_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
