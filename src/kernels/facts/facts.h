#pragma once
// What the planner asks about kernels without a device: scratch, floating-point operations, and
// the constants that cut work into pieces. Pure functions.

#include <cstdint>

#include "tensor/dtype.h"

namespace underkeel::kernels {

/// Rows that share one partial sum in rms_norm_backward.
constexpr std::int64_t rms_norm_row_block = 64;
std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t columns);

/// Attention is refused beyond this width of a head.
constexpr std::int64_t largest_head_width = 512;
/// Gradients of keys and values in f32 (CPU), or a sum for each row and query head (CUDA).
std::int64_t attention_backward_scratch_bytes(std::int64_t rows, std::int64_t query_heads,
                                              std::int64_t key_heads, std::int64_t head_width);

/// Multiply-adds count two. Causal attention over one sequence of `rows`.
std::int64_t matmul_flops(std::int64_t m, std::int64_t n, std::int64_t k);
std::int64_t attention_forward_flops(std::int64_t rows, std::int64_t query_heads,
                                     std::int64_t head_width, std::int64_t window);
std::int64_t attention_backward_flops(std::int64_t rows, std::int64_t query_heads,
                                      std::int64_t head_width, std::int64_t window);

/// Rows of logits that exist at once: at most 64 MiB of f32, a multiple of 16, at least 16. (With a
/// quarter of that, products with a head of 32,000 tokens run a third slower: every chunk reads the
/// weight and its gradient again.) Depends on the vocabulary alone, so that bits do not depend on
/// budget or stage.
std::int64_t loss_chunk_rows(std::int64_t vocabulary);

/// The same for the CUDA backend, in the storage type: every chunk adds to the whole f32 gradient of the
/// head, so chunks are large.
constexpr std::int64_t cuda_loss_chunk_rows = 2048;

/// What the CUDA backend keeps until it can be added in order; the CPU's tiles need none of it.
std::int64_t cross_entropy_scratch_bytes(std::int64_t rows);
std::int64_t sum_squares_scratch_bytes(std::int64_t element_count);
/// The most that cuBLASLt may use of a lane's memory; algorithms that need more are not considered. What
/// its makers recommend for Hopper.
constexpr std::int64_t cuda_matmul_workspace_bytes = std::int64_t{32} << 20;

/// What the CPU backend holds for each thread that calls kernels (a lane): memory shared by the
/// tiles of one call, and a slot for each thread of the lane's pool.
constexpr std::int64_t cpu_shared_bytes = std::int64_t{8} << 20;
constexpr std::int64_t cpu_slot_bytes = std::int64_t{5} << 19;
/// Its size for a pool of `thread_count` threads; attention uses the same memory.
std::int64_t cpu_matmul_overhead_bytes(int thread_count);

}  // namespace underkeel::kernels
