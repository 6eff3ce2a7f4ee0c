#include "doctor/reader_words.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace underkeel::doctor {
namespace {

constexpr std::array sentences = {
    // Keys.
    Text{"{} problems", "{} 个问题"},
    Text{"{} more unknown keys", "还有 {} 个未知键"},
    Text{"unknown key `{}`", "未知键 `{}`"},
    Text{"unknown key", "未知键"},
    Text{"the nearest is `{}`", "最接近的是 `{}`"},
    Text{"the nearest are `{}` and `{}`", "最接近的是 `{}` 和 `{}`"},
    Text{"DeepSpeed passes over unknown keys here without a word",
         "DeepSpeed 会静默忽略这里的未知键"},
    Text{"DeepSpeed passes over it here without a word", "DeepSpeed 在这里会静默忽略它"},
    Text{"it belongs in zero_optimization", "它应放在 zero_optimization"},
    Text{"it belongs at the top level", "它应放在顶层"},
    Text{"it belongs in fp16", "它应放在 fp16"},
    Text{"it belongs under `underkeel:`, as underkeel.{}",
         "它应放在 `underkeel:` 之下，写作 underkeel.{}"},
    Text{"it belongs in the DeepSpeed config that `deepspeed:` names",
         "它应放在 `deepspeed:` 指定的 DeepSpeed 配置里"},
    Text{"here it is `{}`", "这里它叫 `{}`"},
    Text{"docs/guide/run-files.md lists the keys", "docs/guide/run-files.md 列出了所有键"},
    Text{"`{}` and `{}` are two names of one key", "`{}` 和 `{}` 是同一个键的两个名字"},
    Text{"the key is missing: {}", "缺少该键：{}"},
    Text{"the key is missing", "缺少该键"},
    Text{"this is the old spelling of {}, also given", "这是 {} 的旧写法，而新写法也给出了"},
    Text{"this is the old spelling of {}", "这是 {} 的旧写法"},
    Text{"a value is missing behind `=`", "`=` 后缺少值"},
    Text{"key=value is wanted on the command line", "命令行上应写 key=value"},
    Text{"an empty shell variable? null stands for none", "是空的 shell 变量吗？用 null 表示没有"},
    // The command line of doctor.
    Text{"no file is given", "没有给出文件"},
    Text{"name a hardware.yaml, or leave the flag out", "请给出 hardware.yaml，或去掉该选项"},
    Text{"no budget is given in `{}`", "`{}` 中没有给出预算"},
    Text{"no budget is given", "没有给出预算"},
    Text{"`{}` is no budget", "`{}` 不是预算"},
    Text{"`{}`: no part of a run lies on nvme", "`{}`：训练没有任何部分在 nvme 上"},
    Text{"leave it out", "请去掉它"},
    Text{"`plan --fit` alone takes it, to say what the room would do",
         "只有 `plan --fit` 接受它，用来说明这些空间的作用"},
    Text{"`{}` has two budgets: {} and {}", "`{}` 有两个预算：{} 和 {}"},
    Text{"`{}`: a size above 0 is wanted", "`{}`：应为大于 0 的大小"},
    Text{"`{}` is {} bytes", "`{}` 就是 {} 字节"},
    Text{"`{}` is {} byte", "`{}` 就是 {} 字节"},
    Text{"write SPACE=SIZE[,SPACE=SIZE], such as device=80GiB,host=100GiB",
         "请写 SPACE=SIZE[,SPACE=SIZE]，例如 device=80GiB,host=100GiB"},
    Text{"write a number and a unit, such as 80GiB, 1.5GB or 512MiB",
         "请写数字和单位，例如 80GiB、1.5GB 或 512MiB"},
    // Values.
    Text{"a whole number is wanted, a number {} was found", "应为整数，找到数字 {}"},
    Text{"a whole number is wanted, the text {} was found", "应为整数，找到文本 {}"},
    Text{"a whole number is wanted, {} was found", "应为整数，找到 {}"},
    Text{"a number is wanted, {} was found", "应为数字，找到 {}"},
    Text{"a finite number is wanted, {} was found", "应为有限数，找到 {}"},
    Text{"true or false is wanted, {} was found", "应为 true 或 false，找到 {}"},
    Text{"text is wanted, {} was found", "应为文本，找到 {}"},
    Text{"a mapping of keys is wanted, {} was found", "应为键的映射，找到 {}"},
    Text{"a mapping is wanted, {} was found", "应为映射，找到 {}"},
    Text{"a path or a mapping is wanted, {} was found", "应为路径或映射，找到 {}"},
    Text{"a list of texts is wanted, {} was found", "应为文本列表，找到 {}"},
    Text{"a size is wanted, {} was found", "应为大小，找到 {}"},
    Text{"a size above 0 is wanted", "应为大于 0 的大小"},
    Text{"`{}` without a unit is {} bytes", "没有单位的 `{}` 就是 {} 字节"},
    Text{"`{}` without a unit is {} byte", "没有单位的 `{}` 就是 {} 字节"},
    Text{"`{}` is {} bytes, less than a page of memory", "`{}` 是 {} 字节，不到一页内存"},
    Text{"`{}` is {} byte, less than a page of memory", "`{}` 是 {} 字节，不到一页内存"},
    Text{"no run takes so little", "没有哪个训练只用这么少"},
    Text{"write a unit: {}", "请写上单位：{}"},
    Text{"{} GiB are more than there are in any machine", "{} GiB 比任何机器都多"},
    Text{"{} GiB are {}, less than a run can start in", "{} GiB 即 {}，训练无法在其中启动"},
    Text{"the number is in GiB: from {} on", "该数以 GiB 为单位：至少为 {}"},
    Text{"{} operations a second are fewer than any machine has", "每秒 {} 次运算比任何机器都少"},
    Text{"{} bytes a second are fewer than any machine has", "每秒 {} 字节比任何机器都少"},
    Text{"{} nodes of {} GPUs are {}; {} GPUs are the most that a run is judged for",
         "{} 个各有 {} 块 GPU 的节点共 {} 块；最多按 {} 块 GPU 评判一次训练"},
    Text{"if it is in {}, write {}: {}", "若单位是 {}，请写 {}: {}"},
    Text{"{} is out of range: at least {} is wanted", "{} 超出范围：至少应为 {}"},
    Text{"{} is out of range: at least {} and at most {} is wanted",
         "{} 超出范围：应至少为 {} 且至多为 {}"},
    Text{"{} is out of range: more than {} and at most {} is wanted",
         "{} 超出范围：应大于 {} 且至多为 {}"},
    Text{"{} is out of range: more than {} is wanted", "{} 超出范围：应大于 {}"},
    Text{"{} is out of range: {} to {} is wanted", "{} 超出范围：应为 {} 到 {}"},
    Text{"{} is out of range: {} is wanted", "{} 超出范围：应为 {}"},
    Text{"{}: {} in quotes is taken as the number that it spells", "{}：引号中的 {} 按其数字理解"},
    Text{"{}: {} in quotes is taken as {}", "{}：引号中的 {} 按 {} 理解"},
    Text{"unknown element type `{}`", "未知的元素类型 `{}`"},
    // What this engine does not do.
    Text{"{} is not honoured: {}", "{} 不被支持：{}"},
    Text{"{} has no effect: {}", "{} 不起作用：{}"},
    Text{"accepted without effect: {}", "接受但不起作用：{}"},
    Text{"type `{}` is not supported yet", "类型 `{}` 尚不支持"},
    Text{"stage `{}` is not supported", "stage `{}` 不支持"},
    Text{"optimizer `{}` is not supported", "优化器 `{}` 不支持"},
    Text{"schedule `{}` is not supported", "调度 `{}` 不支持"},
    Text{"`{}` is not supported", "`{}` 不支持"},
    Text{"supported so far is finetuning_type: full", "目前支持 finetuning_type: full"},
    Text{"supported are sft (instructions and answers) and pt (plain text)",
         "支持 sft（指令与回答）和 pt（纯文本）"},
    Text{"quantised base models are not supported yet", "量化的基础模型尚不支持"},
    Text{"accuracy in evaluation is not supported yet", "评估中的准确率尚不支持"},
    Text{"{} to {}: offload is not built yet", "{} 到 {}：卸载尚未实现"},
    Text{"offload is not built yet", "卸载尚未实现"},
    Text{"write none", "应写 none"},
    Text{"bf16 has no loss scale: this key belongs to fp16", "bf16 没有损失缩放：该键属于 fp16"},
    Text{"remove it (DeepSpeed refuses it as well)", "删除它（DeepSpeed 也会拒绝）"},
    Text{"this belongs to {}", "这属于 {}"},
    Text{"leave the key out", "去掉该键"},
    Text{"keep one of the two", "两者只留其一"},
    Text{"{} and {} exclude each other", "{} 与 {} 互相排斥"},
    // Two sources that differ.
    Text{"{} in {}, while {} is {} ({})", "{} 见于 {}，而 {} 为 {}（{}）"},
    Text{"on {} ranks ({}) the one gives {} x {} x {} = {}, the other {} x {} x {} = {}",
         "在 {} 个 rank（{}）上，前者为 {} x {} x {} = {}，后者为 {} x {} x {} = {}"},
    Text{"{} ({}) is not per_device_train_batch_size {} ({}) x gradient_accumulation_steps {} ({}) "
         "x "
         "ranks {} ({}) = {}",
         "{}（{}）不等于 per_device_train_batch_size {}（{}）x gradient_accumulation_steps "
         "{}（{}）x "
         "ranks {}（{}）= {}"},
    Text{"gradient_accumulation_steps: {} makes {}", "gradient_accumulation_steps: {} 得到 {}"},
    Text{"train_batch_size: {} or \"auto\" is what the run file gives",
         "训练文件给出的是 train_batch_size: {} 或 \"auto\""},
    Text{"write \"auto\", or the same value in both", "写 \"auto\"，或两处写相同的值"},
    Text{"write \"auto\", or the same values in both", "写 \"auto\"，或两处写相同的值"},
    Text{"{} has no gradient_clipping: max_grad_norm {} holds here",
         "{} 没有 gradient_clipping：这里 max_grad_norm {} 有效"},
    Text{"DeepSpeed takes 1.0 since 0.19.3 and did not clip before",
         "DeepSpeed 自 0.19.3 起取 1.0，之前不裁剪"},
    Text{"do_train is not given: this run trains, where LLaMA-Factory would not",
         "没有给出 do_train：这里会训练，而 LLaMA-Factory 不会"},
    Text{"bf16: true without a DeepSpeed config is bf16 weights and gradients with f32 masters "
         "here, "
         "where LLaMA-Factory keeps f32 weights under autocast",
         "没有 DeepSpeed 配置时，bf16: true 在此为 bf16 权重和梯度加 f32 主权重，而 LLaMA-Factory "
         "在 "
         "autocast 下保留 f32 权重"},
    Text{"saved weights are f32, as there", "保存的权重为 f32，与那里相同"},
    // Files.
    Text{"a comma before `{}`", "`{}` 之前多了逗号"},
    Text{"line {}, column {}: a comma before `{}`", "第 {} 行第 {} 列：`{}` 之前多了逗号"},
    Text{"line {}, column {}: {}", "第 {} 行第 {} 列：{}"},
    Text{"cannot open: {}", "无法打开：{}"},
    Text{"there is no such file", "没有这个文件"},
    // What begins as others do comes last.
    Text{"a list {}", "列表 {}"},
    Text{"a number {}", "数字 {}"},
    Text{"{} (command line)", "{}（命令行）"},
    Text{"supported are {}", "支持 {}"},
    Text{"supported is {}", "支持 {}"},
    Text{"write {}", "应写 {}"},
};

/// What stands in the holes of `pattern` where it fits all of `text`. Each hole ends where the words behind it first
/// come, the last one where they end the text: without going back, so that no text takes long.
std::optional<std::vector<std::string_view>> holes_of(std::string_view pattern,
                                                      std::string_view text) {
  std::vector<std::string_view> holes;
  const std::size_t first = pattern.find("{}");
  if (first == std::string_view::npos)
    return pattern == text ? std::optional(std::move(holes)) : std::nullopt;
  if (!text.starts_with(pattern.substr(0, first))) return std::nullopt;
  text.remove_prefix(first);
  pattern.remove_prefix(first + 2);
  while (true) {
    const std::size_t next = pattern.find("{}");
    const std::string_view words = pattern.substr(0, next);
    if (next == std::string_view::npos) {
      const std::size_t least = words.starts_with('`') ? 0 : 1;
      if (text.size() < words.size() + least || !text.ends_with(words)) return std::nullopt;
      holes.push_back(text.substr(0, text.size() - words.size()));
      return holes;
    }
    // A hole is empty in quotes alone.
    const std::size_t end = text.find(words, words.starts_with('`') ? 0 : 1);
    if (end == std::string_view::npos) return std::nullopt;
    holes.push_back(text.substr(0, end));
    text.remove_prefix(end + words.size());
    pattern.remove_prefix(next + 2);
  }
}

bool is_small_letter(char c) {
  return c >= 'a' && c <= 'z';
}

/// The first, or the last, place of `words` outside of backticks and quotation marks: names in them may have separators.
std::size_t find_unquoted(std::string_view text, std::string_view words, bool is_last = false) {
  std::size_t found = std::string_view::npos;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with(words)) {
      found = at;
      if (!is_last) return found;
    }
    if (text[at] != '"' && text[at] != '`') continue;
    if (const std::size_t end = text.find(text[at], at + 1); end != std::string_view::npos)
      at = end;
  }
  return found;
}

