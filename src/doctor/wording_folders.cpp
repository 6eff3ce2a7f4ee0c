// What findings about weights, adapters, checkpoints and tokens say.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{
        "weights-empty",
        {"{count} tensors are empty; the first is {tensor}, of no elements where {shape} is due: "
         "placeholders of a partitioned model were saved ({found} of {expected} parameters found)",
         "有 {count} 个张量为空；第一个是 {tensor}，没有元素，应为 "
         "{shape}：保存的是切分模型的占位符（找到 "
         "{found} 个参数，应有 {expected}）"},
        {"make the weights from the shards: zero_to_fp32.py", "从分片生成权重：zero_to_fp32.py"}},
    Wording{"weights-missing",
            {"{count} tensors are missing; the first is {tensor} ({found} of {expected} parameters "
             "found)",
             "缺少 {count} 个张量；第一个是 {tensor}（找到 {found} 个参数，应有 {expected}）"},
            {"use a whole folder of this model", "使用该模型的完整文件夹"}},
    Wording{"weights-other-shape",
            {"{count} tensors have another shape than the model's; the first is {tensor}: {shape} "
             "where "
             "{wanted} is due ({found} of {expected} parameters found)",
             "有 {count} 个张量与模型形状不符；第一个是 {tensor}：为 {shape}，应为 {wanted}（找到 "
             "{found} "
             "个参数，应有 {expected}）"},
            {"take the config.json that belongs to the weights", "使用与权重配套的 config.json"}},
    Wording{"weights-whole",
            {"the weights are whole: {found} of {expected} parameters, all in their shapes",
             "权重完整：{found} 个参数，应有 {expected}，形状全部正确"},
            {}},
    Wording{"weights-broken",
            {"{what} ({where})", "权重文件有误：{what}（{where}）"},
            {"{fix}", "{fix}"}},
    Wording{
        "weights-headers-large",
        {"the headers and the index of these weights have {bytes}, more than the {most} that are "
         "read here: their tensors were not compared with the model",
         "这些权重的文件头和索引共 {bytes}，超过这里读取的上限 {most}：未将其张量与模型比较"},
        {"a model's are far smaller; `underkeel inspect` reads them whole",
         "一个模型的文件头远小于此；`underkeel inspect` 会完整读取"}},
    Wording{"weights-tied-entry-broken",
            {"{what} ({where}, `{copy}`); the head is tied to `{kept}`, so a file needs none of "
             "its own",
             "权重文件有误：{what}（{where}，`{copy}`）；输出头与 `{kept}` "
             "绑定，文件中不需要单独的一份"},
            {"export again without `{copy}`, in the file and in the index, as `underkeel export` "
             "does: another copy of these files has the same entry",
             "请重新导出，文件和索引中都不含 `{copy}`（`underkeel export` "
             "即如此）；再复制一份这些文件也会有同样的条目"}},
    Wording{"weights-absent",
            {"no weights in it: neither model.safetensors nor model.safetensors.index.json; a run "
             "that begins from it would stop",
             "其中没有权重：既没有 model.safetensors，也没有 "
             "model.safetensors.index.json；从它开始的训练会停止"},
            {"download or copy the weights here; a plan needs config.json alone",
             "请把权重下载或复制到这里；仅做规划只需 config.json"}},
    Wording{"weights-without-index",
            {"{count} files of shards, the first {first}, and no model.safetensors.index.json: no "
             "loader finds them",
             "有 {count} 个分片文件，第一个是 {first}，但没有 "
             "model.safetensors.index.json：加载器找不到它们"},
            {"download or copy the index too", "请把索引也下载或复制过来"}},
    Wording{"output-without-weights",
            {"no weights in the folder itself: the run did not come to its end here",
             "文件夹本身没有权重：训练没有在这里完成"},
            {"take those of a complete checkpoint", "使用完整检查点中的权重"}},
    Wording{"adapter-absent",
            {"no adapter weights in it: adapter_model.safetensors is missing",
             "其中没有适配器权重：缺少 adapter_model.safetensors"},
            {"copy the file here, or take the adapter of a checkpoint",
             "请把该文件复制到这里，或使用检查点中的适配器"}},
    Wording{"adapters-beside-weights",
            {"adapters lie beside the weights ({files}): train, plan, generate and export refuse "
             "the folder, since merging adapters into their base is not built yet",
             "适配器与权重放在一起（{files}）：train、plan、generate 和 export "
             "会拒绝这个文件夹，因为尚未实现把适配器合并进基座"},
            {"merge them with PEFT (merge_and_unload), or, for the base alone, give a folder "
             "without adapter files",
             "请用 PEFT（merge_and_unload）合并；若只要基座，请给出没有适配器文件的文件夹"}},
    Wording{
        "adapters-on-weights",
        {"adapters lie beside the weights ({files}): where PEFT is installed, transformers puts "
         "them on top of what it loads from here; older versions load the base that "
         "base_model_name_or_path names in place of these weights",
         "适配器与权重放在一起（{files}）：装有 PEFT 时，transformers "
         "会把适配器加到从这里加载的模型上；"
         "旧版本加载的是 base_model_name_or_path 指定的基座，而不是这里的权重"},
        {"merge them (merge_and_unload), or move them to a folder of their own",
         "请合并（merge_and_unload），或把它们移到单独的文件夹"}},
    Wording{"adapters-without-weights",
            {"beside the weights there is {files} without adapter_model.safetensors: where PEFT is "
             "installed, transformers looks for the adapters when it loads the folder, and stops",
             "{files} 与权重放在一起，却没有 adapter_model.safetensors：装有 PEFT 时，transformers "
             "加载该文件夹会寻找适配器，并因此停止"},
            {"remove it, or add the adapters' weights", "请删除它，或补上适配器的权重"}},
    Wording{"adapters-without-config",
            {"beside the weights there are adapters ({files}) without adapter_config.json: "
             "transformers does not look at them and loads the weights alone",
             "权重旁边有适配器（{files}），却没有 "
             "adapter_config.json：transformers 不会读取它们，只加载权重"},
            {}},
    Wording{"adapter-config-without-type",
            {"it names no peft_type: PEFT cannot tell what kind of adapters they are",
             "没有 peft_type：PEFT 无法得知适配器的种类"},
            {"take the file that PEFT wrote (\"peft_type\": \"LORA\")",
             "请使用 PEFT 写出的文件（\"peft_type\": \"LORA\"）"}},
    Wording{"adapter-config-alone",
            {"adapters of rank {rank} (lora_alpha {alpha}) for {targets}, on {base}; their weights "
             "and the sizes of their base are not here",
             "秩 {rank} 的适配器（lora_alpha {alpha}），作用于 "
             "{targets}，基座为 {base}；这里没有它们的权重，也不知道基座的大小"},
            {"give adapter_model.safetensors and the base's config.json",
             "请给出 adapter_model.safetensors 和基座的 config.json"}},
    Wording{"adapter-config-of-model",
            {"adapters of rank {rank} (lora_alpha {alpha}) for {targets}, on {base}: {count} "
             "parameters in {tensors} tensors, {size_16} in 16 bit or {size_32} in 32 bit; their "
             "weights are not here",
             "秩 {rank} 的适配器（lora_alpha {alpha}），作用于 {targets}，基座为 {base}：{count} "
             "个参数，{tensors} 个张量，16 位 {size_16} 或 32 位 {size_32}；这里没有它们的权重"},
            {"give adapter_model.safetensors to have it checked; a merge holds the whole base, "
             "{whole} in 16 bit, and is judged beside a machine (--hardware)",
             "请给出 adapter_model.safetensors 以便检查；合并要放下整个基座，16 位为 "
             "{whole}，给出机器（--hardware）时会判断"}},
    Wording{"adapter-is-empty",
            {"the adapter file ({bytes} bytes) holds no tensor",
             "适配器文件（{bytes} 字节）不含任何张量"},
            {"an export under stage 3 has to gather adapters first: take the one inside a "
             "checkpoint, or save at stage 2",
             "stage 3 下导出必须先收集适配器：使用检查点里的那份，或在 stage 2 保存"}},
    Wording{"weights-odd", {"odd weights: {what}", "权重文件可疑：{what}"}, {}},
    Wording{"weights-of-several-types",
            {"the weights are stored in several types: {types}", "权重以多种类型保存：{types}"},
            {}},
    Wording{"tied-head-doubled",
            {"the head is tied to the embedding, and lm_head.weight is stored as well: {bytes} "
             "twice, the same values ({how}); some loaders stop at it",
             "输出头与嵌入绑定，却又保存了 lm_head.weight：重复 "
             "{bytes}，数值相同（{how}）；有的加载器会因此停止"},
            {"leave it out of the export", "导出时去掉它"}},
    Wording{"tied-heads-differ",
            {"{head} and {embedding} differ, though the model ties them: loaders take one or the "
             "other, our engine refuses them",
             "{head} 与 {embedding} 不同，而模型将两者绑定：加载器会任取其一，本引擎拒绝"},
            {"nothing tells which is right: set tie_word_embeddings to false, or remove one",
             "无法判断哪个正确：把 tie_word_embeddings 设为 false，或删除其中一个"}},
    Wording{"weights-finite",
            {"every value looked at is a finite number: {read} of {total} ({how})",
             "查看过的数值都是有限数：{total} 中的 {read}（{how}）"},
            {}},
    Wording{"weights-not-finite",
            {"{count} tensors hold values that are no finite numbers; the first is element "
             "{element} of {tensor} ({read} of {total} looked at, {how})",
             "有 {count} 个张量含非有限数值；第一个是 {tensor} 的第 {element} 个元素（查看了 "
             "{total} 中的 "
             "{read}，{how}）"},
            {"take an earlier checkpoint", "使用更早的检查点"}},
    Wording{"checkpoint-broken",
            {"the checkpoint is damaged: {what} ({where}); its state is never to be resumed "
             "from",
             "检查点已损坏：{what}（{where}）；不能从它的状态恢复"},
            {"{cure}", "{cure}"}},
    Wording{
        "checkpoint-checksums",
        {"checksums compared: {how}, of {total}; `underkeel inspect --verify {folder}` compares "
         "all",
         "已比较校验和：{how}，共 {total}；`underkeel inspect --verify {folder}` 比较全部"},
        {}},
    Wording{"checkpoint-of-other-batch",
            {"saved with a global batch of {before}, while this run has {micro} x "
             "{steps} x {ranks} = {now} (per_device_train_batch_size x "
             "gradient_accumulation_steps x ranks): a run that goes on from it makes steps of "
             "another size",
             "保存时全局批大小为 {before}，而本次运行为 {micro} x {steps} x {ranks} = "
             "{now}（per_device_train_batch_size x gradient_accumulation_steps x "
             "rank 数）：据此继续训练时每步大小不同"},
            {"{cure}", "{cure}"}},
    Wording{"checkpoint-state-whole",
            {"the state of step {step} is whole: {tensors} tensors, {parts}",
             "第 {step} 步的状态完整：{tensors} 个张量，{parts}"},
            {}},
    Wording{"checkpoint-state-lacks",
            {"{count} of {expected} tensors of {part} are missing; the first is {tensor}: training "
             "cannot go on from it",
             "{part} 缺少 {expected} 个张量中的 {count} 个；第一个是 {tensor}：不能据此继续训练"},
            {"take an earlier checkpoint, or its weights alone "
             "(underkeel.resume_weights_only: true)",
             "使用更早的检查点，或只用其权重（underkeel.resume_weights_only: true）"}},
    Wording{
        "checkpoint-state-other-shape",
        {"{count} tensors of {part} have another shape than the model's; the first is {tensor}: "
         "{shape} where {wanted} is due",
         "{part} 有 {count} 个张量与模型形状不符；第一个是 {tensor}：为 {shape}，应为 {wanted}"},
        {"take the config.json that belongs to the checkpoint",
         "使用与检查点配套的 "
         "config.json"}},
    Wording{"adapter-whole",
            {"the adapter file holds {found} tensors{how}", "适配器文件含 {found} 个张量{how}"},
            {}},
    Wording{"adapter-lacks-tensors",
            {"the adapter file ({bytes} bytes) holds {found} tensors, {expected} are due by its "
             "config and the "
             "model",
             "适配器文件（{bytes} 字节）含 {found} 个张量，按其配置和模型应有 {expected}"},
            {"an export under stage 3 has to gather adapters first: take the one inside a "
             "checkpoint, or save "
             "at stage 2",
             "stage 3 下导出必须先收集适配器：使用检查点里的那份，或在 stage 2 保存"}},
    Wording{"adapter-never-trained",
            {"all {found} second matrices (lora_B) are zero: the adapter has no effect, no "
             "gradient reached it",
             "全部 {found} 个第二矩阵（lora_B）都为零：适配器没有效果，没有梯度到达它"},
            {"enable_input_require_grads() with recomputation on a frozen embedding, or "
             "use_reentrant=False",
             "冻结嵌入并启用重计算时要 enable_input_require_grads()，或 use_reentrant=False"}},
    Wording{"checkpoint-latest-is-gone",
            {"`latest` names {tag}, which is not there", "`latest` 指向 {tag}，但它不存在"},
            {"write the name of a tag folder that is there into `latest`",
             "把存在的 tag 文件夹名写入 `latest`"}},
    Wording{"checkpoint-without-optimizer",
            {"no optimizer files in it: of stage 0, which keeps the optimizer in the model's file, "
             "it is whole; of another stage training cannot go on from it, only its weights are "
             "there",
             "其中没有优化器文件：若为 stage 0（优化器在模型文件里）则是完整的；其他 stage "
             "不能据此继续训练，只有权重"},
            {"give the DeepSpeed config besides: it says which stage it is",
             "请同时给出 DeepSpeed 配置：它说明是哪个 stage"}},
    Wording{"checkpoint-lacks-ranks",
            {"not complete: optimizer files of {count} of {expected} ranks, by the highest number "
             "of any file; the first that is missing is that of rank {rank}",
             "不完整：按文件的最大编号应有 {expected} 个 rank 的优化器文件，只有 {count} "
             "个；第一个缺少的是 rank {rank} 的"},
            {"copy the missing files from the other nodes, or take an earlier checkpoint",
             "从其他节点复制缺少的文件，或使用更早的检查点"}},
    Wording{"checkpoint-of-other-ranks",
            {"written by {count} ranks, while {ranks} would run ({source}): DeepSpeed refuses it "
             "with a "
             "ZeRORuntimeException",
             "由 {count} 个 rank 写出，而将运行 {ranks} 个（{source}）：DeepSpeed 以 "
             "ZeRORuntimeException 拒绝"},
            {"turn it into its universal form first, or run {count} ranks",
             "先转换为 universal 形式，或运行 {count} 个 rank"}},
    Wording{"checkpoint-universal",
            {"a universal checkpoint, which any number of ranks may resume",
             "universal 检查点，可用任意 rank 数恢复"},
            {}},
    Wording{"checkpoint-universal-unasked",
            {"a universal checkpoint, which DeepSpeed loads only when it is told to",
             "universal 检查点，需要明确指定 DeepSpeed 才会加载"},
            {"checkpoint.load_universal: true", "checkpoint.load_universal: true"}},
    Wording{
        "checkpoint-not-universal",
        {"checkpoint.load_universal is true, and this checkpoint of {count} ranks is none of "
         "that form: it cannot be loaded",
         "checkpoint.load_universal 为 true，而这个由 {count} 个 rank 写出的检查点不是 universal "
         "形式：无法加载"},
        {"turn it into its universal form (ds_to_universal.py), or leave the key out",
         "先转换为 universal 形式（ds_to_universal.py），或去掉该键"}},
    Wording{"resume-wants-as-many-ranks",
            {"DeepSpeed resumes on as many ranks as wrote the checkpoint: {ranks} would run "
             "({source}), and with a checkpoint of another number it stops with a "
             "ZeRORuntimeException unless that was turned into its universal form first; our own "
             "checkpoints resume on any number",
             "DeepSpeed 只能在写出检查点的 rank 数上恢复：将运行 {ranks} 个（{source}），其他 rank "
             "数写出的检查点若未先转换为 universal 形式，会以 ZeRORuntimeException "
             "停止；本引擎的检查点可用任意 rank 数恢复"},
            {"give doctor the checkpoint folder: it counts its ranks",
             "把检查点文件夹交给 doctor：它会数出 rank 数"}},
    Wording{"checkpoint-whole",
            {"the files of all {count} ranks are there, the optimizer's and the model's",
             "全部 {count} 个 rank 的文件都在，包括优化器的和模型的"},
            {}},
    Wording{"checkpoint-not-complete",
            {"not complete: {reason}; it is never to be resumed from",
             "不完整：{reason}；不能从它恢复"},
            {"remove it, or take an older one", "删除它，或使用更早的"}},
    Wording{"checkpoint-lacks-state",
            {"not complete: {reason}; its weights are there, so a run can go on from them alone, "
             "with moments that start from zero",
             "不完整：{reason}；其权重都在，因此可以只从权重继续训练，动量从零开始"},
            {"take an older one, or resume_from_checkpoint: {folder} with "
             "underkeel.resume_weights_only: true",
             "使用更早的，或设 resume_from_checkpoint: {folder} 和 "
             "underkeel.resume_weights_only: true"}},
    Wording{"checkpoint-newest",
            {"the newest complete checkpoint, of step {step}", "最新的完整检查点，第 {step} 步"},
            {}},
    Wording{"checkpoint-none-complete",
            {"no checkpoint in it is complete", "其中没有完整的检查点"},
            {}},
    Wording{
        "stop-token-differs",
        {"template {template} ends turns with {turn_end}, while the tokenizer's end token is "
         "{end}: servers "
         "that read it do not stop at the end of an answer",
         "模板 {template} 以 {turn_end} 结束每轮，而分词器的结束符是 "
         "{end}：读取它的服务不会在回答结束处停下"},
        {"list {turn_end} in generation_config.json's eos_token_id; our export does it by itself",
         "把 {turn_end} 列入 generation_config.json 的 eos_token_id；本引擎导出时会自动处理"}},
    Wording{"data-unusable",
            {"the data cannot be used: {what} ({where})", "数据无法使用：{what}（{where}）"},
            {"{do}", "{do}"}},
    Wording{"data-readable",
            {"the data file is sound: {usable} of {records} records can be used ({bytes})",
             "数据文件完好：{records} 条记录中 {usable} 条可用（{bytes}）"},
            {}},
    Wording{
        "data-partly-usable",
        {"{usable} of {records} records looked at can be used; the first that cannot is in line "
         "{line}: {what}",
         "查看过的 {records} 条记录中 {usable} 条可用；第一条不可用的在第 {line} 行：{what}"},
        {"mend the records, or remove them", "修正或删除这些记录"}},
    Wording{
        "data-begins-well",
        {"the first {records} records of {bytes} are sound, {usable} of them can be used, and "
         "the file ends as it should",
         "{bytes} 中前 {records} 条记录完好，其中 {usable} 条可用，文件结尾也正常"},
        {"with a run file `--data` reads all of it", "与训练文件一起给出时，`--data` 会全部读取"}},
    Wording{"data-cut-short",
            {"the data file is cut short: after {bytes} it does not end with `{wanted}`",
             "数据文件不完整：{bytes} 之后没有以 `{wanted}` 结尾"},
            {"copy or download the file again", "请重新复制或下载该文件"}},
    Wording{"data-without-records",
            {"the data file holds no record: a run has nothing to train on",
             "数据文件中没有记录：无可训练的内容"},
            {"write or copy it again", "请重新写出或复制该文件"}},
    Wording{"data-without-usable",
            {"none of the {records} records can be used: they lack what training needs",
             "{records} 条记录都不可用：缺少训练所需的内容"},
            {"look at their columns: instruction and output, or a list of messages",
             "请检查各列：instruction 和 output，或消息列表"}},
    Wording{"data-columns-unknown",
            {"the records are well formed, but which column holds what is not known: {what}",
             "记录格式正确，但不知道各列的含义：{what}"},
            {"name the columns in dataset_info.json, under `columns`",
             "请在 dataset_info.json 的 `columns` 中指明各列"}},
    Wording{"data-described",
            {"{count} of {all} data sets of this description can be read, with {records} records "
             "looked at",
             "该描述的 {all} 个数据集中有 {count} 个可读取，查看了 {records} 条记录"},
            {}},
    Wording{
        "data-elsewhere",
        {"data sets of it that cannot be trained on here: {count}, the first is `{name}`; their "
         "data lie on a hub, or are no instructions and answers",
         "其中 {count} 个数据集不能用于此处的训练，第一个是 `{name}`：数据在 hub "
         "上，或不是指令与回答"},
        {"download the files and name them with `file_name`", "下载文件并用 `file_name` 指明"}},
    Wording{"data-longest-parts",
            {"of the longest {which} the cut-off leaves {prompt_kept} of {prompt} tokens of the "
             "prompt and {answer_kept} of {answer} of the answer",
             "最长的{which}在截断后保留提示 {prompt} 个 token 中的 {prompt_kept} 个、回答 {answer} "
             "个中的 {answer_kept} 个"},
            {}},
    Wording{"data-epoch",
            {"an epoch: {micro_batches} batches of {micro} on each of {ranks} ranks, in "
             "{windows} windows (updates) of {steps}, the last from {last}: {places} places for "
             "{samples} samples; samples that come twice to fill the ranks: {filled}, left out: "
             "{left_out}",
             "每个 epoch：{ranks} 个 rank 各有 {micro_batches} 个大小为 {micro} 的微批，分为 "
             "{windows} 个窗口（更新），每个 {steps} 个微批，最后一个有 {last} 个；共 {places} "
             "个位置，样本 {samples} 个；为填满各 rank 而重复的样本：{filled}，舍弃的：{left_out}"},
            {}},
    Wording{
        "data-windows-untrained",
        {"windows of the first epoch without a trained token: {count} of {windows}. This engine "
         "makes no update then and says so; LLaMA-Factory divides by zero",
         "第一个 epoch 中没有可训练 token 的窗口：{count}，共 "
         "{windows}。本引擎此时不更新并会说明；LLaMA-Factory 会除以零"},
        {"give their samples an answer, or leave them out", "请为其中的样本补上回答，或去掉它们"}},
    Wording{"data-longest",
            {"training samples: {samples}; the longest has {longest} tokens after the cut-off"
             "{before}, so a padded micro-batch has up to {micro} x {padded}, one without padding, "
             "as underkeel's are, up to {met}",
             "训练样本 {samples} 个；截断后最长 {longest} 个 token{before}，因此填充的微批最多为 "
             "{micro} x {padded}，不填充的（underkeel 即如此）最多为 {met}"},
            {}},
    Wording{
        "data-longest-evaluation",
        {"evaluation samples: {samples}; the longest has {longest} tokens after the cut-off"
         "{before}, so a padded batch of an evaluation has up to {micro} x {padded}, one "
         "without padding up to {met}",
         "评估样本 {samples} 个；截断后最长 {longest} 个 token{before}，因此评估时填充的批次最多为 "
         "{micro} x {padded}，不填充的最多为 {met}"},
        {}},
    Wording{
        "data-unanswered",
        {"{who} without an answer to train on in the data: {count} of {samples} ({lines}); "
         "such a sample stays in its place and adds nothing, whatever cutoff_len is",
         "数据中没有可训练回答的{who}：{count}，共 {samples}（{lines}）；它们留在原位，不起作用，"
         "与 cutoff_len 无关"},
        {"write the answers, or remove these records", "补上回答，或删除这些记录"}},
    Wording{
        "data-cut",
        {"{who}: {whole} of {samples} whole{whole_lines}{untrained}; answers: {answers_whole} "
         "of {answers} whole, {answers_cut} without the end, {answers_lost} lost{kept}; "
         "prompts: {prompts_cut} cut, {prompts_lost} lost with the turn; trained tokens: "
         "{trained}",
         "{who}：完整 {whole}，共 {samples}{whole_lines}{untrained}；回答：完整 "
         "{answers_whole}，共 {answers}，丢失结尾 {answers_cut}，全部丢失 {answers_lost}{kept}；"
         "提示：被截断 {prompts_cut}，随其轮次丢失 {prompts_lost}；可训练 token：{trained}"},
        {"cutoff_len: {uncut} keeps everything", "cutoff_len: {uncut} 可全部保留"}},
    Wording{"padding-is-the-end",
            {"the padding token is the end token ({token}): a collator that masks every padding "
             "token hides the "
             "end of each answer; LLaMA-Factory and our engine mask by position, others do not",
             "填充符就是结束符（{token}）：把所有填充符都屏蔽的整理器会藏掉每个回答的结尾；LLaMA-"
             "Factory "
             "和本引擎按位置屏蔽，其他工具未必"},
            {}},
};

