// Chinese for what the readers of tokenizers, templates and tokens say, and for orders of samples that cannot be.

#include <array>

#include "doctor/reader_words.h"

namespace underkeel::doctor {
namespace {

constexpr std::array sentences = {
    // tokenizer.json and tokenizer_config.json.
    Text{"{} bytes is no tokenizer", "{} 字节不是分词器"},
    Text{"there is no model", "其中没有 model"},
    Text{"the id of token `{}` is not a number from 0", "token `{}` 的 id 不是从 0 起的数字"},
    Text{"token `{}` has no id from 0", "token `{}` 没有从 0 起的 id"},
    Text{"token `{}` has the id {}", "token `{}` 的 id 为 {}"},
    Text{"ids are 0 to {}", "id 应为 0 到 {}"},
    Text{"tokens `{}` and `{}` have the same id {}", "token `{}` 和 `{}` 的 id 相同，均为 {}"},
    Text{"token `{}` is there twice", "token `{}` 出现了两次"},
    Text{"merge `{} {}`: `{}` is not in the vocabulary", "合并规则 `{} {}`：`{}` 不在词表中"},
    Text{"`{}` is not in the vocabulary, and neither is the unknown token `{}`",
         "`{}` 不在词表中，未知 token `{}` 也不在"},
    Text{"a merge is not a pair", "有一条合并规则不是一对"},
    Text{"a merge is neither a pair of texts nor one text",
         "有一条合并规则既不是一对文本，也不是一段文本"},
    Text{"merge `{}` is not two texts with a space between",
         "合并规则 `{}` 不是以空格隔开的两段文本"},
    Text{"`{}` is neither a text nor a token", "`{}` 既不是文本也不是 token"},
    Text{"`add_prefix_space` is false, `prepend_scheme` is not never",
         "`add_prefix_space` 为 false，而 `prepend_scheme` 不是 never"},
    Text{"template token `{}` has no ids", "模板 token `{}` 没有 id"},
    Text{"a token to add is empty", "要添加的 token 为空"},
    Text{"a token to add is not valid UTF-8", "要添加的 token 不是有效的 UTF-8"},
    Text{"NFC normalization: {}", "NFC 规范化：{}"},
    Text{"ICU has no NFC: {}", "ICU 没有 NFC：{}"},
    Text{"regular expression: not valid UTF-8", "正则表达式：不是有效的 UTF-8"},
    Text{"regular expression: `{}` is not supported yet", "正则表达式：`{}` 尚不支持"},
    Text{"regular expression: {}", "正则表达式：{}"},
    Text{"[ inside a class", "字符类中含 `[`"},
    Text{"a negated property inside a class", "字符类中含取反的属性"},
    Text{"[ without ]", "有 `[` 而没有 `]`"},
    // tokenizer.model.
    Text{"a field without a number", "有一个字段没有编号"},
    Text{"a field of the unknown kind {}", "有一个字段的种类 {} 未知"},
    Text{"not a SentencePiece model: it has no pieces", "不是 SentencePiece 模型：其中没有 piece"},
    Text{"not a SentencePiece model: {}", "不是 SentencePiece 模型：{}"},
    Text{"a number is cut off", "有一个数字不完整"},
    Text{"a number is longer than 64 bits", "有一个数字超过 64 位"},
    Text{"{} bytes announced, {} left", "声明 {} 字节，只剩 {}"},
    Text{"a piece of the unknown kind {}", "有一个 piece 的种类 {} 未知"},
    Text{"a piece of {} bytes is empty, too long or not UTF-8",
         "有一个 {} 字节的 piece 为空、过长或不是 UTF-8"},
    Text{"the score of piece `{}` is no number", "piece `{}` 的分数不是数字"},
    Text{"more than {} pieces", "piece 超过 {} 个"},
    Text{"SentencePiece model of type {} is not supported yet (only BPE)",
         "{} 类型的 SentencePiece 模型尚不支持（只支持 BPE）"},
    Text{"a SentencePiece model that normalizes characters is not supported yet",
         "会规范化字符的 SentencePiece 模型尚不支持"},
    Text{"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers may write "
         "a tokenizer.json",
         "transformers 的 AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) 可能会写出 "
         "tokenizer.json"},
    Text{"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers writes one",
         "transformers 的 AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) "
         "会写出一个"},
    // Templates.
    Text{"there is no template `{}`", "没有模板 `{}`"},
    Text{"the {} that there are stand in docs/guide/data.md",
         "现有的 {} 个列在 docs/guide/data.md"},
    Text{"template `{}` puts one end token behind all turns, so that prompts cannot be trained",
         "模板 `{}` 只在全部轮次之后放一个结束 token，因此无法训练提示"},
    // Samples and their orders.
    Text{"a cut-off of {} tokens", "截断长度为 {} 个 token"},
    Text{"a batch holds at least one record", "一个批至少含一条记录"},
    Text{"a share below 1, or a whole number of samples above 1",
         "应为小于 1 的比例，或大于 1 的样本整数"},
    Text{"`val_size` is {}", "`val_size` 为 {}"},
    Text{"`num_samples` {} is more than can be drawn", "`num_samples` {} 多于可抽取的数量"},
    Text{"num_samples of at most {}", "num_samples 至多 {}"},
    Text{"the lists of `num_samples` {} records take {}, {} bytes each, and {} of host memory are "
         "left for them (the node's budget less what bare processes take)",
         "`num_samples` {} 条记录的列表需要 {}，每条 {} 字节，而主机内存只剩 {} "
         "可用（节点预算减去进程本身所占）"},
    Text{"num_samples or max_samples of at most {}, or more host memory (underkeel.memory.host)",
         "num_samples 或 max_samples 至多 {}，或给更多主机内存（underkeel.memory.host）"},
    Text{"nothing to evaluate on: {} records with {} tokens make no block of {}",
         "没有可评估的内容：{} 条记录共 {} 个 token，不足一个 {} 的块"},
    Text{"nothing to evaluate on: none of {} texts has a token to predict",
         "没有可评估的内容：{} 段文本都没有可预测的 token"},
    Text{"nothing to evaluate on: none of {} records is usable",
         "没有可评估的内容：{} 条记录都不可用"},
    Text{"nothing to evaluate on: none of {} records is usable: {}",
         "没有可评估的内容：{} 条记录都不可用：{}"},
    Text{"nothing to evaluate on: none of {} samples keeps a trained token at cutoff_len {}",
         "没有可评估的内容：{} 个样本在 cutoff_len {} 下都不剩要训练的 token"},
    Text{"there are no samples to train on", "没有可训练的样本"},
    Text{"dropping the last batch leaves none: {} samples, {} ranks with {} each",
         "丢弃最后一个批之后什么也不剩：{} 个样本，{} 个 rank，每个 {}"},
    // Tokens that were stored.
    Text{"the tokens that were just written cannot be read back", "刚写出的 token 无法读回"},
    Text{"a record of {} tokens", "一条记录有 {} 个 token"},
    Text{"the tokens are damaged: token {} where {} is the largest",
         "token 已损坏：出现 token {}，而最大为 {}"},
    Text{"more than {} records", "记录超过 {} 条"},
    Text{"the report of cached tokens: {}", "已缓存 token 的报告：{}"},
    Text{"set overwrite_cache: true once", "请设一次 overwrite_cache: true"},
};

}  // namespace

std::span<const Text> tokenizer_sentences() {
  return sentences;
}

}  // namespace underkeel::doctor