/// Where "; " ends a clause; in quotes it is code.
std::size_t end_of_clause(std::string_view text) {
  return find_unquoted(text, "; ");
}

/// Three words of small letters side by side: a sentence; names of files and keys have no blanks.
bool is_prose(std::string_view text) {
  int count = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const bool is_word = !word.empty() && std::all_of(word.begin(), word.end(), is_small_letter);
    count = is_word ? count + 1 : 0;
    if (count == 3) return true;
    at = end + 1;
  }
  return false;
}

/// "a, b and c" or "a, b, c", where each is one word, a number or quoted: names, which are put into backticks.
std::optional<std::string> list_in_chinese(std::string_view text) {
  const auto quoted = [](std::string_view item) {
    const bool is_name = item.find_first_of("`\"") == std::string_view::npos;
    return is_name ? "`" + std::string(item) + "`" : std::string(item);
  };
  std::string end;
  for (const auto& [last, chinese] :
       {std::pair<std::string_view, std::string_view>{" and ", " 和 "}, {" or ", " 或 "}}) {
    const std::size_t cut = find_unquoted(text, last, true);
    if (cut == std::string_view::npos) continue;
    end = std::string(chinese) + quoted(text.substr(cut + last.size()));
    if (find_unquoted(text.substr(cut + last.size()), " ") != std::string_view::npos)
      return std::nullopt;
    text = text.substr(0, cut);
    break;
  }
  std::string made;
  while (true) {
    const std::size_t comma = find_unquoted(text, ", ");
    const std::string_view item = text.substr(0, comma);
    if (item.empty() || find_unquoted(item, " ") != std::string_view::npos) return std::nullopt;
    made += quoted(item);
    if (comma == std::string_view::npos) return made + end;
    made += "、";
    text.remove_prefix(comma + 2);
  }
}

