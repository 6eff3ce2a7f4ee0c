#pragma once
// The reference backend: plain loops, double arithmetic, one rounding at the end, except where an
// operation's header writes roundings or an order down. Single-threaded; the queue is not used.

#include "kernels/kernels.h"

namespace underkeel::kernels::reference {

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
void attention_cached(const AttentionCachedArgs& args, device::Queue& queue);
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

}  // namespace underkeel::kernels::reference
