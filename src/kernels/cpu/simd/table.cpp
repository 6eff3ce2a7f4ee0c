#include "kernels/cpu/rope_table.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/reference/reference.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

const KernelTable& table() {
  static constexpr KernelTable functions{.matmul = matmul,
                                         .column_sum = column_sum,
                                         .embedding_forward = embedding_forward,
                                         .embedding_backward = embedding_backward,
                                         .rms_norm_forward = rms_norm_forward,
                                         .rms_norm_backward = rms_norm_backward,
                                         .rope_table = rope_table,
                                         .rope_apply = rope_apply,
                                         .attention_forward = attention_forward,
                                         .attention_backward = attention_backward,
                                         .attention_cached = attention_cached,
                                         .swiglu_forward = swiglu_forward,
                                         .swiglu_backward = swiglu_backward,
                                         .cross_entropy = cross_entropy,
                                         .copy = copy,
                                         .add = add,
                                         .fill = fill,
                                         .sum_squares = sum_squares,
                                         // A handful of numbers in double: nothing to vectorise.
                                         .clip_factor = reference::clip_factor,
                                         .adamw = adamw,
                                         .adamw_at_random = adamw_at_random};
  return functions;
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