/// What a reader filled in. Nothing when it is a sentence that cannot be said in Chinese: half a sentence is worse than
/// none. What stands in quotes is a name, whatever it looks like.
std::optional<std::string> hole_in_chinese(std::string_view hole, bool is_quoted) {
  if (hole == "default") return "默认值";  // where a value comes from
  if (is_quoted || hole.find(' ') == std::string_view::npos) return std::string(hole);
  if (std::string made = in_chinese(hole); made != hole) return made;
  if (auto list = list_in_chinese(hole)) return list;
  return is_prose(hole) ? std::nullopt : std::optional(std::string(hole));
}

std::optional<std::string> translated_by(const Text& sentence, std::string_view text) {
  const auto holes = holes_of(sentence.english, text);
  if (!holes) return std::nullopt;
  std::string made;
  std::string_view pattern = sentence.chinese;
  for (const std::string_view hole : *holes) {
    // A clause of its own ends the one before it.
    if (end_of_clause(hole) != std::string_view::npos) return std::nullopt;
    const std::size_t at = pattern.find("{}");
    const auto filled = hole_in_chinese(hole, at > 0 && pattern[at - 1] == '`');
    if (!filled) return std::nullopt;
    made += pattern.substr(0, at);
    made += *filled;
    pattern.remove_prefix(at + 2);
  }
  return made + std::string(pattern);
}

