// What answers to advice on another method, precision, optimizer, stage or machine say: slots are figures of
// advice_method_figures.cpp.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array method_wording_table = {
    Wording{
        "advice-switch-stage",
        {"{truth}: weights, gradients, optimizer state and buffers take {state_now} of each GPU at "
         "stage {stage_now} as the run is and {state_at_stage} at stage {stage_said}, on {ranks} "
         "ranks with {card} each; activations come on top, at least {activations}",
         "{truth}：权重、梯度、优化器状态和缓冲在现在的 stage {stage_now} 占每张 GPU "
         "{state_now}，在 "
         "stage {stage_said} 占 {state_at_stage}（{ranks} 个 rank，每个 {card}）；激活另算，至少 "
         "{activations}"},
        {}},
    Wording{
        "advice-ddp",
        {"{truth}: plain data parallelism keeps the whole state on each GPU, {state_at_0} with the "
         "activations on top; at stage {stage_now} on {ranks} ranks it is {state_now}",
         "{truth}：普通数据并行在每张 GPU 上保留完整状态，为 {state_at_0}，激活另算；stage "
         "{stage_now}、{ranks} 个 rank 时为 {state_now}"},
        {}},
    Wording{
        "advice-16-bit",
        {"{truth}: the run trains in {precision_now}; state takes {state_32_bit} of each GPU in 32 "
         "bit "
         "and {state_16_bit} in mixed precision, which keeps f32 masters and moments beside "
         "16-bit weights; activations take at least {activations_32_bit} and {activations_16_bit}",
         "{truth}：该训练用的是{precision_now}；状态在 32 位下占每张 GPU "
         "{state_32_bit}，混合精度下占 {state_16_bit}，因为除 16 位权重外还要保留 f32 "
         "主权重和动量；激活至少占 {activations_32_bit} 和 {activations_16_bit}"},
        {}},
    Wording{
        "advice-half-for-half",
        {"{truth}: fp16 and bf16 both take 2 bytes an element: state takes {state_16_bit} of each "
         "GPU and activations at least {activations_16_bit} with either; the run trains in "
         "{half_now}. fp16 adds a loss scale, bf16 has the range of f32 and needs none",
         "{truth}：fp16 和 bf16 每个元素都是 2 字节：两者的状态都占每张 GPU "
         "{state_16_bit}，激活都至少占 {activations_16_bit}；该训练用的是{half_now}。fp16 "
         "需要损失缩放，bf16 的范围与 f32 相同，不需要"},
        {}},
    Wording{
        "advice-16-bit-master",
        {"{truth}: bf16_master_weights_and_grads (fp16 has the like) keeps the master weights and "
         "their gradients in 16 bit at stages 1 to 3: {master_16} a rank instead of {master_32} "
         "for each of the two, moments stay in f32, {moments_32}. It needs DeepSpeed's Adam on "
         "the CPU (here the optimizer lies {optimizer_on}, stage {stage_now}), or the run stops "
         "at start; with bf16_optimizer_states too it needs no offload, and moments take "
         "{moments_16}. Updates below the precision of 16 bits are lost",
         "{truth}：bf16_master_weights_and_grads（fp16 也有对应的键）在 stage 1 到 3 "
         "把主权重及其梯度以 16 位保存：两者在每个 rank 各占 {master_16} 而不是 "
         "{master_32}，动量仍为 f32，占 {moments_32}。它需要 DeepSpeed 在 CPU 上的 "
         "Adam（此处优化器{optimizer_on}，stage {stage_now}），否则启动时停止；同时设 "
         "bf16_optimizer_states 则不需要卸载，动量占 {moments_16}。低于 16 位精度的更新会丢失"},
        {}},
    Wording{
        "advice-set-key",
        {"{truth}: with {setting} a GPU needs {low_then} to {high_then}, with the run as it is "
         "{low_now} to {high_now}; of that state and buffers take {state_then} and {state_now}, "
         "and a node needs at least {host_then} and {host_now} of host memory. The key acts at "
         "stages {acts}, the run is at stage {stage_now}",
         "{truth}：设 {setting} 时每张 GPU 需要 {low_then} 到 {high_then}，现在需要 {low_now} 到 "
         "{high_now}；其中状态和缓冲占 {state_then} 和 {state_now}，每个节点至少需要主机内存 "
         "{host_then} 和 {host_now}。该键在 stage {acts} 起作用，该训练为 stage {stage_now}"},
        {}},
    Wording{
        "advice-set-key-refused",
        {"{truth}: with {setting} the config would be refused as it stands, at stage {stage_now}",
         "{truth}：设 {setting} 后，该配置在 stage {stage_now} 会被拒绝"},
        {"give deepspeed.{setting} behind the files: doctor then says which rule it breaks",
         "在文件之后给出 deepspeed.{setting}，doctor 会指出违反了哪条规则"}},
    Wording{
        "advice-pure-bf16",
        {"{truth}: with pure_bf16 weights, gradients and moments of all ranks take {pure_16_bit} "
         "instead of {adam_whole}, without DeepSpeed; DeepSpeed makes its f32 master and moments "
         "all "
         "the same, unless its own keys say otherwise, and updates below the precision of bf16 are "
         "lost",
         "{truth}：不用 DeepSpeed 时，pure_bf16 使全部 rank 的权重、梯度和动量占 {pure_16_bit} "
         "而不是 "
         "{adam_whole}；DeepSpeed 仍会建立 f32 主权重和动量，除非它自己的键另有规定，而且低于 bf16 "
         "精度的更新会丢失"},
        {}},
    Wording{"advice-8-bit-adam",
            {"{truth}: the moments take {moments_device} of each GPU here and {moments_8bit} with "
             "8 bits; with optimizer offload they lie in host memory in fp32, and nothing changes "
             "there; paging moves them between GPU and host, and ZeRO takes another Adam only with "
             "zero_allow_untested_optimizer",
             "{truth}：动量在此占每张 GPU {moments_device}，8 位时为 "
             "{moments_8bit}；卸载优化器时它们以 fp32 放在主机内存，没有变化；分页只是在 GPU "
             "与主机之间搬运，且 ZeRO 只有设置 zero_allow_untested_optimizer 才接受其他 Adam"},
            {}},
    Wording{
        "advice-paged-adam-32",
        {"{truth}: a paged Adam in 32 bit keeps both moments as they are, {moments_device} of each "
         "GPU "
         "here; it only moves them to host memory when the GPU is full, at a cost in time. ZeRO "
         "takes it only with zero_allow_untested_optimizer; in 8 bit they would take "
         "{moments_8bit}",
         "{truth}：32 位的分页 Adam 两个动量不变，在此占每张 GPU {moments_device}；只是在 GPU "
         "满时把它们移到主机内存，以时间为代价。ZeRO 只有设置 zero_allow_untested_optimizer "
         "才接受它；8 位时为 {moments_8bit}"},
        {}},
    Wording{
        "advice-other-optimizer",
        {"{truth}: Adam's two moments take {moments_device} of each GPU here; Lion and SGD with "
         "momentum "
         "keep one, {moments_of_one}, SGD without momentum none, Adafactor {moments_factored} (of "
         "the flat shards of ZeRO it cannot keep rows and columns). It is another training, "
         "and ZeRO takes optimizers of others only with zero_allow_untested_optimizer",
         "{truth}：Adam 的两个动量在此占每张 GPU {moments_device}；Lion 和带动量的 SGD 只有一个，"
         "{moments_of_one}，不带动量的 SGD 没有，Adafactor 为 {moments_factored}（对 ZeRO "
         "的一维分片它无法按行列分解）。这是另一种训练，且 ZeRO 只有设置 "
         "zero_allow_untested_optimizer 才接受其他优化器"},
        {}},
    Wording{
        "advice-unknown-optimizer",
        {"{truth}: doctor has no figures of this optimizer; what it could spare at most are Adam's "
         "moments, {moments_device} of each GPU here, of the {state_now} that the state takes",
         "{truth}：doctor 没有这种优化器的数字；它最多能省下 Adam 的动量，在此每张 GPU "
         "{moments_device}，而状态共占 {state_now}"},
        {}},
    Wording{
        "advice-qlora",
        {"{truth}: the 4-bit base is {base_4bit} here, {card} are there: {base_4bit_fits}; as the "
         "run is it takes {qlora_run_low} to {qlora_run_high} with the activations, and it is "
         "another method",
         "{truth}：4 位基座在此为 {base_4bit}，现有 "
         "{card}：{base_4bit_fits}；按现有训练连同激活为 {qlora_run_low} 到 "
         "{qlora_run_high}，且是另一种方法"},
        {}},
    Wording{
        "advice-load-quantised",
        {"{truth}: a base in {bits_said} bits takes {base_of_bits} and only adapters are trained "
         "on it; "
         "state takes {state_of_bits} of each GPU then, {state_now} as it is ({method_now}); "
         "DeepSpeed does not split a quantised base at stage 3, and activations stay the same",
         "{truth}：{bits_said} 位的基座占 {base_of_bits}，其上只能训练适配器；那时状态占每张 GPU "
         "{state_of_bits}，现在为 {state_now}（{method_now}）；DeepSpeed 在 stage 3 "
         "不切分量化基座，激活不变"},
        {}},
    Wording{
        "advice-lora-rank",
        {"{truth}: weights, gradients and Adam state of the adapters take {adapters_now} at rank "
         "{rank_now} and {adapters_at_rank} at rank {rank_said}, over all ranks together; the "
         "frozen base takes {base_frozen} either way",
         "{truth}：适配器的权重、梯度和 Adam 状态在秩 {rank_now} 时共占 {adapters_now}，秩 "
         "{rank_said} "
         "时占 {adapters_at_rank}；冻结的基座都占 {base_frozen}"},
        {}},
    Wording{
        "advice-lora-targets",
        {"{truth}: weights, gradients and Adam state of the adapters take {adapters_now} "
         "{targets_now} "
         "and {adapters_of_two} with q_proj and v_proj alone; the frozen base "
         "takes {base_frozen} either way",
         "{truth}：适配器的权重、梯度和 Adam 状态{targets_now}占 {adapters_now}，只用 q_proj 和 "
         "v_proj "
         "时占 {adapters_of_two}；冻结的基座都占 {base_frozen}"},
        {}},
    Wording{
        "advice-more-gpus",
        {"{truth}: at stage {stage_now} state takes {state_now} of each GPU on {ranks} ranks and "
         "{state_of_more} on {ranks_said}; activations stay the same, and a node then needs at "
         "least {host_of_more} of host memory ({host_now} now)",
         "{truth}：在 stage {stage_now}，状态在 {ranks} 个 rank 时占每张 GPU {state_now}，在 "
         "{ranks_said} "
         "个时占 {state_of_more}；激活不变，每个节点那时至少需要 {host_of_more} 主机内存（现在 "
         "{host_now}）"},
        {}},
    Wording{"advice-larger-gpu",
            {"{truth}: the run needs at least {needed_least} of a GPU, {card} are there; a larger "
             "card helps "
             "only where it has that much",
             "{truth}：该训练至少需要 GPU 显存 {needed_least}，现有 "
             "{card}；更大的卡只有达到这个数才有用"},
            {}},
    Wording{
        "advice-more-ram",
        {"{truth}: a node needs at least {host_now} of host memory here (available: {host_limit}), "
         "each "
         "GPU at least {needed_least} of {card}; what a GPU lacks host memory gives only through "
         "offload: {offload_remedy}",
         "{truth}：每个节点在此至少需要 {host_now} 主机内存（可用：{host_limit}），每张 GPU "
         "至少需要 "
         "{needed_least}，共 {card}；GPU 缺的只有通过卸载才能由主机内存提供：{offload_remedy}"},
        {}},
    Wording{"advice-other-processes",
            {"{truth}: what other programs hold on the GPU is not known here, nvidia-smi tells; "
             "alone on the "
             "card the run needs at least {needed_least}, {card} are there",
             "{truth}：其他程序占了多少 GPU 这里不知道，可用 nvidia-smi 查看；独占时该训练至少需要 "
             "{needed_least}，现有 {card}"},
            {}},
    Wording{"advice-fsdp",
            {"{truth}: FSDP with full sharding splits what stage 3 splits: {state_at_3} of state a "
             "rank on "
             "{ranks} ranks, {state_now} as the run is; doctor has no figures of its buffers",
             "{truth}：完全分片的 FSDP 与 stage 3 切分的相同：{ranks} 个 rank 时每个 rank 的状态为 "
             "{state_at_3}，现在为 {state_now}；doctor 没有它的缓冲的数字"},
            {}},
    Wording{
        "advice-other-program",
        {"{truth}: doctor has no figures of that program; weights, gradients and Adam state of all "
         "that is trained here take {adam_whole} in any, in mixed precision and without offload",
         "{truth}：doctor 没有那个程序的数字；此处所训练的权重、梯度和 Adam "
         "状态在任何程序里，混合精度且不卸载时都占 {adam_whole}"},
        {}},
    Wording{
        "advice-fused-loss",
        {"{truth}: kernels that fuse the loss hold no whole logits, which with their gradients "
         "take "
         "{logits_low} to {logits_high} for {batch} tokens here; the peak of activations, at least "
         "{activations}, falls by up to {logits_saved}",
         "{truth}：融合损失的内核不保留整块 logits，后者连同梯度对 {batch} 个 token 在此为 "
         "{logits_low} 到 "
         "{logits_high}；激活的峰值至少 {activations}，最多下降 {logits_saved}"},
        {}},
    Wording{"advice-use-cache",
            {"{truth}: the cache of keys and values would take {kv_cache} for {batch} tokens; with "
             "gradient "
             "checkpointing transformers switches it off by itself (here it is {recompute_now})",
             "{truth}：键值缓存对 {batch} 个 token 占 {kv_cache}；启用梯度检查点时 transformers "
             "会自行关闭它（此处{recompute_now}）"},
            {}},
    Wording{
        "advice-accumulation",
        {"{truth}: accumulation takes nothing off: activations take at least {activations} with "
         "micro-batch "
         "{micro}, with gradient_accumulation_steps {steps} as with {steps_said}; only a smaller "
         "micro-batch does, and accumulation then keeps the batch",
         "{truth}：累积本身不省任何东西：微批 {micro} 时激活至少占 {activations}，"
         "gradient_accumulation_steps 为 {steps} 或 {steps_said} "
         "都一样；只有减小微批才省，累积只是保持总批大小"},
        {}},
    Wording{
        "advice-evaluation-batch",
        {"{truth}: this run {evaluates}; an evaluation needs at least {evaluation_now} of a GPU "
         "with batch "
         "{evaluation_batch} and {evaluation_of_one} with per_device_eval_batch_size "
         "{evaluation_batch_said}; a training "
         "step needs at least {step_least}",
         "{truth}：该训练{evaluates}；评估在批大小 {evaluation_batch} 时至少需要 GPU 显存 "
         "{evaluation_now}，per_device_eval_batch_size 为 {evaluation_batch_said} 时 "
         "{evaluation_of_one}；训练步至少需要 "
         "{step_least}"},
        {}},
    Wording{
        "advice-evaluation-accumulation",
        {"{truth}: eval_accumulation_steps only moves predictions that an evaluation keeps to "
         "the host; where only its loss is kept nothing changes. The evaluation itself needs at "
         "least {evaluation_now} of a GPU with batch {evaluation_batch} either way",
         "{truth}：eval_accumulation_steps 只是把评估保留的预测移到主机；只保留损失时没有变化。"
         "评估本身在批大小 {evaluation_batch} 时都至少需要 GPU 显存 {evaluation_now}"},
        {}},
    Wording{"advice-offload-optimizer",
            {"{truth}: with the optimizer on the host at stage {offload_stage} a GPU needs "
             "{offload_least} to "
             "{offload_most} with the activations, {card} are there; a node needs at least "
             "{offload_host} of host memory {offload_host_phase} (available: {host_limit}). Here "
             "the optimizer lies "
             "{optimizer_on}",
             "{truth}：stage {offload_stage} 且优化器放在主机时，连同激活每张 GPU 需要 "
             "{offload_least} 到 "
             "{offload_most}，现有 {card}；每个节点至少需要 {offload_host} "
             "主机内存，{offload_host_phase}（可用：{host_limit}）。此处优化器{optimizer_on}"},
            {}},
    Wording{"advice-offload-parameters",
            {"{truth}: offload_param acts at stage 3 alone; it moves the {weights_16} of all "
             "weights to the "
             "host, of which a rank has its share on {ranks} ranks; with the optimizer there too a "
             "GPU keeps at most {stage3_offload} before activations",
             "{truth}：offload_param 只在 stage 3 起作用；它把全部权重的 {weights_16} "
             "移到主机，{ranks} 个 "
             "rank 各有一份；优化器也卸载时，不计激活每张 GPU 最多保留 {stage3_offload}"},
            {}},
    Wording{"advice-optimizer-on-nvme",
            {"{truth}: with the optimizer on NVMe at stage 3 a GPU needs {optimizer_nvme_least} to "
             "{optimizer_nvme_most} with the activations, {card} are there; the disk of a node "
             "takes {optimizer_nvme_need}, and each update reads and writes the optimizer state. "
             "Here it lies {optimizer_on}; stages 1 and 2 take nvme for cpu",
             "{truth}：stage 3 且优化器在 NVMe 时，连同激活每张 GPU 需要 {optimizer_nvme_least} "
             "到 {optimizer_nvme_most}，现有 {card}；每个节点的磁盘占 "
             "{optimizer_nvme_need}，每次更新都要读写优化器状态。此处优化器{optimizer_on}；stage "
             "1 和 2 把 nvme 当作 cpu"},
            {}},
    Wording{"advice-offload-nvme",
            {"{truth}: with optimizer and parameters on NVMe a GPU needs {nvme_least} to "
             "{nvme_most} with the "
             "activations, {card} are there; the disk of a node takes {nvme_need}, and each update "
             "reads and writes the optimizer state",
             "{truth}：优化器和参数都在 NVMe 时，连同激活每张 GPU 需要 {nvme_least} 到 "
             "{nvme_most}，现有 "
             "{card}；每个节点的磁盘占 {nvme_need}，每次更新都要读写优化器状态"},
            {}},
    Wording{
        "advice-smaller-model",
        {"{truth}: this model has {parameters} parameters and its state takes {state_now} of each "
         "GPU; of "
         "full fine-tuning at 16 bytes a parameter {card} on {ranks} ranks hold at most "
         "{parameters_fit} before activations",
         "{truth}：该模型有 {parameters} 个参数，状态占每张 GPU {state_now}；全参数微调按每参数 16 "
         "字节计，{ranks} 个 rank、每个 {card} 时不计激活最多放下 {parameters_fit}"},
        {}},
    Wording{
        "advice-freeze",
        {"{truth}: what is frozen keeps 2 of its 16 bytes a parameter; of the embedding that would "
         "be "
         "{embedding_saved} over all ranks, and activations of layers below the first trained one "
         "are "
         "not kept. doctor counts no partly frozen model otherwise",
         "{truth}：被冻结的参数只保留 16 字节中的 2 字节；冻结词嵌入在全部 rank 上共省 "
         "{embedding_saved}，首个可训练层以下的激活也不保留。除此之外 doctor 不计算部分冻结的模型"},
        {}},
    Wording{"advice-memlock",
            {"{truth}: a limit on locked memory stops runs that page-lock: {pinned} a node here, "
             "{pinned_rounded} when blocks are rounded up; it takes nothing off a GPU",
             "{truth}：锁页上限会使需要锁页的训练停止：此处每节点 {pinned}，块上取整后 "
             "{pinned_rounded}；它不减少 GPU 占用"},
            {}},
    Wording{
        "advice-workers",
        {"{truth}: loader processes and shared memory hold batches of ids on the host, "
         "{batch_bytes} for "
         "{batch} tokens; a GPU lacks the same after it. More shared memory cures a \"Bus "
         "error\" of workers, fewer workers spare host memory",
         "{truth}：加载进程和共享内存在主机上保存 id 批次，{batch} 个 token 为 {batch_bytes}；GPU "
         "的不足不变。加大共享内存可治加载进程的 \"Bus error\"，减少进程可省主机内存"},
        {}},
    Wording{"advice-fewer-samples",
            {"{truth}: the number of samples and epochs changes how long a run takes, not what a "
             "step holds: "
             "at least {needed_least} of each GPU with micro-batch {micro} and {tokens} tokens",
             "{truth}：样本数和轮数影响训练时间，不影响每步占用：微批 {micro}、{tokens} 个 token "
             "时每张 GPU "
             "至少 {needed_least}"},
            {}},
    Wording{"advice-save-model-only",
            {"{truth}: it spares disk, {checkpoint_weights} instead of {checkpoint_whole} a "
             "checkpoint where only "
             "weights are saved, and no memory of a step; without optimizer state a run cannot be "
             "resumed as it was",
             "{truth}：它省磁盘，只存权重时每个检查点为 {checkpoint_weights} 而不是 "
             "{checkpoint_whole}，不省训练步的内存；没有优化器状态就无法原样恢复"},
            {}},
    Wording{
        "advice-fewer-checkpoints",
        {"{truth}: how many checkpoints are kept concerns the disk alone: each takes "
         "{checkpoint_each}, and with save_total_limit {limit_said} at most "
         "{checkpoints_at_once} stand at once, as an old one goes only after the new one is "
         "written (limit now: {limit_now}); a step and a save hold as much memory as before, "
         "at least {needed_least} of each GPU",
         "{truth}：保留多少检查点只影响磁盘：每个占 {checkpoint_each}，save_total_limit 为 "
         "{limit_said} 时最多同时占 "
         "{checkpoints_at_once}，因为新的写完之后才删旧的（现在的上限：{limit_now}）；训练步和保存"
         "占用的内存不变，每张 GPU 至少 {needed_least}"},
        {}},
    Wording{"advice-speed-only",
            {"{truth}: it changes speed or what an error tells, not memory: the state stays at "
             "{state_now} of "
             "each GPU and activations at {activations} at least",
             "{truth}：它影响速度或报错内容，不影响内存：状态仍占每张 GPU {state_now}，激活至少 "
             "{activations}"},
            {}},
};

