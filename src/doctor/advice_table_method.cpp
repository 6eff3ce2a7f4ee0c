// One entry a piece of advice on another method, precision, optimizer, stage or machine. The figures:
// advice_method_figures.cpp; the words: wording_advice_method.cpp.

#include <array>

#include "doctor/advice_rules.h"

namespace underkeel::doctor {
namespace {

constexpr std::array method_rules = {
    AdviceRule{
        .id = "advice-switch-stage",
        .words =
            "~z0~|~z1~|~z2~|~z3~ & "
            "~use|~using~|~try|~switch|~chang|~go~|~going~|~move|~set~|~enabl|~fall "
            "back|~drop|~instead~|~rather|~need|~run|~better~|~just~|~want|需要|必要|"
            "necessary|换|用|改|切|设|上|试|开|降 & "
            "!offload|卸载|faster|~device_map|gather|pointless|low_cpu_mem|one "
            "gpu|single gpu|更快|~fits~|~enough~|就够|足够|够了|单卡|uses less|needs less|less "
            "memory|needs more|takes less|takes more|uses more|更占|更省|collects|more "
            "memory|save_checkpoint|save_model",
        .decided_by = "stage",
        .is_action = true,
        .number = Quantity::stage,
        .unless = "advice-stage-3-one-gpu"},
    AdviceRule{.id = "advice-ddp",
               .words = "~ddp~|distributeddataparallel|distributed data "
                        "parallel|dataparallel|数据并行 & !data-parallel "
                        "ranks",
               .decided_by = "ddp",
               .is_action = true},
    AdviceRule{.id = "advice-half-for-half",
               .words = "~bf16~|~bfloat16~ & ~fp16~|~float16~|half precision|half-precision & "
                        "instead of|rather than|in place of|~from~|~switch|~than~|~over~|~replac|"
                        "换|改|而不是|代替|比 & !fp32|float32|32-bit|32 bit|32位|32 位|~or~|both|"
                        "either|或|都",
               .decided_by = "half_for_half",
               .is_action = true},
    AdviceRule{.id = "advice-16-bit",
               .words = "~bf16~|~bfloat16~|~fp16~|~float16~|half precision|half-precision|mixed "
                        "precision|mixed-precision|~amp~|半精度|混合精度 & "
                        "~use|~using~|~try|~switch|~train|~enable|~set|true|~instead|~turn|~go~|~"
                        "halve|~need|necessary|需要|必要|用|开|换|改|设|启用|试 & "
                        "!~load|from_pretrained|torch_dtype|pure_bf16|purebf16|纯bf16|加载|master_"
                        "weights|optimizer_states",
               .decided_by = "precision",
               .is_action = true,
               .unless = "advice-half-for-half"},
    AdviceRule{.id = "advice-16-bit-master",
               .words = "bf16_master_weights|fp16_master_weights|bf16_optimizer_states",
               .decided_by = "master",
               .is_action = true},
    AdviceRule{.id = "advice-pure-bf16",
               .truth = Truth::is_half,
               .words = "pure_bf16|pure bf16|purebf16|纯bf16|纯 bf16",
               .is_action = true},
    AdviceRule{.id = "advice-8-bit-adam",
               .words =
                   "8-bit adam|8bit adam|8 bit adam|adamw_8bit|adamw_bnb_8bit|adam8bit|adamw8bit|"
                   "8-bit optimizer|8bit optimizer|8-bit optim|adam 8-bit|adam 8bit|adamw "
                   "8bit|adamw 8-bit|"
                   "paged_adamw_8bit|"
                   "paged 8-bit|paged 8bit|bitsandbytes optimizer|bnb "
                   "optimizer|8位adam|8位优化器|8bit优化器|"
                   "8bit的优化器|8 位优化器|8比特优化器|8bit adamw|8-bit adamw",
               .decided_by = "adam_8bit",
               .is_action = true},
    AdviceRule{
        .id = "advice-paged-adam-32",
        .words =
            "paged_adamw_32bit|paged_adamw~|paged_adam~|paged adam|paged optimizer|分页优化器 & "
            "!8bit|8-bit|8 bit|8位",
        .decided_by = "paged",
        .is_action = true},
    AdviceRule{.id = "advice-other-optimizer",
               .words = "~adafactor~|~lion~|~sgd~|~rmsprop~",
               .decided_by = "one_moment",
               .is_action = true},
    AdviceRule{.id = "advice-unknown-optimizer",
               .truth = Truth::is_unknown,
               .words = "~galore~|~lomo~|~adalomo~|~badam~|~apollo~|~adam-mini~|~adam mini~|~muon~|"
                        "~q-galore~|use_galore|use_badam|use_apollo",
               .is_action = true},
    AdviceRule{.id = "advice-load-quantised",
               .words = "4bit|4-bit|4 bit|8bit|8-bit|8 bit|~int8~|~int4~|load_in_4bit|load_in_8bit|"
                        "quantization_bit|~qlora~|~nf4~|量化|~quantiz|~quantis|4位|8位 & "
                        "!adam|optim|10 gb|10gb|10 g|优化器|~fp8",
               .decided_by = "quantised",
               .is_action = true,
               .number = Quantity::bits},
    AdviceRule{
        .id = "advice-lora-rank",
        .words = "lora_rank|lora rank|rank of lora|lora_r~|lora r~|~rank of the lora|lora的秩|lora "
                 "秩|lora秩|lora的rank|~lora_dim",
        .decided_by = "rank",
        .is_action = true,
        .number = Quantity::rank,
        .unless = "advice-lora-instead",
        .on_full_run = "advice-lora-instead"},
    AdviceRule{.id = "advice-lora-targets",
               .words = "lora_target|target_modules|target modules|lora target|q_proj & "
                        "~only~|~fewer|~reduc|q_proj|~less~|~instead|只|减少",
               .decided_by = "targets",
               .is_action = true},
    AdviceRule{
        .id = "advice-more-gpus",
        .words =
            "~gpus~|~cards~|~gpu~|~card~|a100|h100|h800|a800|4090|3090|~nodes|显卡|张卡|块卡|多卡|"
            "卡 & ~more~|~multiple~|~another~|~additional~|~several~|~second~|~add~|~use 2|~use "
            "4|~use 8|~2 |~4 |~8 |~16 "
            "|~extra~|~two~|~four~|~eight~|~multi|~doubl|~twice|~tripl|~quadrupl|~number "
            "of|加倍|翻倍|翻一番|倍的|再加|多卡|加卡|加显卡|加张卡|加块卡|加几张|多用|多加|"
            "更多|增加|多张|两张|加一张|双卡|几张|8卡|4卡|2卡|8张|4张|2张 & "
            "~use|~using|~add|~buy|~rent|~need|~try|~get|~with~|~run|~distribut|~spread|用|加|买|"
            "上|租|要|靠|翻|~increas|~doubl|~twice|~tripl|~quadrupl & !each card|each gpu|every "
            "gpu|replicat|~ram~|memory size|per gpu|on one "
            "gpu|single|batch_size|num_workers|dataloader|~worker|other "
            "process|killed|device_map|own|~memory than|z1|z2|z3",
        .decided_by = "gpus",
        .is_action = true,
        .number = Quantity::gpus},
    AdviceRule{
        .id = "advice-larger-gpu",
        .words =
            "bigger gpu|larger gpu|gpu with more|more vram|bigger card|larger card|better gpu|80gb "
            "gpu|80gb card|more gpu memory|more gpu "
            "ram|更大的显卡|显存更大|用大显存|更大显存|换a100|换h100|换 a100|换 h100|换成a100|换成 "
            "a100|换张卡|大点的卡|大一点的卡|好点的卡|换显卡 & !than z|z2|z3",
        .decided_by = "alone",
        .is_action = true},
    AdviceRule{
        .id = "advice-more-ram",
        .words =
            "~ram~|system memory|host memory|cpu memory|main memory|内存|主存 & "
            "~more~|~buy~|~add~|~increas|~upgrad|~bigger|~larger|~expand|加|买|升级|扩|增大|更大 & "
            "!~swap|gpu ram|gpu memory|swap|交换|显存|vram|内存不足|梯度|碎片|pin|锁页|recompute",
        .decided_by = "host",
        .is_action = true},
    AdviceRule{.id = "advice-swap",
               .truth = Truth::is_false,
               .words = "~swap~|swapfile|swap file|swap space|交换分区|交换空间|虚拟内存|pagefile "
                        "& !offload|buffer|nvme",
               .is_action = true},
    AdviceRule{
        .id = "advice-other-processes",
        .words =
            "other process|zombie process|kill all|kill the process|kill other|kill -9|restart "
            "the kernel|restart kernel|restart the runtime|restart your|reboot|~fuser~|gpu is "
            "used by|other program|僵尸进程|别的进程|其他进程|杀掉进程|杀进程|kill掉|重启",
        .decided_by = "alone",
        .is_action = true},
    AdviceRule{.id = "advice-fsdp",
               .truth = Truth::is_half,
               .words = "~fsdp~|fully sharded|fully-sharded|~fsdp2~",
               .is_action = true},
    AdviceRule{.id = "advice-other-program",
               .truth = Truth::is_unknown,
               .words = "~unsloth~|~megatron|~colossal|~axolotl~|~torchtune~|~xtuner~|~swift~|~"
                        "nemo~|use_unsloth|"
                        "~llm-foundry~",
               .is_action = true},
    AdviceRule{.id = "advice-fused-loss",
               .words = "~liger|fused cross|fused linear|chunked cross|cut cross|fused "
                        "loss|enable_liger_kernel|"
                        "chunked loss|融合交叉熵",
               .decided_by = "fused_loss",
               .is_action = true},
    AdviceRule{.id = "advice-use-cache",
               .truth = Truth::is_half,
               .words = "use_cache|kv cache|kv-cache|kv缓存 & ~false~|~disable|~off~|turn "
                        "off|turned off|switch off|~no~|关|关闭|关掉|禁用",
               .is_action = true},
    AdviceRule{.id = "advice-accumulation",
               .truth = Truth::is_false,
               .words = "accumulation|gradient_accumulation_steps|梯度累积|梯度累加 & "
                        "~increas|~rais|~do~|~simulat|~instead|~more~|~larger|~higher|~bigger|~use|"
                        "~using|~set~|~enabl|~try|=|: |saves|增大|增加|调大|用|开|加|设|提高 & "
                        "!eval_acc|boundary|~save at|loss by",
               .is_action = true,
               .number = Quantity::accumulation},
    AdviceRule{
        .id = "advice-evaluation-batch",
        .words =
            "per_device_eval_batch_size|eval_batch_size|eval batch|evaluation batch|"
            "prediction_loss_only|eval_strategy|evaluation_strategy|"
            "disable eval|turn off eval|skip eval|without eval|no "
            "eval|do_eval|val_size|评估|验证集|关闭验证|关掉验证 & "
            "~no~|~off~|~disable|~reduc|~lower|~smaller|~skip|~set~|~to~|=|: |~1~|~use|false|turn "
            "off|without|小|低|关|不|减|设|改 & !temporar|no_grad",
        .decided_by = "evaluation",
        .is_action = false,
        .number = Quantity::evaluation_batch},
    AdviceRule{.id = "advice-evaluation-accumulation",
               .truth = Truth::is_half,
               .words = "eval_accumulation_steps",
               .is_action = true},
    AdviceRule{.id = "advice-offload-optimizer",
               .words = "offload|zero-offload|卸载 & "
                        "~cpu~|~optimizer|~host~|~ram~|~use|~using|~try|~enabl|~turn|~need|"
                        "necessary|~help|~disable|需要|必要|有用|没用|关|别|开|用|启用|到内存|"
                        "到cpu|优化器|加 & !~z3~|nvme|~disk|~ssd|bandwidth|pin|~swap|without "
                        "offload|no offload|~stay|~60|~70|~enough|~suffic|faster|saves more|more "
                        "than|zero_force|zero_offload|~before|pipeline|fast_init|够|offload_param|"
                        "offload param|offload the param|offloading "
                        "param|参数卸载|卸载参数|activation|激活|cpu_offload_use|both are",
               .decided_by = "offload",
               .is_action = true,
               .unless = "advice-drop-optimizer-offload",
               .amount_of = "offload_run"},
    AdviceRule{.id = "advice-optimizer-on-nvme",
               .words =
                   "~nvme~|~ssd~|~disk~|硬盘|固态|磁盘 & ~optimizer|offload_optimizer|优化器 & "
                   "offload|~use|卸载|~try|~put|~mov|~keep|用|放|移 & "
                   "!param|weights|参数|权重|pipeline|fast_init|aio",
               .decided_by = "optimizer_on_nvme",
               .is_action = true},
    AdviceRule{
        .id = "advice-offload-nvme",
        .words =
            "~nvme~|~ssd~|zero-infinity|zero infinity|offload to disk|disk offload|硬盘|固态 & "
            "offload|zero-infinity|zero infinity|~use|卸载|~try|用 & !pipeline|fast_init|aio",
        .decided_by = "nvme",
        .is_action = true,
        .unless = "advice-optimizer-on-nvme"},
    AdviceRule{.id = "advice-offload-parameters",
               .truth = Truth::is_false,
               .words = "offload_param|parameter offload|offloading param|param "
                        "offload|参数卸载|卸载参数 & ~z0~|~z1~|~z2~ & "
                        "~work|~support|~with~|~under~|~at~|~can~|支持|配合|可以|能|可用 & "
                        "!~z3~|~only~|只有|只能|仅",
               .unless = "advice-drop-optimizer-offload"},
    AdviceRule{.id = "advice-offload-parameters",
               .truth = Truth::is_half,
               .words = "offload_param|offload param|parameter offload|offload the param|param "
                        "offload|参数卸载|卸载参数 & "
                        "!pin|zero_force|bandwidth|only stage|pointless",
               .is_action = true,
               .unless = "advice-drop-optimizer-offload"},
    AdviceRule{.id = "advice-offload-parameters",
               .truth = Truth::is_half,
               .words = "参数 & 卸载到 & !优化器",
               .is_action = true,
               .unless = "advice-drop-optimizer-offload"},
    AdviceRule{.id = "advice-smaller-model",
               .words = "smaller model|small model|smaller version|smaller variant|fewer "
                        "parameters|小模型|更小的模型|"
                        "小一点的模型|换小|换个小|model size",
               .decided_by = "smaller_model",
               .is_action = true},
    AdviceRule{
        .id = "advice-freeze",
        .truth = Truth::is_half,
        .words =
            "~freez|~frozen|requires_grad = false|requires_grad=false|requires_grad_(false)|冻结 & "
            "~layer|embed|~param|~weights|requires_grad|backbone|~bottom|层|嵌入|参数|词",
        .is_action = true},
    AdviceRule{.id = "advice-memlock",
               .words = "ulimit|~memlock~|锁页上限|cap_ipc_lock|ipc_lock",
               .decided_by = "page_lock",
               .is_action = true},
    AdviceRule{.id = "advice-workers",
               .truth = Truth::is_false,
               .words = "num_workers|dataloader_num|preprocessing_num_workers|data loader "
                        "workers|dataloader workers|"
                        "shm-size|shm_size|--ipc=host|ipc: "
                        "host|/dev/shm|共享内存|prefetch_factor|persistent_workers|"
                        "数据加载进程",
               .is_action = true},
    AdviceRule{
        .id = "advice-fewer-samples",
        .truth = Truth::is_false,
        .words =
            "fewer samples|smaller dataset|less data|fewer epochs|max_samples|reduce the dataset|"
            "reduce epochs|num_train_epochs|smaller data "
            "set|减少数据|数据量|少一点数据|减少样本|减少轮数|减少epoch & "
            "!~batch",
        .is_action = true},
    AdviceRule{.id = "advice-save-model-only",
               .truth = Truth::is_half,
               .words = "save_only_model|save only the model|只保存模型",
               .is_action = true},
    AdviceRule{.id = "advice-fewer-checkpoints",
               .truth = Truth::is_false,
               .words = "save_total_limit|fewer checkpoints|save less often|少保存|减少保存|"
                        "少存几个|只保留",
               .is_action = true,
               .number = Quantity::checkpoints},
    AdviceRule{
        .id = "advice-speed-only",
        .truth = Truth::is_false,
        .words =
            "~tf32~|allow_tf32|cudnn.benchmark|cuda_launch_blocking|torch.compile|torch_compile|"
            "nccl_p2p_disable|nccl_ib_disable",
        .is_action = true},
};

}  // namespace

std::span<const AdviceRule> method_advice() {
  return method_rules;
}

}  // namespace underkeel::doctor
