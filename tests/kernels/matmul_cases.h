#pragma once

#include <fmt/format.h>

#include "kernels/bounds.h"
#include "kernels/case.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels::cases {

struct MatmulCase {
  std::int64_t m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
  DType type = DType::f32;
  DType c_type = DType::f32;
  bool accumulate = false;
  bool bias = false;
  std::int64_t stride_gap = 0;
  bool addend = false;
};

inline Case matmul_case(const MatmulCase& options) {
  const auto [m, n, k, ta, tb, type, c_type, accumulate, bias, gap, addend] = options;
  Case item{.operation = "matmul"};
  item.name = fmt::format("{}{} {}x{}x{} {} to {}{}{}{}{}", ta ? "T" : "N", tb ? "T" : "N", m, n, k,
                          name_of(type), name_of(c_type), accumulate ? ", accumulating" : "",
                          bias ? ", bias" : "", gap ? ", strided" : "", addend ? ", addend" : "");
  // Terms are products of two uniform numbers, a quarter each on average; 1.5 for the spread.
  const double magnitude = 1.5 * (static_cast<double>(k) / 4 + 2) + 2;
  const Bound bound{.absolute = sum_bound(k + 2) * magnitude};
  item.operands = {
      {.name = "a",
       .type = type,
       .rows = ta ? k : m,
       .columns = ta ? m : k,
       .fill = uniform(11, 1),
       .stride_gap = gap},
      {.name = "b",
       .type = type,
       .rows = tb ? n : k,
       .columns = tb ? k : n,
       .fill = uniform(12, 1),
       .stride_gap = gap},
      {.name = "c",
       .role = accumulate ? Role::in_out : Role::output,
       .type = c_type,
       .rows = m,
       .columns = n,
       .fill = accumulate ? uniform(13, 1) : Fill{},
       .bound = bound,
       .stride_gap = gap},
      {.name = "bias", .type = type, .columns = n, .fill = uniform(14, 1)},
      {.name = "scratch", .role = Role::scratch, .type = DType::u8, .columns = 1 << 16},
      {.name = "addend",
       .type = c_type,
       .rows = m,
       .columns = n,
       .fill = uniform(15, 1),
       .stride_gap = 2 * gap}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.matmul({.a = v[0],
                  .b = v[1],
                  .c = v[2],
                  .transpose_a = ta,
                  .transpose_b = tb,
                  .accumulate = accumulate,
                  .bias = bias ? v[3] : TensorView{},
                  .scratch = v[4],
                  .addend = addend ? v[5] : TensorView{}},
                 queue);
  };
  item.flops = static_cast<double>(matmul_flops(m, n, k));
  return item;
}

inline Case column_sum_case(std::int64_t rows, std::int64_t columns, DType type, DType sum_type,
                            bool accumulate, std::int64_t gap) {
  Case item{.operation = "column_sum"};
  item.name = fmt::format("{}x{} {} to {}{}", rows, columns, name_of(type), name_of(sum_type),
                          accumulate ? ", accumulating" : "");
  const Bound bound{.absolute = sum_bound(rows + 1) * (static_cast<double>(rows) + 1)};
  item.operands = {{.name = "x",
                    .type = type,
                    .rows = rows,
                    .columns = columns,
                    .fill = uniform(21, 1),
                    .stride_gap = gap},
                   {.name = "sum",
                    .role = accumulate ? Role::in_out : Role::output,
                    .type = sum_type,
                    .columns = columns,
                    .fill = accumulate ? uniform(22, 1) : Fill{},
                    .bound = bound}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.column_sum({.x = v[0], .sum = v[1], .accumulate = accumulate}, queue);
  };
  return item;
}

inline void add_matmul_cases(std::vector<Case>& all) {
  const auto f32 = DType::f32;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const DType type : {DType::f32, DType::bf16, DType::f16})
        for (const DType c_type : {type, f32})
          for (const bool accumulate : {false, true})
            if (c_type == type || type != f32)
              all.push_back(matmul_case({67, 131, 37, ta, tb, type, c_type, accumulate, false, 5}));
      all.push_back(matmul_case({1, 1, 1, ta, tb}));
      all.push_back(matmul_case({1, 259, 67, ta, tb}));
      all.push_back(matmul_case({259, 1, 67, ta, tb}));
      all.push_back(matmul_case({31, 17, 1031, ta, tb}));  // deeper than a block of depth
      all.push_back(matmul_case({31, 17, 1031, ta, tb, DType::bf16, DType::bf16, true}));
      all.push_back(matmul_case({300, 200, 20, ta, tb}));  // several tiles each way
      all.push_back(matmul_case({128, 96, 64, ta, tb}));   // no remainder anywhere
      // Deeper than a chunk, by rows and by columns of which there are more.
      all.push_back(matmul_case({9, 37, 4111, ta, tb, DType::bf16, DType::bf16, true}));
      all.push_back(matmul_case({37, 9, 4111, ta, tb, DType::bf16, DType::bf16, false, true}));
      all.push_back(matmul_case({0, 17, 5, ta, tb}));
      all.push_back(matmul_case({17, 0, 5, ta, tb}));
      all.push_back(matmul_case({17, 13, 0, ta, tb}));
      all.push_back(matmul_case({17, 13, 0, ta, tb, DType::bf16, DType::bf16, true}));
    }
  }
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    all.push_back(matmul_case({67, 131, 37, false, true, type, type, false, true}));
    all.push_back(matmul_case({67, 131, 37, false, true, type, type, false, false, 5, true}));
    all.push_back(matmul_case({64, 128, 96, false, true, type, type, false, true, 0, true}));
    all.push_back(matmul_case({17, 13, 0, false, true, type, type, false, true, 0, true}));
    all.push_back(matmul_case({67, 131, 600, false, true, type, f32, true, true}));
    all.push_back(matmul_case({67, 131, 0, false, true, type, type, false, true}));
  }
  // Layers of a 100M Llama on 2,048 tokens, as forward, input and weight gradient call them.
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const auto& [m, n, k, ta, tb] :
         {std::tuple<int, int, int, bool, bool>{2048, 2304, 768, false, true},
          {2048, 768, 768, false, true},
          {2048, 4096, 768, false, true},
          {2048, 768, 2048, false, true},
          {2048, 768, 4096, false, false},
          {2048, 2048, 768, false, false},
          {4096, 768, 2048, true, false},
          {768, 2048, 2048, true, false},
          {128, 32000, 768, false, true},
          {128, 768, 32000, false, false},
          {32000, 768, 128, true, false}}) {
      const bool weight_gradient = ta;
      Case item = matmul_case(
          {m, n, k, ta, tb, type, weight_gradient ? f32 : type, weight_gradient && m == 32000});
      item.benchmark = true;
      all.push_back(std::move(item));
    }
  }
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    all.push_back(column_sum_case(131, 259, type, type, false, 3));
    all.push_back(column_sum_case(131, 259, type, f32, true, 0));
    all.push_back(column_sum_case(0, 67, type, type, false, 0));
    all.push_back(column_sum_case(0, 67, type, type, true, 0));
    all.push_back(column_sum_case(1, 5, type, type, false, 0));
  }
}

}  // namespace underkeel::kernels::cases
