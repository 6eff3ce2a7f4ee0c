#pragma once

#include <numeric>

#include <fmt/format.h>

#include "kernels/bounds.h"
#include "kernels/case.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels::cases {

struct AttentionCase {
  std::string name;
  std::vector<std::int64_t> lengths;  // of the sequences, in order; empty ones are legal
  std::int64_t query_heads;
  std::int64_t key_heads;
  std::int64_t head_width;
  std::int64_t window = 0;
  DType type = DType::f32;
  std::int64_t stride_gap = 0;
  bool turns_back = false;  // the backward pass, dq and dk
};

inline std::vector<double> starts_of(const std::vector<std::int64_t>& lengths) {
  const std::int64_t rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<double> starts;
  std::int64_t begin = 0;
  // More sequences than rows + 1 cannot be told: the caller keeps empty ones few.
  for (const std::int64_t length : lengths) {
    starts.push_back(static_cast<double>(begin));
    begin += length;
  }
  starts.resize(static_cast<std::size_t>(rows + 1), static_cast<double>(rows));
  return starts;
}

inline double dot(const TensorView& a, const TensorView& b) {
  double sum = 0;
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t column = 0; column < a.columns; ++column)
      sum += reference::load(a, row, column) * reference::load(b, row, column);
  return sum;
}