/// One sentence by the first pattern that fits; what stands in its holes may be a sentence too.
std::optional<std::string> translated(std::string_view text) {
  for (const std::span<const Text> table : reader_sentences())
    for (const Text& sentence : table)
      if (auto made = translated_by(sentence, text)) return made;
  return std::nullopt;
}

/// "  KEY: what is wrong with it", a line below "3 problems".
std::string line_of_report(std::string_view line) {
  line.remove_prefix(2);
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return "  " + in_chinese(line);
  const std::string_view key = line.substr(0, colon);
  const std::size_t place = std::min(key.find(" ("), key.size());
  return "  `" + std::string(key.substr(0, place)) + "`" +
         (place < key.size() ? in_chinese("x" + std::string(key.substr(place))).substr(1) : "") +
         "：" + in_chinese(line.substr(colon + 2));
}

// Longer ones are no sentence of a reader, and no report of several lines.
constexpr std::size_t longest_sentence = 1000;
constexpr std::size_t longest_report = 16'000;

}  // namespace

std::vector<std::span<const Text>> reader_sentences() {
  return {refusal_sentences(), data_sentences(), tokenizer_sentences(), file_sentences(),
          sentences};
}

std::string in_chinese(std::string_view english) {
  if (english.size() > longest_report) return std::string(english);
  if (const std::size_t line = english.find('\n'); line != std::string_view::npos)
    return in_chinese(english.substr(0, line)) + "\n" + in_chinese(english.substr(line + 1));
  if (english.size() > longest_sentence) return std::string(english);
  if (const auto whole = translated(english)) return *whole;
  const std::size_t clause = end_of_clause(english);
  if (clause == std::string_view::npos)
    return english.starts_with("  ") ? line_of_report(english) : std::string(english);
  return in_chinese(english.substr(0, clause)) + "；" + in_chinese(english.substr(clause + 2));
}

}  // namespace underkeel::doctor
