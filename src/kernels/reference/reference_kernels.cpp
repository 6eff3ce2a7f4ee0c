#include "kernels/reference/reference.h"

namespace underkeel::kernels {

const KernelTable& reference_kernels() {
  static constexpr KernelTable table{.matmul = reference::matmul,
                                     .column_sum = reference::column_sum,
                                     .embedding_forward = reference::embedding_forward,
                                     .embedding_backward = reference::embedding_backward,
                                     .rms_norm_forward = reference::rms_norm_forward,
                                     .rms_norm_backward = reference::rms_norm_backward,
                                     .rope_table = reference::rope_table,
                                     .rope_apply = reference::rope_apply,
                                     .attention_forward = reference::attention_forward,
                                     .attention_backward = reference::attention_backward,
                                     .attention_cached = reference::attention_cached,
                                     .swiglu_forward = reference::swiglu_forward,
                                     .swiglu_backward = reference::swiglu_backward,
                                     .cross_entropy = reference::cross_entropy,
                                     .copy = reference::copy,
                                     .add = reference::add,
                                     .fill = reference::fill,
                                     .sum_squares = reference::sum_squares,
                                     .clip_factor = reference::clip_factor,
                                     .adamw = reference::adamw,
                                     .adamw_at_random = reference::adamw_at_random};
  return table;
}

}  // namespace underkeel::kernels
