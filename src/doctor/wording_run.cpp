// Words of findings about a run file: what LLaMA-Factory or the Trainer refuse in it, and configs that lie beside it.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"config-not-named",
            {"{run} names no DeepSpeed config: the figures here are as if it named this file; by "
             "itself neither the HF Trainer nor underkeel reads it",
             "{run} 没有指定 DeepSpeed 配置：这里的数字按它指定了这个文件计算；否则 HF Trainer 和 "
             "underkeel 都不会读取它"},
            {"write deepspeed: {given} in {run}", "在 {run} 中写 deepspeed: {given}"}},
    Wording{
        "config-stands-in",
        {"{run} names {named}, which is not here: this file stands for it",
         "{run} 指定的是 {named}，但它不在这里：以这个文件代替"},
        {"give the file that is named, or name this one", "给出所指定的文件，或改为指定这个文件"}},
    Wording{
        "accelerate-differs",
        {"this accelerate config and {file} differ: {differ}. The HF Trainer with `deepspeed:` in "
         "its arguments takes {file}; a script without it takes accelerate's; underkeel reads "
         "none of accelerate's",
         "这个 accelerate 配置与 {file} 不同：{differ}。参数里有 `deepspeed:` 的 HF Trainer 采用 "
         "{file}；没有它的脚本采用 accelerate 的；underkeel 不读取 accelerate 的任何设置"},
        {"write the same in both, or leave it out of one", "两处写相同的值，或只在一处给出"}},
    Wording{
        "accelerate-differs-from-run",
        {"this accelerate config and {file} differ: {differ}. The HF Trainer takes the run file's "
         "precision, accumulation and clipping, and accelerate's number of processes; underkeel "
         "takes the run file's alone",
         "这个 accelerate 配置与 {file} 不同：{differ}。HF Trainer "
         "采用训练文件的精度、累积和裁剪，进程数则采用 accelerate 的；underkeel 只采用训练文件的"},
        {"write the same in both", "两处写相同的值"}},
    Wording{"file-of-a-run",
            {"a run or a tokenizer's trainer wrote this file: nothing in it is to be set",
             "这是训练或分词器训练写出的文件：其中没有需要设置的内容"},
            {"give doctor the folder that it lies in", "请把它所在的文件夹交给 doctor"}},
    Wording{"model-elsewhere",
            {"{what} ({where}): the model's sizes, its tokenizer and its tokens of turns and ends "
             "are not known here, so neither memory nor the data's lengths nor its template are "
             "judged",
             "{what}（{where}）：这里不知道模型的大小、分词器以及对话与结束标记，因此不判断内存、"
             "数据长度和模板"},
            {"give doctor the model's folder or config.json beside the run file; {do}",
             "请与训练文件一起给出模型文件夹或 config.json；{do}"}},
    Wording{"model-folder-not-judged",
            {"the sizes here are those of {given}; the model that this names, {folder}, has "
             "another config.json, so neither its tokenizer, weights and template nor the lengths "
             "of the data are judged",
             "这里的大小以 {given} 为准；此处指定的模型 {folder} 的 config.json "
             "与之不同，因此不判断其分词器、权重和模板，也不判断数据长度"},
            {"ask without {given}, or name the folder that it belongs to",
             "不要给出 {given}，或指定它所属的文件夹"}},
    Wording{
        "model-config-differs",
        {"{given} and the config.json of {folder}, which this names, have the same tensors and "
         "differ ({given} / the folder): {differ}. The run reads the folder's; the figures here "
         "are those of {given}",
         "{given} 与此处指定的 {folder} 的 config.json 张量相同，但内容不同（{given} / "
         "文件夹）：{differ}。训练读取文件夹中的那一份；这里的数字按 {given} 计算"},
        {"give one of them, or make them the same", "只给出其中之一，或使两者一致"}},
    Wording{"data-not-read",
            {"`--data` asks for the data, and they were not read: {why}; their lengths are not "
             "known, so samples count as long as cutoff_len",
             "`--data` 要求读取数据，但没有读取：{why}；数据长度未知，样本按 cutoff_len 计算"},
            {"give doctor the run file, and what it names beside it or on this machine",
             "请给出训练文件，并使它指定的内容位于同一文件夹或本机"}},
    Wording{"quantisation-bits",
            {"bitsandbytes has no {bits} bits: LLaMA-Factory stops before it loads anything",
             "bitsandbytes 没有 {bits} 位：LLaMA-Factory 在加载之前就会停止"},
            {"quantization_bit: 4 or 8", "quantization_bit: 4 或 8"}},
    Wording{"eight-bits-at-stage-3",
            {"a base of {bits} bits at stage 3 is refused by LLaMA-Factory, which takes one of 4 "
             "bits there",
             "LLaMA-Factory 拒绝在 stage 3 使用 {bits} 位基座，只接受 4 位"},
            {"quantization_bit: 4, or stage 2", "quantization_bit: 4，或使用 stage 2"}},
    Wording{"run-keys-exclude",
            {"`{first}` and `{second}` exclude one another: {who} stops before it loads anything",
             "`{first}` 与 `{second}` 互斥：{who} 在加载之前就会停止"},
            {"leave one of them out", "请去掉其中之一"}},
    Wording{"run-key-needs",
            {"`{first}` needs `{second}`: {who} stops before it loads anything",
             "`{first}` 需要 `{second}`：{who} 在加载之前就会停止"},
            {"leave it out, or write `{second}`", "请去掉它，或写上 `{second}`"}},
    Wording{"data-packs",
            {"{samples} training samples make {packs} packs of {positions} positions ({first}), "
             "fill rate {fill}, attention: {attention}; no sample is cut at a pack's end. "
             "LLaMA-Factory's padded micro-batch has {micro} x {padded} positions, underkeel's, "
             "without padding, up to {met}",
             "{samples} 个训练样本装入 {packs} 个包，每个 {positions} 个位置（{first}），"
             "填充率 {fill}，注意力：{attention}；样本不会在包的末尾被截断。LLaMA-Factory "
             "填充后的微批有 {micro} x {padded} 个位置，underkeel 不填充，最多为 {met}"},
            {}},
    Wording{"data-blocks",
            {"{samples} texts make {packs} blocks with {tokens} tokens, the longest with "
             "{longest}; a micro-batch has up to {micro} x {padded}, {met} in all",
             "{samples} 段文本组成 {packs} 个块，共 {tokens} 个 token，最长的块有 {longest} "
             "个；微批最多为 {micro} x {padded}，合计 {met}"},
            {}},
    Wording{"packs-see-one-another",
            {"LLaMA-Factory's plain packing lets the samples of a pack see those before them, "
             "though positions restart at each: the loss is another one than without packing. "
             "{ours}",
             "LLaMA-Factory 的普通 packing 会让一个包里的样本看到它前面的样本，尽管位置从每个样本"
             "重新开始：损失与不打包时不同。{ours}"},
            {"neat_packing: true keeps them apart", "neat_packing: true 会把它们分开"}},
    Wording{"packs-kept-apart",
            {"LLaMA-Factory keeps the samples of a pack apart here: attention is separate and "
             "positions restart. {ours}",
             "LLaMA-Factory 在这里会把一个包里的样本分开：注意力各自独立，位置重新开始。{ours}"},
            {}},
};

