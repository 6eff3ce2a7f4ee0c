// What findings about the sizes of a batch say.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
    Wording{
        "accumulation-differs",
        {"gradient_accumulation_steps is {value} in {file} and {run_value} in {run_file}: on "
         "{ranks} "
         "ranks ({source}) the one gives {micro} x {value} x {ranks} = {product}, the other "
         "{micro} x "
         "{run_value} x {ranks} = {run_product}; the HF Trainer stops with a ValueError",
         "gradient_accumulation_steps 在 {file} 为 {value}，在 {run_file} 为 {run_value}：{ranks} "
         "个 "
         "rank（{source}）时，前者给出 {micro} x {value} x {ranks} = {product}，后者给出 {micro} x "
         "{run_value} x {ranks} = {run_product}；HF Trainer 以 ValueError 停止"},
        {"write \"auto\", or the same value in both", "请写 \"auto\"，或让两处一致"}},
    Wording{"batch-differs-from-run",
            {"train_batch_size is {value} ({file}), while {run_file} gives {micro} x {steps} x "
             "{ranks} = "
             "{product} on {ranks} ranks ({source}): the HF Trainer stops with a ValueError",
             "train_batch_size 为 {value}（{file}），而 {run_file} 在 {ranks} 个 "
             "rank（{source}）时给出 "
             "{micro} x {steps} x {ranks} = {product}：HF Trainer 以 ValueError 停止"},
            {"write \"auto\"; or gradient_accumulation_steps {needed_steps}, which makes {value}",
             "请写 \"auto\"；或把 gradient_accumulation_steps 设为 {needed_steps}，即得 {value}"}},
    Wording{"batch-cannot-be-made",
            {"train_batch_size is {value} ({file}), while {run_file} gives {micro} x {steps} x "
             "{ranks} = "
             "{product} on {ranks} ranks ({source}); no accumulation makes {value}: the HF Trainer "
             "stops "
             "with a ValueError",
             "train_batch_size 为 {value}（{file}），而 {run_file} 在 {ranks} 个 "
             "rank（{source}）时给出 "
             "{micro} x {steps} x {ranks} = {product}；任何累积步数都得不到 {value}：HF Trainer 以 "
             "ValueError 停止"},
            {"write \"auto\"", "请写 \"auto\""}},
    Wording{"batch-equation",
            {"train_batch_size {value} is not train_micro_batch_size_per_gpu {micro} x "
             "gradient_accumulation_steps {steps} x {ranks} ranks ({source}) = {product}: "
             "DeepSpeed stops "
             "with an AssertionError",
             "train_batch_size {value} 不等于 train_micro_batch_size_per_gpu {micro} x "
             "gradient_accumulation_steps {steps} x {ranks} 个 rank（{source}）= "
             "{product}：DeepSpeed 以 "
             "AssertionError 停止"},
            {"leave one of the three out: DeepSpeed works it out",
             "三个中省略一个，DeepSpeed 会自行计算"}},
    Wording{
        "batch-no-multiple",
        {"train_batch_size {value} is no multiple of {micro} x {ranks} ranks ({source}): DeepSpeed "
         "stops with an AssertionError",
         "train_batch_size {value} 不是 {micro} x {ranks} 个 rank（{source}）的倍数：DeepSpeed 以 "
         "AssertionError 停止"},
        {"give a multiple", "请给出倍数"}},
    Wording{
        "batch-micro-cannot-be-made",
        {"of train_batch_size {value}, on {ranks} ranks ({source}) with "
         "gradient_accumulation_steps "
         "{steps}, the micro-batch would be {micro}, and {micro} x {steps} x {ranks} = {product} "
         "is "
         "not {value}: DeepSpeed stops with an AssertionError",
         "train_batch_size {value} 除以 {ranks} 个 rank（{source}）和 gradient_accumulation_steps "
         "{steps} 得到微批 {micro}，而 {micro} x {steps} x {ranks} = {product} 不等于 {value}："
         "DeepSpeed 以 AssertionError 停止"},
        {"give a multiple of ranks x gradient_accumulation_steps",
         "请给出 rank 数 x gradient_accumulation_steps 的倍数"}},
    Wording{"accumulation-left-out",
            {"gradient_accumulation_steps is not in {file}: accelerate adds it as 1, not the "
             "{steps} of "
             "{run_file}, and DeepSpeed updates after each micro-batch: the global batch is "
             "{micro} x 1 "
             "x {ranks} ranks ({source}) = {product}, not {run_product}",
             "{file} 中没有 gradient_accumulation_steps：accelerate 补上 1，而不是 {run_file} 的 "
             "{steps}，"
             "DeepSpeed 每个微批更新一次：全局批大小为 {micro} x 1 x {ranks} 个 rank（{source}）= "
             "{product}，而不是 {run_product}"},
            {"write \"gradient_accumulation_steps\": \"auto\"",
             "请写 \"gradient_accumulation_steps\": \"auto\""}},
    Wording{"batch-is-missing",
            {"neither train_batch_size nor train_micro_batch_size_per_gpu is given: DeepSpeed "
             "stops with "
             "an AssertionError",
             "train_batch_size 和 train_micro_batch_size_per_gpu 都没有给出：DeepSpeed 以 "
             "AssertionError "
             "停止"},
            {"give one of the two; the HF Trainer fills in \"auto\", not a key that is left out",
             "请给出其中一个；HF Trainer 只填 \"auto\"，不补省略的键"}},
    Wording{
        "batch-on-other-ranks",
        {"the global batch is {micro} x {steps} x {ranks} ranks = {global}; it stays so on other "
         "ranks with this gradient_accumulation_steps (ranks: steps): {others}",
         "全局批大小为 {micro} x {steps} x {ranks} 个 rank = {global}；换用其他 rank "
         "数时，保持不变的 gradient_accumulation_steps（rank 数: 步数）：{others}"},
        {}},
};

}  // namespace

std::span<const Wording> batch_wordings() {
  return wordings;
}

}  // namespace underkeel::doctor
