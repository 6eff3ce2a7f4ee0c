// Words of findings about values of a DeepSpeed config, and what DeepSpeed makes of a wrong one.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{"value-wrong-type",
            {"`{key}`: {wanted} is wanted, {kind} {found} was found: {does}",
             "`{key}`：应为{wanted}，实际是{kind} {found}：{does}"},
            {"write {wanted}", "请写{wanted}"}},
    Wording{"value-quoted",
            {"`{key}`: {found} is taken for the value that it spells ({wanted}); other readers "
             "refuse it",
             "`{key}`：{found} 会按其字面值（{wanted}）处理；其他读取器会拒绝"},
            {"write it without quotes", "请去掉引号"}},
    Wording{"value-boolean",
            {"`{key}`: {found} is taken for {number}; other readers refuse it",
             "`{key}`：{found} 会按 {number} 处理；其他读取器会拒绝"},
            {"write {number}", "请写 {number}"}},
    Wording{"value-out-of-range",
            {"`{key}`: {found} is out of range ({range}): {does}",
             "`{key}`：{found} 超出范围（{range}）：{does}"},
            {"write a value of that range ({range})", "请写该范围内的值（{range}）"}},
    Wording{"value-not-a-choice",
            {"`{key}`: {found} is none of {choices}: {does}",
             "`{key}`：{found} 不在可选值 {choices} 之中：{does}"},
            {"write one of {choices}", "请写 {choices} 之一"}},
    Wording{
        "betas-not-two",
        {"betas is {found}, where two numbers are wanted: DeepSpeed does not check it, and fails "
         "at step 1",
         "betas 为 {found}，应为两个数字：DeepSpeed 不检查它，第 1 步才出错"},
        {"\"betas\": [0.9, 0.999]", "\"betas\": [0.9, 0.999]"}},
    Wording{
        "betas-out-of-range",
        {"betas is {found}, where each is to be at least 0 and below 1: DeepSpeed's own Adam does "
         "not check it and makes values that are no numbers, torch's stops with a ValueError",
         "betas 为 {found}，每个都应至少为 0 且小于 1：DeepSpeed 自己的 Adam "
         "不检查它并产生非数值，torch 的以 ValueError 停止"},
        {"\"betas\": [0.9, 0.999]", "\"betas\": [0.9, 0.999]"}},
    Wording{
        "warmup-not-whole",
        {"warmup_num_steps is {found}: under the Trainer or accelerate it stays a number with a "
         "fraction, which DeepSpeed refuses with a ValueError since v0.19.3; started alone, "
         "DeepSpeed reads {whole}",
         "warmup_num_steps 为 {found}：经 Trainer 或 accelerate 它仍是带小数的数字，DeepSpeed 自 "
         "v0.19.3 起以 ValueError 拒绝；单独启动时 DeepSpeed 读作 {whole}"},
        {"write {whole}", "请写 {whole}"}},
};

constexpr std::array parts = {
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
    Phrase{"does.trainer-stops",
           {"the HF Trainer, which compares it with the run file's value before DeepSpeed sees it, "
            "stops with a ValueError: it equals no number",
            "HF Trainer 会在 DeepSpeed 看到它之前与训练文件的值比较，并以 ValueError "
            "停止：它不等于任何数字"}},
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
    Phrase{"does.overflows",
           {"DeepSpeed stops when it reads the file, with an OverflowError; the HF Trainer and "
            "accelerate read infinity",
            "DeepSpeed 读取文件时以 OverflowError 停止；HF Trainer 和 accelerate 读作无穷大"}},
    Phrase{"does.fails-combining",
           {"DeepSpeed fails at start, where it combines it with the profiler's switch",
            "DeepSpeed 在启动时把它与 profiler 的开关合并，因此出错"}},
    Phrase{"does.fails-without-keys",
           {"DeepSpeed fails at start, where it looks for keys in it",
            "DeepSpeed 在启动时在其中查找键，因此出错"}},
    Phrase{"does.fails-as-text",
           {"DeepSpeed fails at start, where it reads it as a text",
            "DeepSpeed 在启动时把它当作文本读取，因此出错"}},
    Phrase{"does.value-error",
           {"DeepSpeed stops at start with a ValueError", "DeepSpeed 在启动时以 ValueError 停止"}},
    Phrase{"does.config-error",
           {"DeepSpeed stops at start with a DeepSpeedConfigError",
            "DeepSpeed 在启动时以 DeepSpeedConfigError 停止"}},
    Phrase{"does.takes-log", {"DeepSpeed warns, and takes log", "DeepSpeed 会警告，并取 log"}},
    Phrase{"does.unchecked-by-own-adam",
           {"DeepSpeed's own Adam does not check it, torch's stops with a ValueError",
            "DeepSpeed 自己的 Adam 不检查它，torch 的以 ValueError 停止"}},
};

}  // namespace

std::span<const Wording> value_wordings() {
  return wordings;
}

std::span<const Phrase> value_phrases() {
  return parts;
}

}  // namespace underkeel::doctor