inline std::pair<Case, Case> attention_cases(const AttentionCase& options) {
  const std::vector<double> starts = starts_of(options.lengths);
  const auto rows = static_cast<std::int64_t>(starts.size()) - 1;
  const std::int64_t width = options.head_width;
  const std::int64_t q_columns = options.query_heads * width;
  const std::int64_t k_columns = options.key_heads * width;
  const DType type = options.type;
  const std::int64_t gap = options.stride_gap;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  const std::string name =
      fmt::format("{}, {} rows, H {} K {} E {}, window {}, {}{}", options.name, rows,
                  options.query_heads, options.key_heads, width, options.window, name_of(type),
                  options.turns_back ? ", turned back" : "");

  // q has amplitude 4, k, v and dout 1, so that scores spread over several units. A sum of E
  // products of uniform numbers has absolute terms amplitude / 4 on average; 2 for the spread.
  const double dot_terms = 2 * static_cast<double>(width) / 4;
  const double score_error =
      sum_bound(width + 2) * 4 * dot_terms * static_cast<double>(scale) + 16 * f32_unit;
  const double probability_error = 2 * score_error + sum_bound(rows) + 8 * f32_unit;
  // |dp - delta| is at most twice the largest |dout . v|; its own error comes on top.
  const double score_gradient_error =
      2 * dot_terms * (2 * probability_error + 2 * sum_bound(width + 2)) +
      2 * dot_terms * (type == DType::f32 ? 0 : rounding(type));  // delta reads the rounded out
  // Tensor cores take probabilities in the storage type: half a spacing of each.
  const double rounded = type == DType::f32 ? 0 : rounding(type) / 2;
  const double score_gradient_rounded = 2 * dot_terms * 2 * rounded;
  const auto group = static_cast<double>(options.query_heads / options.key_heads);
  const double queries = group * (1 + std::log(static_cast<double>(rows + 1))) * 4;  // sum of p
  const double scale_wide = static_cast<double>(scale);

  const Operand q{.name = "q",
                  .type = type,
                  .rows = rows,
                  .columns = q_columns,
                  .fill = uniform(31, 4),
                  .stride_gap = gap};
  const Operand k{.name = "k",
                  .type = type,
                  .rows = rows,
                  .columns = k_columns,
                  .fill = uniform(32, 1),
                  .stride_gap = gap};
  const Operand v{.name = "v",
                  .type = type,
                  .rows = rows,
                  .columns = k_columns,
                  .fill = uniform(33, 1),
                  .stride_gap = gap};
  const Operand s{
      .name = "sequence_starts", .type = DType::i32, .columns = rows + 1, .fill = values(starts)};
  const Operand out{.name = "out",
                    .role = Role::output,
                    .type = type,
                    .rows = rows,
                    .columns = q_columns,
                    .bound = {.absolute = probability_error, .from_tensor_cores = rounded},
                    .stride_gap = gap};
  const Operand lse{.name = "lse",
                    .role = Role::output,
                    .rows = rows,
                    .columns = options.query_heads,
                    .bound = {.absolute = probability_error, .relative = 4 * f32_unit}};

  Case forward{.operation = "attention_forward", .name = name};
  forward.operands = {q, k, v, s, out, lse};
  const auto run_forward = [=](const KernelTable& table, Views views, device::Queue& queue) {
    table.attention_forward({.q = views[0],
                             .k = views[1],
                             .v = views[2],
                             .sequence_starts = views[3],
                             .out = views[4],
                             .lse = views[5],
                             .query_heads = options.query_heads,
                             .key_heads = options.key_heads,
                             .head_width = width,
                             .window = options.window,
                             .scale = scale},
                            queue);
  };
  forward.run = run_forward;

  Case backward{.operation = "attention_backward", .name = name};
  const auto gradient = [&](const char* label, std::int64_t columns, double absolute,
                            double from_tensor_cores) {
    return Operand{.name = label,
                   .role = Role::output,
                   .type = type,
                   .rows = rows,
                   .columns = columns,
                   .bound = {.absolute = absolute,
                             .relative_l2 = 2e-5,
                             .from_tensor_cores = from_tensor_cores},
                   .stride_gap = gap};
  };
  // Two elements, each with its error and its rounding to storage, make one of a turned row.
  const double turned = options.turns_back ? 2 : 1;
  const double rounded_before = options.turns_back && type != DType::f32 ? 8 * rounding(type) : 0;
  const std::int64_t scratch_bytes =
      attention_backward_scratch_bytes(rows, options.query_heads, options.key_heads, width);
  backward.operands = {
      q,
      k,
      v,
      s,
      out,
      lse,
      {.name = "dout",
       .type = type,
       .rows = rows,
       .columns = q_columns,
       .fill = uniform(34, 1),
       .stride_gap = gap},
      gradient("dq", q_columns, turned * scale_wide * score_gradient_error + rounded_before,
               turned * scale_wide * score_gradient_rounded),
      gradient("dk", k_columns,
               turned * scale_wide * score_gradient_error * queries * 4 + rounded_before,
               turned * scale_wide * score_gradient_rounded * queries * 4),
      gradient("dv", k_columns, queries * probability_error, queries * rounded),
      {.name = "scratch", .role = Role::scratch, .type = DType::u8, .columns = scratch_bytes}};
  backward.operands[4].role = Role::prepared;
  backward.operands[5].role = Role::prepared;
  const auto angle = uniform(53, 3);
  if (options.turns_back) {
    backward.operands.push_back(
        {.name = "cosine", .rows = rows, .columns = width / 2, .fill = [=](auto r, auto c) {
           return std::cos(angle(r, c));
         }});
    backward.operands.push_back(
        {.name = "sine", .rows = rows, .columns = width / 2, .fill = [=](auto r, auto c) {
           return std::sin(angle(r, c));
         }});
  }
  backward.prepare = [=](Views views, device::Queue& queue) {
    run_forward(reference_kernels(), views, queue);
  };
  backward.run = [=](const KernelTable& table, Views views, device::Queue& queue) {
    table.attention_backward({.q = views[0],
                              .k = views[1],
                              .v = views[2],
                              .sequence_starts = views[3],
                              .out = views[4],
                              .lse = views[5],
                              .dout = views[6],
                              .dq = views[7],
                              .dk = views[8],
                              .dv = views[9],
                              .scratch = views[10],
                              .cosine = options.turns_back ? views[11] : TensorView{},
                              .sine = options.turns_back ? views[12] : TensorView{},
                              .query_heads = options.query_heads,
                              .key_heads = options.key_heads,
                              .head_width = width,
                              .window = options.window,
                              .scale = scale},
                             queue);
  };
  double forward_flops = 0;
  for (const std::int64_t length : options.lengths)
    forward_flops += static_cast<double>(
        attention_forward_flops(length, options.query_heads, width, options.window));
  forward.flops = forward_flops;
  backward.flops = 2.5 * forward_flops;
  return {std::move(forward), std::move(backward)};
}

