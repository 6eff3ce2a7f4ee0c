#pragma once
// Every operation that a plan can compute, as one table of functions per backend. `reference` is
// plain loops in double, obviously right; `cpu` and `cuda` must agree with it within bounds.
//
// Common rules. Rows are tokens of the flat micro-batch. Storage is f32, bf16 or f16; sums are f32
// or wider, and a result is rounded once. Zero rows are legal everywhere (results that sum over
// rows are then zero). Every matrix view may have a row stride larger than its columns (q, k and v
// are columns of one buffer, gate and up of another; so are their gradients); vectors and scratch are
// contiguous. Sizes are checked by UK_CHECK: a wrong shape is the planner's mistake. Results never
// depend on the number of threads. CPU kernels return when done and allocate nothing. The argument
// structs are one header per operation; letters are those of docs/glossary.md.

#include "device/queue.h"
#include "kernels/adamw.h"
#include "kernels/adamw_at_random.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/sum_squares.h"
#include "kernels/swiglu.h"

namespace underkeel::kernels {

struct KernelTable {
  void (*matmul)(const MatmulArgs&, device::Queue&);
  void (*column_sum)(const ColumnSumArgs&, device::Queue&);
  void (*embedding_forward)(const EmbeddingForwardArgs&, device::Queue&);
  void (*embedding_backward)(const EmbeddingBackwardArgs&, device::Queue&);
  void (*rms_norm_forward)(const RmsNormForwardArgs&, device::Queue&);
  void (*rms_norm_backward)(const RmsNormBackwardArgs&, device::Queue&);
  void (*rope_table)(const RopeTableArgs&, device::Queue&);
  void (*rope_apply)(const RopeApplyArgs&, device::Queue&);
  void (*attention_forward)(const AttentionForwardArgs&, device::Queue&);
  void (*attention_backward)(const AttentionBackwardArgs&, device::Queue&);
  void (*attention_cached)(const AttentionCachedArgs&, device::Queue&);  // not on a GPU: null
  void (*swiglu_forward)(const SwigluForwardArgs&, device::Queue&);
  void (*swiglu_backward)(const SwigluBackwardArgs&, device::Queue&);
  void (*cross_entropy)(const CrossEntropyArgs&, device::Queue&);
  void (*copy)(const CopyArgs&, device::Queue&);
  void (*add)(const AddArgs&, device::Queue&);
  void (*fill)(const FillArgs&, device::Queue&);
  void (*sum_squares)(const SumSquaresArgs&, device::Queue&);
  void (*clip_factor)(const ClipFactorArgs&, device::Queue&);
  void (*adamw)(const AdamwArgs&, device::Queue&);
  void (*adamw_at_random)(const AdamwAtRandomArgs&, device::Queue&);
};

const KernelTable& reference_kernels();
/// Vectorised; AVX2 at least, AVX-512 where the processor has it.
const KernelTable& cpu_kernels();
/// For queues of a device::Gpu; every pointer is to memory that the GPU reaches. Calls return once queued,
/// allocate no memory of any space once an operation of the same shape has run, and have fixed orders
/// too: docs/numerics.md. Only a build with CUDA has it, and only there can a GPU be opened.
const KernelTable& cuda_kernels();

}  // namespace underkeel::kernels
