#pragma once
// The CUDA kernels, one function an operation; private to this folder.

#include "kernels/kernels.h"

namespace underkeel::kernels::cuda {

void matmul(const MatmulArgs& args, device::Queue& queue);
void column_sum(const ColumnSumArgs& args, device::Queue& queue);
void embedding_forward(const EmbeddingForwardArgs& args, device::Queue& queue);
void embedding_backward(const EmbeddingBackwardArgs& args, device::Queue& queue);
void rms_norm_forward(const RmsNormForwardArgs& args, device::Queue& queue);
void rms_norm_backward(const RmsNormBackwardArgs& args, device::Queue& queue);
void rope_table(const RopeTableArgs& args, device::Queue& queue);
void rope_apply(const RopeApplyArgs& args, device::Queue& queue);
void attention_forward(const AttentionForwardArgs& args, device::Queue& queue);
void attention_backward(const AttentionBackwardArgs& args, device::Queue& queue);
void swiglu_forward(const SwigluForwardArgs& args, device::Queue& queue);
void swiglu_backward(const SwigluBackwardArgs& args, device::Queue& queue);
void cross_entropy(const CrossEntropyArgs& args, device::Queue& queue);
void copy(const CopyArgs& args, device::Queue& queue);
void add(const AddArgs& args, device::Queue& queue);
void fill(const FillArgs& args, device::Queue& queue);
void sum_squares(const SumSquaresArgs& args, device::Queue& queue);
void clip_factor(const ClipFactorArgs& args, device::Queue& queue);
void adamw(const AdamwArgs& args, device::Queue& queue);
void adamw_at_random(const AdamwAtRandomArgs& args, device::Queue& queue);

/// sum (1) f64 [+]= values (n) f64, in order.
void sum_in_order(const TensorView& values, const TensorView& sum, bool accumulate,
                  device::Queue& queue);
/// c row += bias; what a product without depth, or in types that the library has no epilogue for, still
/// needs. `clear` sets c to the bias instead.
void add_bias(const TensorView& c, const TensorView& bias, bool clear, device::Queue& queue);

}  // namespace underkeel::kernels::cuda
