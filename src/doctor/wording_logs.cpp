// What findings about logs say.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"log-out-of-memory",
            {"GPU {gpu} ran out of memory {place}: asked for {tried}; free {free} of {total}; "
             "allocated {allocated}; reserved and not allocated {unused}",
             "GPU {gpu} 在{place}内存不足：请求 {tried}，共 {total}，空闲 {free}；已分配 "
             "{allocated}，已保留未分配 {unused}"},
            {"{next}", "{next}"}},
    Wording{"log-of-another-gpu",
            {"the log's GPU has {total} and the machine of the other answers {limit}: what is said "
             "of this log counts with the log's own figures, every forecast with the machine's",
             "日志中的 GPU 有 {total}，其他答案所用的机器有 "
             "{limit}：关于这份日志的结论按日志自己的数字，所有估算按机器的"},
            {}},
    Wording{"log-without-error",
            {"the log tells of no error that doctor knows", "日志里没有 doctor 认得的错误"},
            {"give the logs of all ranks: the first error may stand in another one",
             "请给出所有 rank 的日志：最早的错误可能在另一份里"}},
    Wording{"log-fragmented",
            {"{unused} are reserved by torch and not allocated and {free} are free, together at "
             "least the {tried} that were asked for: fragmentation",
             "torch 已保留未分配的有 {unused}，空闲 {free}，合计不少于请求的 {tried}：属于碎片"},
            {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; empty_cache() helps for a while",
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True；empty_cache() 只能暂时缓解"}},
    Wording{"log-not-fragmented",
            {"only {unused} are reserved and not allocated and {free} are free, together less than "
             "the {tried} that were asked for: a real shortfall, no fragmentation",
             "已保留未分配的只有 {unused}，空闲 {free}，合计少于请求的 "
             "{tried}：是真正的不足，不是碎片"},
            {}},
    Wording{"log-failed-lock",
            {"page-locking host memory failed; the error speaks of the device, whose memory was "
             "not the "
             "problem. Page-locked by this run: {pinned}",
             "锁页主机内存失败；报错说的是设备，但设备内存并不是问题。该训练的锁页内存：{pinned}"},
            {"raise ulimit -l and the container's memory limit, or \"pin_memory\": false",
             "提高 ulimit -l 和容器内存上限，或 \"pin_memory\": false"}},
    Wording{
        "log-killed",
        {"a process was ended by signal 9, which is the system's answer to host memory used "
         "up; the log last tells of {last}. What this run needs on a node {phase}, at the least: "
         "{host}; available: {limit}",
         "有进程被信号 9 终止，这是主机内存耗尽时系统的反应；日志最后提到的是{last}。该训练{phase}"
         "每节点至少需要：{host}；可用：{limit}"},
        {"dmesg, or memory.events of the control group, says whether it was memory",
         "dmesg 或控制组的 memory.events 可以确认是否因内存"}},
    Wording{"log-of-other-ranks",
            {"the log is of {in_log} ranks at least, the other answers are for {ranks} ({source}): "
             "the log "
             "cannot be placed in this run, and no forecast is set beside it",
             "日志至少来自 {in_log} 个 rank，其他答案按 {ranks} "
             "个（{source}）：这份日志无法归入该训练，"
             "旁边不列估算"},
            {"give --ranks {in_log}, or the files of the run that wrote the log",
             "请给出 --ranks {in_log}，或写出这份日志的训练的文件"}},
    Wording{"log-cuda-refused",
            {"CUDA refused memory {place} and told no sizes: memory of the GPU, or page-locked "
             "memory of the "
             "host, for which the message is the same",
             "CUDA 在{place}拒绝分配内存，没有给出大小：可能是 GPU "
             "显存，也可能是主机的锁页内存，报错相同"},
            {"with CUDA_LAUNCH_BLOCKING=1 the traceback is that of the call; other programs on the "
             "GPU show in nvidia-smi",
             "CUDA_LAUNCH_BLOCKING=1 可显示调用处；nvidia-smi 可显示 GPU 上的其他程序"}},
    Wording{"log-host-refused",
            {"the system refused host memory {place} (asked for: {tried}{is}): the host is short, "
             "not the GPU",
             "系统在{place}拒绝分配主机内存（请求：{tried}{is}）：不足的是主机，不是 GPU"},
            {"the memory limit of the container, ulimit -v, and vm.overcommit_memory decide",
             "由容器内存上限、ulimit -v 和 vm.overcommit_memory 决定"}},
    Wording{"log-other-processes",
            {"other processes hold {others} of the GPU's {gpu}: {tried} were refused beside them",
             "其他进程占用了 GPU 的 {others}（共 {gpu}）：在此之外请求 {tried} 被拒绝"},
            {"end them, or choose another GPU (nvidia-smi names them)",
             "结束这些进程，或换一块 GPU（nvidia-smi 可查看）"}},
    Wording{"log-above-forecast",
            {"the log's run had allocated {allocated}, and the run of these files holds {most} at "
             "most in any phase: "
             "another config or other sizes were in force",
             "日志中的训练已分配 {allocated}，而这些文件的训练在任何阶段最多占 "
             "{most}：当时生效的是其他配置或其他大小"},
            {"give the files of that run, with the words of its command line",
             "请给出那次训练的文件和命令行参数"}},
    Wording{
        "log-kept-logits",
        {"the error struck where an evaluation collects the logits of all its samples on the GPU",
         "错误发生在评估把所有样本的 logits 收集到 GPU 时"},
        {"prediction_loss_only: true, or eval_accumulation_steps: 1 (they go to the host then)",
         "设 prediction_loss_only: true，或 eval_accumulation_steps: 1（届时移到主机）"}},
    Wording{"log-disk-full",
            {"the disk was full while a file was written: memory was not the problem",
             "写文件时磁盘已满：问题不在内存"},
            {"make room, or lower save_total_limit; what was written last is not complete",
             "腾出空间，或减小 save_total_limit；最后写入的文件不完整"}},
    Wording{"log-paging-file",
            {"Windows had no paging file left (error 1455): host memory was short, not the GPU",
             "Windows 的页面文件已用完（错误 1455）：不足的是主机内存，不是 GPU"},
            {"a larger paging file, or dataloader_num_workers: 0",
             "增大页面文件，或设 dataloader_num_workers: 0"}},
    Wording{"log-segfault",
            {"a process ended by a fault of its own (SIGSEGV), not for want of memory",
             "有进程因自身错误（SIGSEGV）结束，而不是因为内存不足"},
            {"the core dump, or PYTHONFAULTHANDLER=1, shows where",
             "核心转储或 PYTHONFAULTHANDLER=1 可以显示位置"}},
    Wording{"log-shared-memory",
            {"a worker had no shared memory left (/dev/shm): the GPU and the host's other memory "
             "were not the "
             "problem",
             "加载进程的共享内存（/dev/shm）用完了：问题不在 GPU，也不在主机的其他内存"},
            {"docker run --shm-size, or --ipc=host; or dataloader_num_workers: 0",
             "docker run 加 --shm-size 或 --ipc=host；或 dataloader_num_workers: 0"}},
    Wording{"log-timeout",
            {"a collective ({operation}) was given up (time limit: {limit}): one rank did not "
             "come; the "
             "ranks that wait "
             "are not the cause",
             "集合通信（{operation}）被放弃（时限：{limit}）：有一个 rank 没有到；等待的 rank "
             "不是原因"},
            {"look for the first error among all ranks' logs; a save or load on some ranks only "
             "also hangs",
             "在所有 rank 的日志中找最早的错误；只在部分 rank 上保存或加载也会挂住"}},
    Wording{"log-timeout-after-kill",
            {"a collective ({operation}) was given up (time limit: {limit}) because a process was "
             "ended by signal 9: "
             "the kill is the cause, NCCL only noticed it",
             "集合通信（{operation}）被放弃（时限：{limit}），因为有进程被信号 9 "
             "终止：终止才是原因，NCCL 只是发现了它"},
            {"see the finding on the kill", "参见关于终止的说明"}},
    Wording{"log-batch-equation",
            {"the batch equation does not hold: {equation} (train_batch_size, micro-batch, "
             "accumulation, ranks)",
             "批大小等式不成立：{equation}（train_batch_size、微批、累积、rank 数）"},
            {"write \"auto\", or leave one of the three out; check how many processes the launcher "
             "started",
             "写 \"auto\"，或省略三者之一；检查启动器启动了多少进程"}},
    Wording{"log-extra-key",
            {"a section of the config has a key that DeepSpeed does not know: a ValidationError",
             "配置的某一部分含有 DeepSpeed 不认识的键：ValidationError"},
            {"{next}", "{next}"}},
    Wording{"log-mismatch",
            {"the config and TrainingArguments give different values: the HF Trainer stops with a "
             "ValueError",
             "配置与 TrainingArguments 的值不一致：HF Trainer 以 ValueError 停止"},
            {"{next}", "{next}"}},
    Wording{"log-untested-optimizer",
            {"ZeRO refuses an optimizer that is none of those it was tested with",
             "ZeRO 拒绝未经测试的优化器"},
            {"zero_allow_untested_optimizer: true", "zero_allow_untested_optimizer: true"}},
    Wording{"log-scale-at-minimum",
            {"the fp16 loss scale stands at its minimum and the gradients still overflow: the run "
             "stops",
             "fp16 损失缩放已到最小值而梯度仍然溢出：训练停止"},
            {"bf16 where the GPU has it, a smaller learning rate, or the last checkpoint before "
             "the overflows",
             "GPU 支持时用 bf16，或减小学习率，或回到溢出前的检查点"}},
    Wording{"log-swap-file-short",
            {"a swap file of NVMe offload is shorter than its buffer: a write was cut short, most "
             "often because "
             "the disk is full",
             "NVMe 卸载的交换文件比缓冲短：写入被截断，最常见的原因是磁盘已满"},
            {"check the free space of nvme_path; doctor says what the run needs there",
             "检查 nvme_path 的空闲空间；doctor 会给出所需空间"}},
    Wording{"log-swap-buffer-small",
            {"a parameter's shard is larger than offload_param.buffer_size",
             "某个参数的分片大于 offload_param.buffer_size"},
            {"raise buffer_size above the largest parameter's share",
             "把 buffer_size 提高到最大参数的分片以上"}},
    Wording{"log-trace-order",
            {"stage 3 met its modules in another order than it recorded",
             "stage 3 遇到的模块顺序与记录的不同"},
            {"the same path through the model in every step; leaf_module for mixtures of experts",
             "每一步走相同的模型路径；混合专家用 leaf_module"}},
    Wording{
        "log-other-world-size",
        {"the checkpoint was written by another number of ranks, which DeepSpeed refuses",
         "检查点由不同数量的 rank 写出，DeepSpeed 拒绝加载"},
        {"turn it into its universal form first, or start the same number of ranks; our engine "
         "resumes its "
         "own checkpoints on any number",
         "先转换为 universal 形式，或启动相同数量的 rank；本引擎自己的检查点可在任意数量上恢复"}},
    Wording{
        "log-empty-tensor",
        {"a tensor of shape [0] stands where a weight is due: a stage-3 placeholder was saved, or "
         "used "
         "outside its module",
         "本该是权重的地方出现了形状为 [0] 的张量：保存了 stage 3 的占位符，或在其模块之外使用"},
        {"zero_to_fp32.py, or stage3_gather_16bit_weights_on_model_save with save_model",
         "用 zero_to_fp32.py，或打开 stage3_gather_16bit_weights_on_model_save 再用 save_model"}},
    Wording{"log-torchrun",
            {"LLaMA-Factory needs a distributed launch for DeepSpeed, on one GPU too",
             "即使只有一张 GPU，LLaMA-Factory 也要求以分布式方式启动 DeepSpeed"},
            {"FORCE_TORCHRUN=1", "FORCE_TORCHRUN=1"}},
    Wording{"log-device-map",
            {"device_map or low_cpu_mem_usage with ZeRO-3: transformers stops with a ValueError",
             "device_map 或 low_cpu_mem_usage 与 ZeRO-3 同用：transformers 以 ValueError 停止"},
            {"remove both", "两者都去掉"}},
    Wording{"log-weights-only",
            {"torch 2.6 and later refuses ZeroStageEnum in the fast writer's files",
             "torch 2.6 及以后拒绝 fast 写入器文件中的 ZeroStageEnum"},
            {"write checkpoints with \"type\": \"python\"", "用 \"type\": \"python\" 写检查点"}},
    Wording{"log-auto-left",
            {"a value \"auto\" that nobody filled in reached the code",
             "无人填写的 \"auto\" 传到了代码里"},
            {"{next}", "{next}"}},
    Wording{"log-no-gradient",
            {"nothing that was computed needs a gradient: with recomputation the embedding's "
             "output is cut off "
             "from the adapters",
             "计算结果中没有需要梯度的部分：启用重计算时嵌入输出与适配器断开"},
            {"model.enable_input_require_grads(), or use_reentrant=False",
             "model.enable_input_require_grads()，或 use_reentrant=False"}},
    Wording{"log-json-comment",
            {"a config is no strict JSON: comments and trailing commas are DeepSpeed's liberty "
             "(hjson), not the "
             "HF Trainer's",
             "配置不是严格的 JSON：注释和尾逗号只有 DeepSpeed（hjson）允许，HF Trainer 不允许"},
            {"{next}", "{next}"}},
    Wording{"after-save-moments",
            {"cause {rank} ({likely}): the moments appear, {bytes} a rank on the GPU (left there: "
             "{margin}), "
             "at the "
             "first update or when a checkpoint is loaded; it is the save only when that was step "
             "1 or a resume",
             "原因 {rank}（{likely}）：动量出现，每个 rank 在 GPU 上 {bytes}（余："
             "{margin}），发生在第一次更新或加载检查点时；"
             "只有第 1 步就保存或恢复训练时才与保存有关"},
            {"run two steps without any save: if the second fails as well, it was not the save",
             "不保存地跑两步：若第二步同样失败，则与保存无关"}},
    Wording{"after-save-moments-host",
            {"cause {rank} ({likely}): the moments appear in host memory, {bytes} a rank, at the "
             "first update or "
             "when a checkpoint is loaded; left on the GPU: {margin}",
             "原因 {rank}（{likely}）：动量出现在主机内存，每个 rank "
             "{bytes}，发生在第一次更新或加载检查点时；GPU 上余："
             "{margin}"},
            {"watch the node's memory in the first update; run without a save",
             "观察第一次更新时的节点内存；不保存地运行"}},
    Wording{
        "after-save-evaluation",
        {"cause {rank} ({likely}): an evaluation leaves up to {bytes} of gathered parameters, and "
         "the next "
         "forward adds its own (left: {margin}); HF evaluates before it saves and the save "
         "releases them, "
         "so this bites after an evaluation that no save follows",
         "原因 {rank}（{likely}）：评估会留下最多 {bytes} "
         "的已收集参数，下一次前向再加上自己的（余："
         "{margin}）；HF 先评估后保存，保存会释放它们，所以只在没有保存跟随的评估之后发作"},
        {"eval_strategy \"no\" for one run; a smaller stage3_max_live_parameters cures it",
         "用 eval_strategy \"no\" 跑一次；减小 stage3_max_live_parameters 可治"}},
    Wording{"after-save-never-fits",
            {"before any save a step is {beyond} beyond what the GPU has, at the most that it may "
             "need: a save is no cause of that",
             "在任何保存之前，一步最多可能超出 GPU {beyond}：这与保存无关"},
            {}},
    Wording{
        "after-save-allocator-unseen",
        {"cause {rank} ({likely}): the allocator keeps a pool for each stream, and what the "
         "save freed in one cannot serve the other; an error's text says how much was reserved "
         "and not allocated (left by the sum: {margin})",
         "原因 {rank}（{likely}）：分配器为每个流保留一个池，保存在一个池中释放的不能给另一个用；"
         "报错文本会说明已保留未分配的量（按计算余：{margin}）"},
        {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or empty_cache() after the save: "
         "if that cures it, this was the cause",
         "设 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，或保存后调用 empty_cache()："
         "若因此解决，原因就是它"}},
    Wording{"after-save-allocator",
            {"cause {rank} ({likely}): the allocator keeps a pool for each stream, and what the "
             "save freed in one "
             "cannot serve the other; {bytes} were reserved and not allocated (left by the sum: "
             "{margin})",
             "原因 "
             "{rank}（{likely}"
             "）：分配器为每个流保留一个池，保存在一个池中释放的不能给另一个用；已保留未分配 "
             "{bytes}（按计算余：{margin}）"},
            {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or empty_cache() after the save: "
             "if that cures "
             "it, it was this",
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，或保存后 "
             "empty_cache()：若因此治好，就是它"}},
    Wording{
        "after-save-gather",
        {"cause {rank} ({likely}): the export gathers one module at a time on every GPU, {bytes} "
         "at most "
         "(left: {margin})",
         "原因 {rank}（{likely}）：导出每次在所有 GPU 上收集一个模块，最多 "
         "{bytes}（余：{margin}）"},
        {"stage3_gather_16bit_weights_on_model_save false for one save",
         "有一次保存时把 stage3_gather_16bit_weights_on_model_save 设为 false"}},
    Wording{"after-save-host",
            {"cause {rank} ({likely}): host memory of rank 0 takes up to {bytes} of whole weights "
             "in the save, the "
             "system ends that process, and the others fail in NCCL; left on the GPU: {margin}",
             "原因 {rank}（{likely}）：保存时 rank 0 主机最多多占 {bytes} "
             "的完整权重，系统终止该进程，其他进程在 NCCL "
             "中失败；GPU 上余：{margin}"},
            {"look for exit code -9 and at dmesg; save_only_model off and the gather flag off for "
             "one run",
             "查找退出码 -9 和 dmesg；关闭 save_only_model 与收集选项跑一次"}},
};

constexpr std::array log_phrase_table = {
    Phrase{"log.give", {"give doctor beside the log:", "请与日志一起交给 doctor："}},
    Phrase{"log.files-first",
           {"mend the errors of the files beside the log: until then doctor works no terms out",
            "请先修正日志旁各文件的错误：在那之前 doctor 不会算出各项"}},
    Phrase{"log.forecast",
           {"compare with what the files beside it foretell on a GPU", "请与旁边文件的估算比较："}},
    Phrase{"log.unplaced",
           {"the log shows no function that tells the phase, so it is placed in none; of all "
            "phases the "
            "files beside it foretell the most on a GPU",
            "日志中没有能判断阶段的函数，不归入任何阶段；按旁边的文件，各阶段中 GPU 占用最多的是"}},
    Phrase{"log.of-other-run",
           {"the log is of more ranks than the run beside it, so that no forecast is set beside it",
            "日志的 rank 比旁边的训练多，因此不列估算"}},
    Phrase{"last.unknown", {"no phase", "不属于任何阶段的内容"}},
    Phrase{"last.load", {"loading", "加载"}},
    Phrase{"last.forward", {"training steps", "训练步"}},
    Phrase{"last.evaluation", {"an evaluation", "评估"}},
    Phrase{"last.save", {"a save", "保存"}},
    Phrase{"last.resume", {"a resume", "恢复训练"}},
    Phrase{"log.no-such-phase",
           {"the run of the files beside it has no such phase:", "旁边文件的训练没有这一阶段："}},
    Phrase{"log.as-much-as", {", as much as", "，相当于"}},
    Phrase{"log.half-of", {", half of", "，即一半的"}},
    Phrase{"log.gpu-has", {"the log's GPU has", "日志中的 GPU 有"}},
    Phrase{"and", {" and ", "和"}},
    Phrase{"file.config", {"the run file or the DeepSpeed config", "训练文件或 DeepSpeed 配置"}},
    Phrase{"file.model", {"the model's config.json", "模型的 config.json"}},
    Phrase{"log-extra-key.ask",
           {"give doctor the ds_config.json: it names the key and where it belongs",
            "把 ds_config.json 交给 doctor：它会指出是哪个键、应放在哪里"}},
    Phrase{"log-extra-key.given",
           {"see the findings on the config: they name the key and where it belongs; where they "
            "name none, the log is of another config",
            "参见关于配置的说明：其中指出了是哪个键、应放在哪里；若没有，则日志属于另一份配置"}},
    Phrase{"log-mismatch.ask",
           {"give doctor both files: it lists every difference",
            "把两个文件都交给 doctor：它会列出所有差异"}},
    Phrase{"log-mismatch.given",
           {"see the findings on both files: they list every difference; where they list none, the "
            "log is of other files",
            "参见关于两个文件的说明：其中列出了所有差异；若没有，则日志属于别的文件"}},
    Phrase{"log-auto-left.ask",
           {"give doctor the ds_config.json: it names the key",
            "把 ds_config.json 交给 doctor：它会指出键名"}},
    Phrase{"log-auto-left.given",
           {"see the findings on the config: they name the key; where they name none, the log is "
            "of another config",
            "参见关于配置的说明：其中指出了键名；若没有，则日志属于另一份配置"}},
    Phrase{"log-json-comment.ask",
           {"give doctor the file: it names line and column", "把文件交给 doctor：它会指出行和列"}},
    Phrase{"log-json-comment.given",
           {"see the findings on the config: they name line and column; where they name none, the "
            "log is of another file",
            "参见关于配置的说明：其中指出了行和列；若没有，则日志属于另一个文件"}},
};

}  // namespace

std::span<const Wording> log_wordings() {
  return wordings;
}

std::span<const Phrase> log_phrases() {
  return log_phrase_table;
}

}  // namespace underkeel::doctor
