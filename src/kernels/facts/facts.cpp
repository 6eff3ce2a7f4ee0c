#include "kernels/facts/facts.h"

#include <algorithm>

#include "base/units.h"

namespace underkeel::kernels {

std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t columns) {
  return ceil_div(rows, rms_norm_row_block) * columns * 4;
}

std::int64_t matmul_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2 * m * n * k;
}

namespace {
// Visible (query, key) pairs of one causal sequence.
std::int64_t visible_pairs(std::int64_t rows, std::int64_t window) {
  if (window <= 0 || window >= rows) return rows * (rows + 1) / 2;
  return window * (window + 1) / 2 + (rows - window) * window;
}
}  // namespace

std::int64_t attention_forward_flops(std::int64_t rows, std::int64_t query_heads,
                                     std::int64_t head_width, std::int64_t window) {
  return 4 * visible_pairs(rows, window) * query_heads * head_width;
}

std::int64_t attention_backward_flops(std::int64_t rows, std::int64_t query_heads,
                                      std::int64_t head_width, std::int64_t window) {
  return 10 * visible_pairs(rows, window) * query_heads * head_width;
}

std::int64_t loss_chunk_rows(std::int64_t vocabulary) {
  const std::int64_t rows = 64 * mebibyte / (4 * vocabulary);
  return std::max<std::int64_t>(16, rows / 16 * 16);
}

std::int64_t attention_backward_scratch_bytes(std::int64_t rows, std::int64_t query_heads,
                                              std::int64_t key_heads, std::int64_t head_width) {
  return rows * 4 * std::max(2 * key_heads * round_up(head_width, 16), query_heads);
}

std::int64_t cross_entropy_scratch_bytes(std::int64_t rows) {
  return rows * bytes_of(DType::f64, 1);
}

std::int64_t sum_squares_scratch_bytes(std::int64_t element_count) {
  constexpr std::int64_t block_elements = 16'384;  // of the written order, kernels/sum_squares.h
  return ceil_div(element_count, block_elements) * bytes_of(DType::f64, 1);
}

std::int64_t cpu_matmul_overhead_bytes(int thread_count) {
  constexpr std::int64_t page_bytes = 2 * mebibyte;
  return round_up(cpu_shared_bytes + thread_count * cpu_slot_bytes, page_bytes);
}

}  // namespace underkeel::kernels