constexpr std::array parts = {
    Phrase{"adapter.alone",
           {": whether these are all takes the model that they belong to",
            "：是否齐全要看它所属的模型"}},
    Phrase{"adapter.of-model",
           {", as many as its config and the model make", "，与其配置和模型所需一致"}},
    Phrase{"adapter.no-targets", {"modules that PEFT chooses", "PEFT 自选的模块"}},
    Phrase{"adapter.no-base", {"a base that it does not name", "未指明的基座"}},
    Phrase{"batch.other-split",
           {"another number of ranks or per_device_train_batch_size, so that the product is the "
            "same",
            "换用其他 rank 数或 per_device_train_batch_size，使乘积相同"}},
    Phrase{"broken.earlier", {"take an earlier one", "使用更早的"}},
    Phrase{"broken.or-weights",
           {"take an earlier one, or its weights alone, whose files are sound: "
            "resume_from_checkpoint:",
            "使用更早的，或只用其权重（文件完好）：设 resume_from_checkpoint:"}},
    Phrase{"broken.weights-key",
           {"with underkeel.resume_weights_only: true", "和 underkeel.resume_weights_only: true"}},
    Phrase{"cut.training", {"training samples", "训练样本"}},
    Phrase{"cut.one-training", {"training sample", "训练样本"}},
    Phrase{"cut.both", {"samples, held-out ones among them", "样本（含留出的）"}},
    Phrase{"cut.one-of-both", {"sample, held-out ones among them,", "样本（含留出的）"}},
    Phrase{"cut.evaluation", {"evaluation samples", "评估样本"}},
    Phrase{"cut.one-evaluation", {"evaluation sample", "评估样本"}},
    Phrase{"cut.longest-before", {" (", "（截断前 "}},
    Phrase{"cut.before-it", {" before it)", "）"}},
    Phrase{"cut.of", {" of ", "/"}},
    Phrase{"cut.kept", {"; tokens kept of answers: ", "；回答保留的 token："}},
    Phrase{"cut.untrained", {"; without a trained token:", "；没有可训练 token 的样本数："}},
};

}  // namespace

std::span<const Wording> folder_wordings() {
  return wordings;
}

std::span<const Phrase> folder_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