constexpr std::array method_phrase_table = {
    Phrase{"advice.unknown", {"not known", "无法判断"}},
    Phrase{"advice.against-true",
           {"this speaks against it (said for it: true)", "这里反对这样做（若是赞成则对）"}},
    Phrase{"advice.against-half",
           {"this speaks against it (said for it: half true)", "这里反对这样做（若是赞成则半对）"}},
    Phrase{"advice.against-false",
           {"this speaks against it, rightly (said for it: false)",
            "这里反对这样做，没错（若是赞成则不对）"}},
    Phrase{"advice.against-unknown",
           {"this speaks against it (said for it: not known)",
            "这里反对这样做（若是赞成则无法判断）"}},
    Phrase{"advice.not-this-number", {"not answered for this number", "对这个数字没有判断"}},
    Phrase{"precision.16-bf16",
           {"mixed precision already (bf16 weights, f32 masters; fp16 takes as much)",
            "混合精度（bf16 权重，f32 主权重；fp16 占用相同）"}},
    Phrase{"precision.16-fp16",
           {"mixed precision already (fp16 weights, f32 masters; bf16 takes as much)",
            "混合精度（fp16 权重，f32 主权重；bf16 占用相同）"}},
    Phrase{"precision.bf16", {"bf16", " bf16"}},
    Phrase{"precision.fp16", {"fp16", " fp16"}},
    Phrase{"targets.of-run", {"with the targets of the run", "按现在的目标层"}},
    Phrase{"targets.all", {"on all linear layers", "在全部线性层上"}},
    Phrase{"limit.none", {"none", "没有"}},
    Phrase{"offload.is-on",
           {"offload_optimizer is on already, and what stays on each card is",
            "offload_optimizer 已经开启，每张卡上留下的是"}},
    Phrase{"offload.takes",
           {"offload_optimizer with device cpu in zero_optimization takes off each card",
            "在 zero_optimization 里设 offload_optimizer 的 device 为 cpu，每张卡可减少"}},
    Phrase{"precision.32", {"32 bit", " 32 位"}},
    Phrase{"evaluates.yes", {"evaluates", "有评估"}},
    Phrase{"evaluates.no", {"does not evaluate", "没有评估"}},
};

}  // namespace

std::span<const Wording> method_advice_wordings() {
  return method_wording_table;
}

std::span<const Phrase> method_advice_phrases() {
  return method_phrase_table;
}

}  // namespace underkeel::doctor
