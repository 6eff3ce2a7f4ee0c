// Words of findings about a run file by itself: what LLaMA-Factory or the Trainer refuse in it.

#include <array>

#include "doctor/wording.h"

namespace underkeel::doctor {
namespace {

constexpr std::array wordings = {
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
};

}  // namespace

std::span<const Wording> run_wordings() {
  return wordings;
}

}  // namespace underkeel::doctor