constexpr std::array parts = {
    Phrase{"packs.samples-with", {" samples with ", " 个样本共 "}},
    Phrase{"packs.sample-with", {" sample with ", " 个样本共 "}},
    Phrase{"packs.tokens", {" tokens", " 个 token"}},
    Phrase{"packs.with", {" with ", " 个共 "}},
    Phrase{"packs.shared-too",
           {"Underkeel lets them too, by `underkeel.packing_attention: shared`",
            "Underkeel 因 `underkeel.packing_attention: shared` 也是如此"}},
    Phrase{"packs.apart-here",
           {"Underkeel keeps them apart unless `underkeel.packing_attention: shared` is written",
            "除非写了 `underkeel.packing_attention: shared`，Underkeel 会把它们分开"}},
    Phrase{"packs.apart-too", {"So does Underkeel", "Underkeel 也是如此"}},
    Phrase{"packs.shared-here",
           {"Underkeel lets each see those before it, by `underkeel.packing_attention: shared`",
            "Underkeel 因 `underkeel.packing_attention: shared` 会让样本看到它前面的样本"}},
    Phrase{"packs.separate",
           {"separate per sample; positions restart", "每个样本独立；位置重新开始"}},
    Phrase{"packs.shared", {"shared in a pack; positions restart", "包内共享；位置重新开始"}},
};

}  // namespace

std::span<const Wording> run_wordings() {
  return wordings;
}

std::span<const Phrase> run_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
