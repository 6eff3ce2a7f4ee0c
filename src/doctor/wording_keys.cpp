// What findings about files and single keys say, and the phrases that all findings share.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"file-absent",
            {"there is nothing at {path}", "{path} 处没有任何文件"},
            {"look at the path", "请检查路径"}},
    Wording{"file-unreadable", {"the file cannot be read: {what}", "无法读取该文件：{what}"}, {}},
    Wording{"file-unrecognised",
            {"this is none of the files that doctor knows, by its content",
             "从内容看，这不是 doctor 认识的任何一种文件"},
            {"give it a ds_config.json, a run YAML, an accelerate config, a model folder or "
             "config.json, "
             "a data set, a checkpoint folder, a log, or a hardware.yaml",
             "可以给出 ds_config.json、训练 YAML、accelerate 配置、模型文件夹或 "
             "config.json、数据集、检查点文件夹、日志，或 hardware.yaml"}},
    Wording{"file-broken",
            {"the file cannot be read as what it is: {what} ({where})",
             "文件格式有误，无法读取：{what}（{where}）"},
            {"mend the syntax there", "请修正该处的语法"}},
    Wording{"file-passed-over",
            {"another file of this kind came first: {other} is used", "已有同类文件：使用 {other}"},
            {"give one of the two", "两个文件只给一个"}},
    Wording{"json-not-strict",
            {"{what}: DeepSpeed itself reads it (hjson), the strict JSON loader behind the HF "
             "Trainer and "
             "accelerate refuses the file",
             "{what}：DeepSpeed 自己能读（hjson），但 HF Trainer 和 accelerate 的严格 JSON "
             "读取器会拒绝该文件"},
            {"write plain JSON", "请写成标准 JSON"}},
    Wording{"key-unknown",
            {"unknown key `{key}` in {section}: {does}", "{section} 中的未知键 `{key}`：{does}"},
            {"remove it", "删除该键"}},
    Wording{"key-misspelt",
            {"unknown key `{key}` in {section}: {does}", "{section} 中的未知键 `{key}`：{does}"},
            {"the nearest key is `{nearest}`", "最接近的键是 `{nearest}`"}},
    Wording{"key-misplaced",
            {"`{key}` does not belong in {section}: {does}", "`{key}` 不应放在 {section}：{does}"},
            {"move it to {home}", "请移到 {home}"}},
    Wording{"key-loss-scale-in-bf16",
            {"bf16 has no loss scale: `{key}` belongs to fp16; DeepSpeed stops at start with a "
             "ValidationError",
             "bf16 没有损失缩放：`{key}` 属于 fp16；DeepSpeed 在启动时以 ValidationError 停止"},
            {"remove it", "删除该键"}},
    Wording{"key-two-spellings",
            {"`{key}` and `{other}` are two spellings of one key, both given: {does}",
             "`{key}` 与 `{other}` 是同一个键的两种写法，却同时给出：{does}"},
            {"keep `{other}`", "只保留 `{other}`"}},
    Wording{"key-deprecated",
            {"`{key}` is the old spelling; DeepSpeed takes it for `{new}`, with a warning",
             "`{key}` 是旧写法；DeepSpeed 会警告并当作 `{new}`"},
            {"write `{new}`", "请写 `{new}`"}},
    Wording{"key-dead",
            {"`{key}` is read and used nowhere: any value is the same",
             "`{key}` 会被读取，但没有任何地方使用：取什么值都一样"},
            {"remove it", "删除该键"}},
    Wording{"key-practically-dead",
            {"`{key}` has no effect: it is used only where torch lacks the flat all-gather",
             "`{key}` 没有效果：只有当 torch 缺少扁平 all-gather 时才会用到"},
            {"remove it; the bucket that costs memory is reduce_bucket_size",
             "删除该键；真正占内存的桶是 reduce_bucket_size"}},
    Wording{"key-deprecated-dead",
            {"`{key}` is only warned about: it has no effect", "`{key}` 只会引发警告：没有效果"},
            {"write pin_memory inside offload_optimizer or offload_param",
             "请在 offload_optimizer 或 offload_param 里写 pin_memory"}},
    Wording{"key-in-docs-only",
            {"`{key}` is in the documentation and no longer in the code: DeepSpeed stops at start "
             "with a "
             "ValidationError",
             "`{key}` 只存在于文档，代码里已经没有：DeepSpeed 在启动时以 ValidationError 停止"},
            {"remove it", "删除该键"}},
    Wording{"key-thread-count",
            {"`{key}` was renamed intra_op_parallelism in 0.16.4; the old name is passed over "
             "without a "
             "word, and 1 thread is used",
             "`{key}` 在 0.16.4 改名为 intra_op_parallelism；旧名被静默忽略，只用 1 个线程"},
            {"write intra_op_parallelism; it acts on NVMe offload only, not on torch.save",
             "请写 intra_op_parallelism；它只影响 NVMe 卸载，不影响 torch.save"}},
    Wording{"key-max-grad-norm",
            {"`{key}` in optimizer.params: DeepSpeed stops at start with a ValueError",
             "optimizer.params 中的 `{key}`：DeepSpeed 在启动时以 ValueError 停止"},
            {"use gradient_clipping at the top level", "请在顶层使用 gradient_clipping"}},
    Wording{
        "key-activation-checkpointing",
        {"`{key}` does nothing to a Hugging Face model: it holds parameters of DeepSpeed's own "
         "checkpoint() function, which the model's code would have to call",
         "`{key}` 对 Hugging Face 模型不起作用：它只是 DeepSpeed 自己的 checkpoint() "
         "函数的参数，需要模型代码主动调用"},
        {"gradient_checkpointing=True of the Trainer, or disable_gradient_checkpointing: false of "
         "LLaMA-Factory, is what recomputes",
         "真正起重计算作用的是 Trainer 的 gradient_checkpointing=True，或 LLaMA-Factory 的 "
         "disable_gradient_checkpointing: false"}},
    Wording{"key-without-effect-at-stage",
            {"`{key}` has no effect at stage {stage}: it acts at stage {stages}",
             "`{key}` 在 stage {stage} 没有效果：只在 stage {stages} 起作用"},
            {}},
    Wording{
        "offload-without-effect",
        {"`{key}` has no effect at stage {stage}: it acts at stage {stages}, and DeepSpeed passes "
         "over it without a word",
         "`{key}` 在 stage {stage} 没有效果：只在 stage {stages} 起作用，DeepSpeed 会静默忽略"},
        {"remove it, or use stage 3", "删除它，或使用 stage 3"}},
    Wording{"zero-as-boolean",
            {"`{key}`: {found} is the old spelling of stage {stage}",
             "`{key}`：{found} 是 stage {stage} 的旧写法"},
            {"write an object with stage {stage}", "请写成含 stage {stage} 的对象"}},
    Wording{"value-wrong-type",
            {"`{key}`: {wanted} is wanted, {kind} {found} was found: {does}",
             "`{key}`：应为{wanted}，实际是{kind} {found}：{does}"},
            {"write {wanted}", "请写{wanted}"}},
    Wording{"value-quoted",
            {"`{key}`: {found} is taken for the value that it spells ({wanted}); other readers "
             "refuse it",
             "`{key}`：{found} 会按其字面值（{wanted}）处理；其他读取器会拒绝"},
            {"write it without quotes", "请去掉引号"}},
    Wording{"value-out-of-range",
            {"`{key}`: {found} is out of range ({range}): {does}",
             "`{key}`：{found} 超出范围（{range}）：{does}"},
            {"write a value of that range ({range})", "请写该范围内的值（{range}）"}},
    Wording{"value-not-a-choice",
            {"`{key}`: {found} is none of {choices}: {does}",
             "`{key}`：{found} 不在可选值 {choices} 之中：{does}"},
            {"write one of {choices}", "请写 {choices} 之一"}},
    Wording{
        "auto-nobody-fills",
        {"`{key}`: \"auto\" is filled in by neither the HF Trainer nor accelerate: accelerate "
         "stops "
         "with a ValueError",
         "`{key}`：HF Trainer 和 accelerate 都不会填写这里的 \"auto\"：accelerate 以 ValueError "
         "停止"},
        {"write a value, or leave the key out", "请写具体的值，或去掉该键"}},
    Wording{"auto-is-absent",
            {"`{key}`: \"auto\" means as if the key were absent: its default",
             "`{key}`：\"auto\" 等同于没有写该键：使用默认值"},
            {}},
    Wording{
        "auto-stays-text",
        {"`{key}`: without the HF Trainer or accelerate nobody replaces \"auto\": it stays text "
         "and "
         "fails where it is used",
         "`{key}`：没有 HF Trainer 或 accelerate 时没有人替换 \"auto\"：它仍是文本，用到时出错"},
        {"write a value", "请写具体的值"}},
};

