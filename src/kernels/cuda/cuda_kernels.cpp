#include "kernels/cuda/kernels.h"

namespace underkeel::kernels {

const KernelTable& cuda_kernels() {
  static constexpr KernelTable functions{.matmul = cuda::matmul,
                                         .column_sum = cuda::column_sum,
                                         .embedding_forward = cuda::embedding_forward,
                                         .embedding_backward = cuda::embedding_backward,
                                         .rms_norm_forward = cuda::rms_norm_forward,
                                         .rms_norm_backward = cuda::rms_norm_backward,
                                         .rope_table = cuda::rope_table,
                                         .rope_apply = cuda::rope_apply,
                                         .attention_forward = cuda::attention_forward,
                                         .attention_backward = cuda::attention_backward,
                                         .attention_cached = nullptr,
                                         .swiglu_forward = cuda::swiglu_forward,
                                         .swiglu_backward = cuda::swiglu_backward,
                                         .cross_entropy = cuda::cross_entropy,
                                         .copy = cuda::copy,
                                         .add = cuda::add,
                                         .fill = cuda::fill,
                                         .sum_squares = cuda::sum_squares,
                                         .clip_factor = cuda::clip_factor,
                                         .adamw = cuda::adamw,
                                         .adamw_at_random = cuda::adamw_at_random};
  return functions;
}

}  // namespace underkeel::kernels
