// What findings about keys that meet say.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{
        "run-value-differs",
        {"`{key}` is {value} ({file}), `{run_key}` is {run_value} ({run_file}): the HF Trainer "
         "stops "
         "with a ValueError",
         "`{key}` 为 {value}（{file}），`{run_key}` 为 {run_value}（{run_file}）：HF Trainer 以 "
         "ValueError 停止"},
        {"write \"auto\" in {file}, or the same value in both",
         "在 {file} 中写 \"auto\"，或让两处一致"}},
    Wording{
        "run-value-lost",
        {"`{key}` is left out, so DeepSpeed takes its own default {value}, while `{run_key}` is "
         "{run_value} ({run_file}); nobody compares them",
         "没有写 `{key}`，DeepSpeed 取自己的默认值 {value}，而 `{run_key}` 为 "
         "{run_value}（{run_file}）；没有人会比较两者"},
        {"write \"auto\"", "请写 \"auto\""}},
    Wording{"zero-is-missing",
            {"there is no zero_optimization: accelerate stops with a ValueError (Please specify "
             "the ZeRO "
             "optimization config in the DeepSpeed config)",
             "没有 zero_optimization：accelerate 以 ValueError 停止"},
            {"give zero_optimization.stage: 0, 1, 2 or 3",
             "请给出 zero_optimization.stage：0、1、2 或 3"}},
    Wording{"warmup-becomes-zero",
            {"warmup_num_steps is \"auto\" and {run_file} has no warm-up, so it becomes 0: "
             "DeepSpeed since "
             "0.19.3 (mid-2026) refuses it with a ValueError, older versions raise it to 2",
             "warmup_num_steps 为 \"auto\"，而 {run_file} 没有预热，于是变成 0：0.19.3（2026 "
             "年中）以后的 DeepSpeed 以 ValueError 拒绝，旧版本会提升为 2"},
            {"give warmup_steps in the run file, or remove the scheduler section",
             "在训练文件中给出 warmup_steps，或删除 scheduler 部分"}},
    Wording{"pure-bf16-at-stage-3",
            {"pure_bf16 ({run_file}) with stage 3: LLaMA-Factory stops with an error",
             "pure_bf16（{run_file}）与 stage 3 同用：LLaMA-Factory 报错停止"},
            {"write bf16: true", "请写 bf16: true"}},
    Wording{"fp16-and-bf16",
            {"fp16 and bf16 are both enabled: DeepSpeed stops with an AssertionError",
             "fp16 与 bf16 同时启用：DeepSpeed 以 AssertionError 停止"},
            {"keep one of the two", "只保留一个"}},
    Wording{"amp-with-zero",
            {"amp does not go with ZeRO (stage {stage}): DeepSpeed stops at start",
             "amp 不能与 ZeRO（stage {stage}）同用：DeepSpeed 在启动时停止"},
            {"use bf16 or fp16", "请用 bf16 或 fp16"}},
    Wording{
        "prescale-with-reduce-scatter",
        {"prescale_gradients with reduce_scatter at stage {stage}: DeepSpeed stops with an "
         "AssertionError",
         "stage {stage} 下 prescale_gradients 与 reduce_scatter 同用：DeepSpeed 以 AssertionError "
         "停止"},
        {"remove prescale_gradients", "删除 prescale_gradients"}},
    Wording{
        "predivide-with-reduce-scatter",
        {"gradient_predivide_factor other than 1 with reduce_scatter at stage {stage}: DeepSpeed "
         "stops with an AssertionError",
         "stage {stage} 下 gradient_predivide_factor 不为 1 且启用 reduce_scatter：DeepSpeed 以 "
         "AssertionError 停止"},
        {"remove gradient_predivide_factor", "删除 gradient_predivide_factor"}},
    Wording{"sum-at-stage-3",
            {"gradient_allreduce_op \"sum\" at stage {stage}: DeepSpeed stops with a ValueError",
             "stage {stage} 下 gradient_allreduce_op 为 \"sum\"：DeepSpeed 以 ValueError 停止"},
            {"write \"mean\"", "请写 \"mean\""}},
    Wording{"legacy-stage-1",
            {"legacy_stage1 is gone: DeepSpeed stops with an Exception",
             "legacy_stage1 已移除：DeepSpeed 以 Exception 停止"},
            {"remove it", "删除该键"}},
    Wording{"elastic-checkpoint-at-stage-3",
            {"elastic_checkpoint at stage {stage}: every save and load raises an error",
             "stage {stage} 下启用 elastic_checkpoint：每次保存和加载都会报错"},
            {"remove it", "删除该键"}},
    Wording{
        "gradient-type-at-stage-0",
        {"grad_accum_dtype fp32 at stage {stage} with 16-bit weights: DeepSpeed stops with a "
         "NotImplementedError",
         "stage {stage} 且权重为 16 位时 grad_accum_dtype 为 fp32：DeepSpeed 以 "
         "NotImplementedError 停止"},
        {"use stage 1, or leave grad_accum_dtype out", "使用 stage 1，或去掉 grad_accum_dtype"}},
    Wording{
        "gradient-type-at-stage-2",
        {"grad_accum_dtype at stage {stage} is in effect ignored: gradients add up in the model's "
         "16-bit type",
         "stage {stage} 下 grad_accum_dtype 实际上被忽略：梯度仍以模型的 16 位类型累加"},
        {"stage 1 or 3 accumulates in fp32", "stage 1 或 3 才会以 fp32 累加"}},
    Wording{"offload-at-stage-0",
            {"there is no offload at stage {stage}: the block is passed over",
             "stage {stage} 没有卸载：该部分被忽略"},
            {"use stage 1, 2 or 3", "请用 stage 1、2 或 3"}},
    Wording{
        "offload-without-device",
        {"`{key}` has no `device`: its default is none (the documentation says cpu), so nothing is "
         "offloaded",
         "`{key}` 没有 `device`：默认值是 none（文档写的是 cpu），所以什么都没有卸载"},
        {"write \"device\": \"cpu\"", "请写 \"device\": \"cpu\""}},
    Wording{"nvme-means-cpu",
            {"at stage {stage} nvme silently means cpu: the optimizer lies in host memory",
             "stage {stage} 下 nvme 会被静默当作 cpu：优化器状态放在主机内存"},
            {"stage 3 is the one that uses NVMe", "只有 stage 3 才使用 NVMe"}},
    Wording{"nvme-without-path",
            {"device is nvme and there is no nvme_path: DeepSpeed stops",
             "device 为 nvme 却没有 nvme_path：DeepSpeed 停止"},
            {"give nvme_path", "请给出 nvme_path"}},
    Wording{
        "ratio-below-stage-3",
        {"ratio below 1 at stage {stage}: DeepSpeed stops with an AssertionError, it exists at "
         "stage 3 "
         "only",
         "stage {stage} 下 ratio 小于 1：DeepSpeed 以 AssertionError 停止，它只在 stage 3 存在"},
        {"remove it", "删除该键"}},
    Wording{"allgather-bucket-is-odd",
            {"allgather_bucket_size must be even: DeepSpeed stops with an AssertionError",
             "allgather_bucket_size 必须为偶数：DeepSpeed 以 AssertionError 停止"},
            {"remove it, it has no effect", "删除它，它没有效果"}},
    Wording{"contiguous-without-count",
            {"contiguous_memory_optimization without number_checkpoints: it breaks as soon as the "
             "model's "
             "code calls deepspeed.checkpointing",
             "contiguous_memory_optimization 缺少 number_checkpoints：一旦模型代码调用 "
             "deepspeed.checkpointing 就会出错"},
            {"remove it", "删除该键"}},
    Wording{
        "master-type-needs-offload",
        {"`{key}` needs offload_optimizer to cpu (stage {stage}, none is given): DeepSpeed stops "
         "at "
         "start",
         "`{key}` 需要 offload_optimizer 到 cpu（stage {stage}，未给出）：DeepSpeed 在启动时停止"},
        {"remove it, or offload the optimizer", "删除它，或卸载优化器"}},
    Wording{"bf16-states-need-bf16-master",
            {"bf16_optimizer_states needs bf16_master_weights_and_grads: DeepSpeed stops at start",
             "bf16_optimizer_states 需要 bf16_master_weights_and_grads：DeepSpeed 在启动时停止"},
            {"set both, or none", "两个都设，或都不设"}},
    Wording{"round-robin-mixes-parameters",
            {"round_robin_gradients on {ranks} ranks: names and fragments are matched in another "
             "order, so "
             "safe_get_full_fp32_param and the universal conversion mix up parameters",
             "round_robin_gradients 且有 {ranks} 个 rank：名字与分片按另一种顺序对应，"
             "safe_get_full_fp32_param 和 universal 转换会混淆参数"},
            {"leave it off", "不要启用"}},
    Wording{
        "elasticity-with-batch",
        {"elasticity is enabled and batch sizes are given as well: DeepSpeed stops with an error",
         "启用了 elasticity 又给出了批大小：DeepSpeed 报错停止"},
        {"remove the batch sizes, or set ignore_non_elastic_batch_info",
         "删除批大小，或设置 ignore_non_elastic_batch_info"}},
    Wording{"decoupled-writer-cannot-be-read",
            {"the fast writer's files cannot be loaded with the defaults of torch 2.6 and later "
             "(weights_only refuses ZeroStageEnum)",
             "fast 写入器的文件无法用 torch 2.6 及以后的默认设置加载（weights_only 拒绝 "
             "ZeroStageEnum）"},
            {"write \"type\": \"python\", or leave the writer out",
             "请写 \"type\": \"python\"，或去掉 writer"}},
    Wording{"bf16-unchecked-at-stage-3",
            {"at stage {stage} with bf16 nothing looks for gradients that are not finite: a NaN "
             "enters the "
             "master weights",
             "stage {stage} 且 bf16 时没有任何非有限梯度检查：NaN 会进入主权重"},
            {}},
    Wording{"optimizer-without-type",
            {"the optimizer section has no type", "optimizer 部分没有 type"},
            {"write \"type\": \"AdamW\"", "请写 \"type\": \"AdamW\""}},
    Wording{"optimizer-must-be-torchs",
            {"optimizer `{type}` is none of DeepSpeed's 12, and torch.optim (2.9) has no class of "
             "exactly this name: DeepSpeed stops with an AssertionError",
             "优化器 `{type}` 不在 DeepSpeed 自带的 12 "
             "个之内，torch.optim（2.9）也没有与此名完全一致的类："
             "DeepSpeed 以 AssertionError 停止"},
            {"the nearest name is {nearest}; AdamW is one of DeepSpeed's",
             "最接近的名字是 {nearest}；AdamW 是 DeepSpeed 自带的"}},
    Wording{
        "optimizer-untested",
        {"ZeRO refuses optimizer `{type}` with an AssertionError unless "
         "zero_allow_untested_optimizer "
         "is true",
         "除非 zero_allow_untested_optimizer 为 true，ZeRO 会以 AssertionError 拒绝优化器 "
         "`{type}`"},
        {"set zero_allow_untested_optimizer: true", "设置 zero_allow_untested_optimizer: true"}},
    Wording{
        "adam-is-adamw",
        {"\"Adam\" is AdamW here: weight decay is decoupled unless adam_w_mode: false is written",
         "这里的 \"Adam\" 就是 AdamW：除非写 adam_w_mode: false，权重衰减是解耦的"},
        {}},
    Wording{"adam-w-mode-ignored",
            {"adam_w_mode: false is ignored for type AdamW: decay stays decoupled",
             "type 为 AdamW 时 adam_w_mode: false 被忽略：衰减仍是解耦的"},
            {"write \"type\": \"Adam\" with adam_w_mode: false for an L2 penalty",
             "若要 L2 惩罚，请写 \"type\": \"Adam\" 并设 adam_w_mode: false"}},
    Wording{"amsgrad-refused",
            {"amsgrad: FusedAdam raises an error, DeepSpeedCPUAdam does not implement it",
             "amsgrad：FusedAdam 会报错，DeepSpeedCPUAdam 没有实现"},
            {"remove it, or set torch_adam: true", "删除它，或设 torch_adam: true"}},
    Wording{
        "scheduler-must-be-torchs",
        {"scheduler `{type}` is none of DeepSpeed's 5, and torch.optim.lr_scheduler (2.9) has no "
         "class of exactly this name: DeepSpeed stops with an AssertionError",
         "调度器 `{type}` 不在 DeepSpeed 的 5 "
         "个之内，torch.optim.lr_scheduler（2.9）也没有与此名完全"
         "一致的类：DeepSpeed 以 AssertionError 停止"},
        {"the nearest name is {nearest}", "最接近的名字是 {nearest}"}},
    Wording{"scheduler-without-params",
            {"scheduler `{type}` without params: DeepSpeed stops with a TypeError",
             "调度器 `{type}` 缺少 params：DeepSpeed 以 TypeError 停止"},
            {"give params", "请给出 params"}},
    Wording{"scheduler-argument",
            {"`{key}` is no argument of {type}: DeepSpeed stops with a TypeError",
             "`{key}` 不是 {type} 的参数：DeepSpeed 以 TypeError 停止"},
            {"it takes {known}", "它接受 {known}"}},
    Wording{"scheduler-argument-missing",
            {"{type} needs `{key}`: DeepSpeed stops with a TypeError",
             "{type} 需要 `{key}`：DeepSpeed 以 TypeError 停止"},
            {"give it, or \"auto\" under the HF Trainer", "请给出，在 HF Trainer 下可写 \"auto\""}},
    Wording{"warmup-not-positive",
            {"warmup_num_steps {found} is not positive: DeepSpeed since 0.19.3 (mid-2026) refuses "
             "it with "
             "a ValueError, older versions raise it to 2",
             "warmup_num_steps {found} 不是正数：0.19.3（2026 年中）以后的 DeepSpeed 以 ValueError "
             "拒绝，旧版本会提升为 2"},
            {"give at least 1", "至少为 1"}},
    Wording{"fewer-steps-than-warmup",
            {"total_num_steps {total} is less than warmup_num_steps {warmup}: DeepSpeed only "
             "warns, the "
             "rate never reaches its maximum",
             "total_num_steps {total} 小于 warmup_num_steps {warmup}：DeepSpeed "
             "只警告，学习率到不了最大值"},
            {"give more steps or less warm-up", "增加总步数或减少预热"}},
    Wording{"two-updates-at-minimum",
            {"with {type} the first two updates both run at the minimum rate {lr}",
             "{type} 的前两次更新都以最小学习率 {lr} 进行"},
            {}},
    // Of models, machines and our own engine.
    Wording{"model-unsupported",
            {"our engine refuses this model before anything is loaded: {what} ({where})",
             "本引擎在加载之前拒绝该模型：{what}（{where}）"},
            {}},
    Wording{"model-broken",
            {"the model description cannot be used: {what} ({where})",
             "模型描述无法使用：{what}（{where}）"},
            {}},
    Wording{"machine-broken",
            {"the machine description cannot be used: {what} ({where})",
             "机器描述无法使用：{what}（{where}）"},
            {}},
    Wording{
        "hardware-is-no-machine",
        {"--hardware names a file that describes no machine", "--hardware 指的文件不是机器描述"},
        {"name a hardware.yaml there, with host_ram_gib and, for GPUs, gpus_per_node and "
         "gpu_mem_gib",
         "请在此处写 hardware.yaml，其中有 host_ram_gib；有 GPU 时还有 gpus_per_node 和 "
         "gpu_mem_gib"}},
    Wording{
        "underkeel-not-planned",
        {"with {layers} layers the model is not planned here: that takes longer than an answer may",
         "{layers} 层的模型不在这里规划：所需时间超过一次回答"},
        {"ask underkeel plan", "请用 underkeel plan"}},
    Wording{"underkeel-machine-unread",
            {"the machine description could not be read, so no plan is judged: this machine's "
             "memory is not what was asked about",
             "机器描述无法读取，因此不判断计划：所问的并不是本机的内存"},
            {"mend the description, or give --memory device=SIZE,host=SIZE",
             "请修正该描述，或给出 --memory device=SIZE,host=SIZE"}},
    Wording{"more-ranks-than-gpus",
            {"{ranks} ranks ({source}) on {gpus} GPUs: each rank needs one of its own",
             "{ranks} 个 rank（{source}），只有 {gpus} 个 GPU：每个 rank 需要一个自己的 GPU"},
            {"run at most {gpus} ranks, or describe {nodes} nodes of {on_node} GPUs",
             "至多运行 {gpus} 个 rank，或描述 {nodes} 个各有 {on_node} 个 GPU 的节点"}},
    Wording{
        "underkeel-refuses",
        {"`{key}`: underkeel train refuses it: {what}", "`{key}`：underkeel train 会拒绝：{what}"},
        {"{fix}", "{fix}"}},
    Wording{"run-file-refused",
            {"`{key}`: underkeel train refuses it, and LLaMA-Factory or the HF Trainer stops on it "
             "too: {what}",
             "`{key}`：underkeel train 会拒绝，LLaMA-Factory 或 HF Trainer 也会因此停止：{what}"},
            {"{fix}", "{fix}"}},
    Wording{"underkeel-cannot-yet",
            {"`{key}`: underkeel train cannot do this yet: {what}",
             "`{key}`：underkeel train 暂不支持：{what}"},
            {"{fix}", "{fix}"}},
    Wording{"underkeel-note", {"{what}", "{what}"}, {}},
    Wording{
        "underkeel-fits",
        {"fits: {device} of device memory a rank at the peak{gaps}, {host} of host memory a node",
         "能放下：每个 rank 设备内存峰值 {device}{gaps}，每节点主机内存 {host}"},
        {}},
    Wording{"changes-without-run-file",
            {"{keys} on the command line change a run file, and none is given: DeepSpeed's half is "
             "of the config alone and does not see them",
             "命令行上的 {keys} 修改训练文件，而没有给出训练文件：DeepSpeed "
             "部分只按配置计算，不受其影响"},
            {"give the run file as well; deepspeed.KEY=VALUE changes the config for both engines",
             "请同时给出训练文件；deepspeed.KEY=VALUE 会为两个引擎修改配置"}},
    Wording{"underkeel-does-not-fit",
            {"does not fit: {space} needs {needed}, {allowed} are allowed (device {device} a rank, "
             "host "
             "{host} a node)",
             "放不下：{space}需要 {needed}，允许 {allowed}（每个 rank 设备 {device}，每节点主机 "
             "{host}）"},
            {"{cure}", "{cure}"}},
    Wording{"underkeel-communication",
            {"communication: reductions hold up to {staging} of staging at once and gathers up to "
             "{gathered} of gathered parameters; at the fullest moment {staging_then} and "
             "{gathered_then} of the {device} of a rank's device memory",
             "通信：归约同时最多持有 {staging} 的暂存，收集最多持有 {gathered} "
             "的参数；在占用最多的时刻，每个 rank 的 {device} 设备内存中分别有 {staging_then} 和 "
             "{gathered_then}"},
            {}},
    Wording{"underkeel-lengths-not-known",
            {"the config alone does not say how long samples are; with {tokens} tokens {space} "
             "needs {needed}, {allowed} are allowed, and short ones fit",
             "单独的配置没有说明样本长度；按 {tokens} 个 token 计，{space}需要 {needed}，允许 "
             "{allowed}，短样本则放得下"},
            {"give the run file, whose cutoff_len bounds the length. {cure}",
             "请同时给出训练文件，其中 cutoff_len 限定长度。{cure}"}},
    Wording{"accelerate-value",
            {"`{key}` is {value}; wanted: {wanted}", "`{key}` 为 {value}；应为：{wanted}"},
            {"write it as wanted", "按要求填写"}},
    Wording{"accelerate-processes-left-open",
            {"`num_processes` is -1, accelerate's placeholder: the launcher gives the number",
             "`num_processes` 为 -1，是 accelerate 的占位值：进程数由启动器给出"},
            {"accelerate launch --num_processes N; give doctor --ranks N",
             "accelerate launch --num_processes N；给 doctor 加 --ranks N"}},
    Wording{"accelerate-key-misplaced",
            {"`{key}` stands in the wrong section: {does}", "`{key}` 放错了位置：{does}"},
            {"it belongs in {section}", "它应放在 {section}"}},
    Wording{"accelerate-key-misspelt",
            {"unknown key `{key}`: {does}", "未知键 `{key}`：{does}"},
            {"the nearest key is `{nearest}`", "最接近的键是 `{nearest}`"}},
    Wording{"accelerate-key-unknown",
            {"unknown key `{key}`: {does}", "未知键 `{key}`：{does}"},
            {"remove it", "删除它"}},
    Wording{
        "accelerate-makes-the-config",
        {"DeepSpeed's settings here are those that accelerate launch makes of deepspeed_config: "
         "stage {stage}, optimizer on {optimizer}, parameters on {param}; underkeel does not "
         "read them",
         "此处 DeepSpeed 的设置由 accelerate launch 根据 deepspeed_config 生成：stage "
         "{stage}，优化器卸载到 "
         "{optimizer}，参数卸载到 {param}；underkeel 不读取它们"},
        {}},
    Wording{"accelerate-keys-beside-file",
            {"beside deepspeed_config_file these keys are refused with a ValueError: {keys}",
             "与 deepspeed_config_file 同时出现时，这些键会以 ValueError 被拒绝：{keys}"},
            {"say them in the DeepSpeed file alone", "只在 DeepSpeed 文件里填写"}},
    Wording{"accelerate-without-deepspeed",
            {"distributed_type is {type}: deepspeed_config is passed over",
             "distributed_type 为 {type}：deepspeed_config 不起作用"},
            {"distributed_type: DEEPSPEED", "distributed_type: DEEPSPEED"}},
    Wording{"underkeel-host",
            {"host memory of a node: {host} while loading, in steps, during and after a save and "
             "on a resume alike: {arenas} of arenas, taken before the weights are read and kept to "
             "the end, and {processes} for the processes (a bound for drivers, libraries and "
             "threads: each further rank on the node adds {of_rank}); what is read or written "
             "passes through {ring} of staging a rank",
             "每节点主机内存：加载、训练、保存期间与之后、恢复时都是 {host}：其中 {arenas} "
             "在读权重之前一次占用并保留到最后，{processes} "
             "用于进程本身（驱动、库与线程的上限：节点上每多一个 "
             "rank 增加 {of_rank}）；读写都经过每个 rank {ring} 的中转缓冲"},
            {}},
    Wording{
        "underkeel-host-without",
        {"without {keys}, {which}, this run would be a full fine-tune at stage {stage} without "
         "offload: {device}host memory of a node {host} while loading, in steps, during and "
         "after a save and on a resume alike: {arenas} of "
         "arenas, taken before the weights are read and kept to the end, and {processes} for "
         "the processes (a bound for drivers, libraries and threads: each further rank on the "
         "node adds {of_rank}); what is read or written passes through {ring} of staging a rank",
         "若去掉{which} {keys}，本训练将是 stage "
         "{stage}、不卸载的全参数微调：{device}"
         "每节点主机内存在加载、训练、保存期间与之后、恢复时都是 "
         "{host}：其中 {arenas} 在读权重之前一次占用并保留到最后，{processes} "
         "用于进程本身（驱动、库与线程的上限：节点上每多一个 rank 增加 "
         "{of_rank}）；读写都经过每个 rank {ring} 的中转缓冲"},
        {}},
    Wording{"underkeel-enough-ranks",
            {"offload of the optimizer would take {freed} off a rank's device, and is not built "
             "yet; {ranks} ranks at stage 3 ({nodes} nodes of this kind) do without it: {device} "
             "of {allowed} a rank, global batch {batch}",
             "把优化器卸载到主机可从每个 rank 的设备移走 {freed}，但尚未实现；stage 3 下 {ranks} "
             "个 rank（同样的节点 {nodes} 个）可以不用它：每个 rank {device}，可用 "
             "{allowed}，全局批 {batch}"},
            {"{place}{words}", "{place}{words}"}},
    Wording{
        "underkeel-offload-not-built",
        {"offload of the optimizer would take {freed} off a rank's device, and is not built yet",
         "把优化器卸载到主机可从每个 rank 的设备移走 {freed}，但尚未实现"},
        {}},
    Wording{"underkeel-logits",
            {"of logits {piece} exist at once, in pieces of rows; whole they would be {whole} in "
             "f32 ({rows} rows)",
             "logits 按行分块，同时只有 {piece}；整个保留则为 f32 的 {whole}（{rows} 行）"},
            {}},
    Wording{
        "underkeel-evaluation-logits",
        {"in an evaluation {piece} of logits exist at once, however many samples there are; one "
         "whole batch would be {whole} in f32 ({rows} rows)",
         "评估时不论样本多少，同时只有 {piece} 的 logits；一个完整批次为 f32 的 {whole}（{rows} "
         "行）"},
        {}},
    Wording{"underkeel-resume",
            {"on a resume a rank reads at most {read} of the state, its own share ({ranks} ranks "
             "read {all} together, {mean} each on average; a share is whole blocks of {block} "
             "elements of a tensor, so of small tensors one rank has more than another), through "
             "{ring} of staging that a fresh run has too; device peak of the resume {resume}, of a "
             "step "
             "{step}; any number of ranks may resume",
             "恢复时每个 rank 至多读取 {read} 状态，即自己的一份（{ranks} 个 rank 共读取 "
             "{all}，平均每个 {mean}；一份由张量中 {block} "
             "个元素的整块组成，张量小时各 rank 多少不一），经过全新运行也有的 {ring} "
             "暂存；恢复的设备峰值 "
             "{resume}，一步的峰值 {step}；可用任意 rank 数恢复"},
            {}},
    Wording{"underkeel-state-does-not-fit",
            {"does not fit: model state alone is {state} a rank, {limit} are there",
             "放不下：仅模型状态每个 rank 就有 {state}，只有 {limit}"},
            {"{do}", "{do}"}},
    Wording{"advice-without-model",
            {"no model is given: the figures in answers to advice are those of Llama-2-7B, on "
             "{ranks} ranks with {card} each",
             "没有给出模型：对各种建议的回答按 Llama-2-7B 计，{ranks} 个 rank，每个 {card}"},
            {"give the model's folder or config.json", "请给出模型文件夹或 config.json"}},
    Wording{
        "advice-without-machine",
        {"no machine is given: the figures in answers to advice are those of cards with {card}, "
         "on {ranks} ranks",
         "没有给出机器：对各种建议的回答按每卡 {card}、{ranks} 个 rank 计"},
        {"give --hardware or --memory device=80GiB",
         "请给出 --hardware 或 --memory "
         "device=80GiB"}},
    Wording{"ranks-counted",
            {"{ranks} ranks, {on_node} on a node: {source}",
             "{ranks} 个 rank，每节点 {on_node} 个：{source}"},
            {}},
};

}  // namespace

std::span<const Wording> config_wordings() {
  return wordings;
}

}  // namespace underkeel::doctor