constexpr std::array shared_phrases = {
    Phrase{"top-level", {"the top level", "顶层"}},
    Phrase{"does.ignores", {"DeepSpeed passes over it without a word", "DeepSpeed 会静默忽略它"}},
    Phrase{"does.rejects",
           {"DeepSpeed stops at start with a ValidationError",
            "DeepSpeed 在启动时以 ValidationError 停止"}},
    Phrase{"does.type-error",
           {"DeepSpeed stops at start with a TypeError: it hands these keys on as arguments",
            "DeepSpeed 在启动时以 TypeError 停止：这些键会作为参数传递"}},
    Phrase{"does.asserts",
           {"DeepSpeed stops at start with an AssertionError",
            "DeepSpeed 在启动时以 AssertionError 停止"}},
    Phrase{"does.fails-at-start",
           {"DeepSpeed fails at start, in a comparison", "DeepSpeed 在启动时的比较中出错"}},
    Phrase{
        "does.fails-at-step-1",
        {"DeepSpeed does not check it, and fails at step 1", "DeepSpeed 不检查它，第 1 步才出错"}},
    Phrase{"does.takes-as-true",
           {"DeepSpeed does not check it, and takes anything that is not empty for true",
            "DeepSpeed 不检查它，凡非空值都当作 true"}},
    Phrase{"does.uses-as-is",
           {"DeepSpeed does not check it, and fails where it is first used",
            "DeepSpeed 不检查它，首次使用时才出错"}},
    Phrase{"truth", {"true or false", " true 或 false"}},
    Phrase{"whole", {"a whole number", "整数"}},
    Phrase{"number", {"a number", "数字"}},
    Phrase{"text", {"a text", "文本"}},
    Phrase{"choice", {"a text", "文本"}},
    Phrase{"mapping", {"an object", "对象"}},
    Phrase{"list", {"a list", "列表"}},
    Phrase{"any", {"any value", "任意值"}},
    // By spec::ValueKind.
    Phrase{"kind.0", {"the value", "值"}},
    Phrase{"kind.1", {"the truth value", "布尔值"}},
    Phrase{"kind.2", {"the number", "数字"}},
    Phrase{"kind.3", {"the text", "文本"}},
    Phrase{"kind.4", {"the list", "列表"}},
    Phrase{"kind.5", {"the object", "对象"}},
    Phrase{"severity.error", {"error", "错误"}},
    Phrase{"severity.warning", {"warning", "警告"}},
    Phrase{"severity.info", {"info", "说明"}},
    Phrase{"certainty.exact", {"exact", "确切"}},
    Phrase{"certainty.bound", {"bound", "界限"}},
    Phrase{"certainty.estimate", {"estimate", "估计"}},
    Phrase{"certainty.folklore", {"folklore", "传闻"}},
    Phrase{"engine.deepspeed", {"DeepSpeed", "DeepSpeed"}},
    Phrase{"engine.underkeel", {"Underkeel", "Underkeel"}},
    Phrase{"engine.both", {"both engines", "两种引擎"}},
    Phrase{"verdict.runs", {"runs", "可以运行"}},
    Phrase{"verdict.fails", {"fails", "会失败"}},
    Phrase{"verdict.unknown", {"unknown", "无法判断"}},
    Phrase{"space.device", {"device memory", "设备内存"}},
    Phrase{"space.pinned_host", {"page-locked host memory", "锁页主机内存"}},
    Phrase{"space.host", {"host memory", "主机内存"}},
    Phrase{"space.nvme", {"NVMe", "NVMe"}},
    Phrase{"space.node", {"a node's host memory", "每节点主机内存"}},
    Phrase{"term.weights", {"weights", "权重"}},
    Phrase{"term.quantised", {"quantised base", "量化基座"}},
    Phrase{"term.persistent", {"parameters kept gathered", "常驻收集的参数"}},
    Phrase{"term.master", {"fp32 master weights", "fp32 主权重"}},
    Phrase{"term.moments", {"Adam's moments", "Adam 动量"}},
    Phrase{"term.gradients", {"gradients", "梯度"}},
    Phrase{"term.bucket", {"reduce bucket", "归约桶"}},
    Phrase{"term.bucket_copy", {"copy of the bucket", "桶的副本"}},
    Phrase{"term.live", {"gathered parameters", "收集中的参数"}},
    Phrase{"term.staging", {"staging", "中转缓冲"}},
    Phrase{"term.gradient_checks", {"overflow test and norm", "溢出检查与范数"}},
    Phrase{"term.activations", {"activations and logits", "激活与 logits"}},
    Phrase{"term.update_copies", {"copies for the update", "更新时的副本"}},
    Phrase{"term.gathered_module", {"one gathered module", "收集的单个模块"}},
    Phrase{"term.whole_model", {"the whole model before it is split", "切分前的整个模型"}},
    Phrase{"term.context", {"context and libraries", "上下文与库"}},
    Phrase{"term.allocator", {"what the allocator wastes", "分配器浪费"}},
    Phrase{"term.gradients_f32", {"fp32 gradients", "fp32 梯度"}},
    Phrase{"term.accumulation", {"accumulated gradients", "累积梯度"}},
    Phrase{"term.nvme_buffers", {"buffers for NVMe", "NVMe 缓冲"}},
    Phrase{"term.weights_transient", {"single shards, cached", "单个分片（缓存）"}},
    Phrase{"term.parameter_buffers", {"buffers for parameters on NVMe", "NVMe 参数缓冲"}},
    Phrase{"term.processes", {"Python processes", "Python 进程"}},
    Phrase{"term.checkpoint_shard", {"one checkpoint shard", "一个检查点分片"}},
    Phrase{"term.model_per_rank", {"one model a rank", "每个 rank 一份模型"}},
    Phrase{"term.serialised", {"one storage being written", "正在写出的存储块"}},
    Phrase{"term.weights_clone", {"a clone of the weights a rank", "每个 rank 的权重副本"}},
    Phrase{"term.weights_on_rank_0", {"whole weights on rank 0", "rank 0 上的完整权重"}},
    Phrase{"term.optimizer_file", {"optimizer files, read whole", "整体读入的优化器文件"}},
    Phrase{"term.model_file", {"model files", "模型文件"}},
    Phrase{"term.optimizer", {"optimizer state", "优化器状态"}},
    Phrase{"term.rounding", {"rounding to powers of two", "上取整到二的幂"}},
    Phrase{"term.plan", {"all", "全部"}},
    Phrase{"phase.load", {"while loading", "加载时"}},
    Phrase{"phase.first_step", {"in forward and backward of step 1", "第 1 步的前向与反向"}},
    Phrase{"phase.step", {"in forward and backward", "前向与反向"}},
    Phrase{"phase.update", {"in the update", "参数更新时"}},
    Phrase{"phase.evaluate", {"in an evaluation", "评估时"}},
    Phrase{"phase.save", {"during a save", "保存时"}},
    Phrase{"phase.after_save", {"after a save", "保存之后"}},
    Phrase{"phase.resume", {"on a resume", "恢复训练时"}},
    Phrase{"no-cure",
           {"nothing in the table of stage, offload, recomputation and micro-batch fits",
            "stage、卸载、重计算、微批的所有组合都放不下"}},
    Phrase{"use-bf16", {"this machine has bf16: use it", "该机器支持 bf16：请使用"}},
    Phrase{
        "no-bf16-there",
        {"this machine has no bf16: fp32 is safe, or a small learning rate with dynamic loss scale",
         "该机器不支持 bf16：用 fp32 最稳妥，或用小学习率加动态损失缩放"}},
    Phrase{"alternatives.deepspeed",
           {"What fits, with DeepSpeed (the smallest change first):",
            "DeepSpeed 下可行的方案（改动最小的在前）："}},
    Phrase{"alternatives.underkeel",
           {"What fits, with Underkeel (the smallest change first; each was planned):",
            "Underkeel 下可行的方案（改动最小的在前，均已规划验证）："}},
    Phrase{
        "alternatives.header",
        {"  stage      offl.opt offl.par recomp.  micro x steps    device    margin      host    "
         "margin",
         "  stage      卸载优化器 卸载参数 重计算  微批 x 累积    设备    余量      主机    余量"}},
    Phrase{"advice.true", {"true", "对"}},
    Phrase{"advice.half", {"half true", "半对"}},
    Phrase{"advice.false", {"false", "不对"}},
    Phrase{"fits.yes", {"fits", "放得下"}},
    Phrase{"fits.no", {"does not fit", "放不下"}},
    Phrase{"fix", {"do: ", "建议："}},
    Phrase{"ranks.default", {"no file and no flag says how many", "没有文件或参数说明数量"}},
};

}  // namespace

std::span<const Wording> key_wordings() {
  return wordings;
}

std::span<const Phrase> phrases() {
  return shared_phrases;
}

}  // namespace underkeel::doctor