inline void add_attention_cases(std::vector<Case>& all) {
  const auto push = [&](const AttentionCase& options, bool gradient, bool benchmark) {
    auto [forward, backward] = attention_cases(options);
    forward.benchmark = backward.benchmark = benchmark;
    if (gradient) {
      backward.loss = [prepare = backward.prepare](Views views, device::Queue& queue) {
        prepare(views, queue);
        return dot(views[4], views[6]);
      };
      backward.gradients = {{0, 7}, {1, 8}, {2, 9}};
    }
    all.push_back(std::move(forward));
    all.push_back(std::move(backward));
  };
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    push({"one sequence", {131}, 4, 1, 24, 0, type, 3}, false, false);
    push({"packed with empty ones", {0, 37, 1, 0, 70, 2, 0}, 4, 2, 16, 0, type}, false, false);
    push({"window", {150}, 2, 2, 20, 13, type}, false, false);
    push({"no rows", {}, 4, 2, 16, 0, type}, false, false);
    push({"usual width", {70, 3, 100}, 4, 2, 64, 0, type, 64}, false, false);
    push({"usual width, window", {150}, 2, 1, 128, 40, type}, false, false);
    for (const std::int64_t head_width : {64, 128, 20})
      push({"rotated", {70, 131, 1}, 4, 2, head_width, 0, type, 0, true}, false, false);
  }
  for (const DType type :
       {DType::bf16, DType::f16}) {  // widths of tensor cores, rows of several blocks
    push({"several blocks, packed", {200, 1, 0, 131, 260}, 4, 2, 128, 0, type}, false, false);
    push({"several blocks, packed", {130, 70, 300}, 2, 1, 64, 0, type, 8}, false, false);
    push({"several blocks, window", {390}, 2, 1, 64, 150, type}, false, false);
    push({"several blocks, window, packed", {67, 300}, 4, 1, 128, 33, type}, false, false);
    push({"one row", {1}, 2, 1, 128, 0, type}, false, false);
    push({"rows of one group", {64}, 2, 1, 128, 0, type}, false, false);
  }
  push({"longer than tiles", {259}, 1, 1, 67 - 3, 0}, false, false);
  push({"odd head width", {67}, 3, 1, 67}, false, false);
  push({"wide heads", {67}, 2, 1, 128}, false, false);
  push({"wide heads", {40}, 1, 1, 256}, false, false);
  push({"window over tiles", {259}, 2, 1, 8, 100}, false, false);
  push({"window of one", {67}, 2, 1, 8, 1}, false, false);
  push({"window larger than all", {67}, 2, 1, 8, 1000}, false, false);
  push({"window, packed", {100, 3, 70}, 8, 2, 8, 31}, false, false);
  push({"many short ones", std::vector<std::int64_t>(40, 3), 4, 1, 16}, false, false);
  push({"one row", {1}, 4, 1, 16}, false, false);
  push({"small", {11, 0, 7}, 4, 1, 8}, true, false);
  push({"small, window", {17}, 2, 1, 6, 5}, true, false);
  for (const DType type : {DType::f32, DType::bf16}) {
    push({"4 x 512", {512, 512, 512, 512}, 12, 12, 64, 0, type}, false, true);
    push({"2048", {2048}, 12, 4, 64, 0, type}, false, true);
    push({"32 x 64", std::vector<std::int64_t>(32, 64), 12, 12, 64, 0, type}, false, true);
  }
}

}  // namespace underkeel::kernels::cases
