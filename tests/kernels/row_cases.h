#pragma once
// Operations on rows: norm, rotary embedding, SwiGLU, cross-entropy, embedding.

#include <fmt/format.h>

#include "kernels/attention_cases.h"
#include "kernels/bounds.h"
#include "kernels/case.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels::cases {

struct NormCase {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t groups = 1;
  DType type = DType::f32;
  DType dweight_type = DType::f32;
  bool accumulate_dx = false;
  bool accumulate_dweight = false;
  bool in_place = false;  // y is x, dx is dy
  std::int64_t stride_gap = 0;
  bool benchmark = false;
  bool again = false;  // y once more, in the backward pass, where dy was
};

inline void add_norm_cases(std::vector<Case>& all, const NormCase& o) {
  const std::int64_t columns = o.groups * o.width;
  const std::string name =
      fmt::format("{}x{} in {} groups {}, dweight {}{}{}{}", o.rows, columns, o.groups,
                  name_of(o.type), name_of(o.dweight_type), o.accumulate_dx ? ", adds to dx" : "",
                  o.accumulate_dweight ? ", adds to dweight" : "", o.in_place ? ", in place" : "") +
      (o.again ? ", y again" : "");
  // x is uniform in [-2, 2) around 0: a normalised element is at most sqrt(3) or so.
  const double rstd_error = sum_bound(o.width) + 4 * f32_unit;
  const Operand x{.name = "x",
                  .type = o.type,
                  .rows = o.rows,
                  .columns = columns,
                  .fill = uniform(41, 2),
                  .stride_gap = o.stride_gap};
  const Operand weight{
      .name = "weight", .type = o.type, .columns = o.width, .fill = uniform(42, 0.5, 1)};
  const Operand y{.name = "y",
                  .role = Role::output,
                  .type = o.type,
                  .rows = o.rows,
                  .columns = columns,
                  .bound = {.relative = rstd_error, .roundings = 2},
                  .stride_gap = o.stride_gap,
                  .alias_of = o.in_place ? 0 : -1};
  const Operand rstd{.name = "rstd",
                     .role = Role::output,
                     .rows = o.rows,
                     .columns = o.groups,
                     .bound = {.relative = rstd_error}};
  Case forward{.operation = "rms_norm_forward", .name = name};
  forward.operands = {x, weight, y, rstd};
  const auto run_forward = [groups = o.groups](const KernelTable& table, Views v,
                                               device::Queue& queue) {
    table.rms_norm_forward(
        {.x = v[0], .weight = v[1], .y = v[2], .rstd = v[3], .groups = groups, .epsilon = 1e-5f},
        queue);
  };
  forward.run = run_forward;
  forward.benchmark = o.benchmark;

  Case backward{.operation = "rms_norm_backward", .name = name};
  const double dx_error = 10 * (2 * sum_bound(o.width) + 8 * f32_unit);
  const double dweight_terms = static_cast<double>(o.rows * o.groups);
  backward.operands = {x,
                       weight,
                       y,
                       rstd,
                       {.name = "dy",
                        .type = o.type,
                        .rows = o.rows,
                        .columns = columns,
                        .fill = uniform(43, 1),
                        .stride_gap = o.stride_gap},
                       {.name = "dx",
                        .role = o.accumulate_dx ? Role::in_out : Role::output,
                        .type = o.type,
                        .rows = o.rows,
                        .columns = columns,
                        .fill = o.accumulate_dx ? uniform(44, 1) : Fill{},
                        .bound = {.absolute = dx_error},
                        .stride_gap = o.stride_gap,
                        .alias_of = o.in_place ? 4 : -1},
                       {.name = "dweight",
                        .role = o.accumulate_dweight ? Role::in_out : Role::output,
                        .type = o.dweight_type,
                        .columns = o.width,
                        .fill = o.accumulate_dweight ? uniform(45, 1) : Fill{},
                        .bound = {.absolute = (sum_bound(o.rows * o.groups + 1) + 4 * f32_unit) *
                                              2 * (dweight_terms + 1)}},
                       {.name = "scratch",
                        .role = Role::scratch,
                        .type = DType::u8,
                        .columns = rms_norm_backward_scratch_bytes(o.rows, o.width)}};
  backward.operands[2].role = Role::scratch;  // y is not an input of the backward pass
  backward.operands[2].alias_of = -1;
  if (o.again) {
    backward.operands.push_back(y);
    backward.operands.back().alias_of = 4;
  }
  backward.operands[3].role = Role::prepared;
  backward.prepare = [=](Views v, device::Queue& queue) {
    run_forward(reference_kernels(), v, queue);
  };
  backward.run = [=, groups = o.groups, accumulate_dx = o.accumulate_dx,
                  accumulate_dweight = o.accumulate_dweight,
                  again = o.again](const KernelTable& table, Views v, device::Queue& queue) {
    table.rms_norm_backward({.x = v[0],
                             .weight = v[1],
                             .rstd = v[3],
                             .dy = v[4],
                             .dx = v[5],
                             .dweight = v[6],
                             .scratch = v[7],
                             .y = again ? v[8] : TensorView{},
                             .groups = groups,
                             .accumulate_dx = accumulate_dx,
                             .accumulate_dweight = accumulate_dweight},
                            queue);
  };
  if (o.type == DType::f32 && !o.accumulate_dx && !o.accumulate_dweight && !o.in_place &&
      !o.again && columns * o.rows < 4000) {
    backward.loss = [prepare = backward.prepare](Views v, device::Queue& queue) {
      prepare(v, queue);
      return dot(v[2], v[4]);
    };
    backward.gradients = {{0, 5}, {1, 6}};
  }
  backward.benchmark = o.benchmark;
  all.push_back(std::move(forward));
  all.push_back(std::move(backward));
}

inline Case rope_table_case(std::int64_t rows, std::int64_t pairs, const RopeConstants& constants,
                            std::string name) {
  Case item{.operation = "rope_table", .name = fmt::format("{}, {}x{}", name, rows, pairs)};
  item.operands = {
      {.name = "positions", .type = DType::i32, .columns = rows, .fill = below(51, 5000)},
      {.name = "cosine",
       .role = Role::output,
       .rows = rows,
       .columns = pairs,
       .bound = {.same_bits = true}},
      {.name = "sine",
       .role = Role::output,
       .rows = rows,
       .columns = pairs,
       .bound = {.same_bits = true}}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.rope_table({.positions = v[0], .cosine = v[1], .sine = v[2], .constants = constants},
                     queue);
  };
  return item;
}

inline Case rope_apply_case(std::int64_t rows, std::int64_t heads, std::int64_t width, DType type,
                            bool inverse, std::int64_t gap) {
  Case item{.operation = "rope_apply"};
  item.name = fmt::format("{} rows, {} heads of {}, {}{}", rows, heads, width, name_of(type),
                          inverse ? ", inverse" : "");
  const auto angle = uniform(53, 3);
  item.operands = {
      {.name = "x",
       .role = Role::in_out,
       .type = type,
       .rows = rows,
       .columns = heads * width,
       .fill = uniform(52, 1),
       .bound = {.absolute = 3 * f32_unit},
       .stride_gap = gap},
      {.name = "cosine",
       .rows = rows,
       .columns = width / 2,
       .fill = [=](auto r, auto c) { return std::cos(angle(r, c)); }},
      {.name = "sine", .rows = rows, .columns = width / 2, .fill = [=](auto r, auto c) {
         return std::sin(angle(r, c));
       }}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.rope_apply(
        {.x = v[0], .cosine = v[1], .sine = v[2], .head_width = width, .inverse = inverse}, queue);
  };
  return item;
}

inline void add_swiglu_cases(std::vector<Case>& all, std::int64_t rows, std::int64_t columns,
                             DType type, bool in_place, std::int64_t gap, bool benchmark = false) {
  const std::string name =
      fmt::format("{}x{} {}{}", rows, columns, name_of(type), in_place ? ", in place" : "");
  const auto operand = [&](const char* label, std::uint32_t seed, double amplitude) {
    return Operand{.name = label,
                   .type = type,
                   .rows = rows,
                   .columns = columns,
                   .fill = uniform(seed, amplitude),
                   .stride_gap = gap};
  };
  const auto result = [&](const char* label, double absolute, double relative, int alias_of) {
    return Operand{.name = label,
                   .role = Role::output,
                   .type = type,
                   .rows = rows,
                   .columns = columns,
                   .bound = {.absolute = absolute, .relative = relative},
                   .stride_gap = gap,
                   .alias_of = in_place ? alias_of : -1};
  };
  // exp is within 2 units, the division and two products add half a unit each.
  Case forward{.operation = "swiglu_forward", .name = name};
  forward.operands = {operand("gate", 61, 9), operand("up", 62, 1),
                      result("out", 0, 8 * f32_unit, 1)};
  forward.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.swiglu_forward({.gate = v[0], .up = v[1], .out = v[2]}, queue);
  };
  Case backward{.operation = "swiglu_backward", .name = name};
  backward.operands = {operand("gate", 61, 9),
                       operand("up", 62, 1),
                       operand("dout", 63, 1),
                       result("dgate", 12 * f32_unit, 0, 0),
                       result("dup", 0, 8 * f32_unit, 2),
                       result("out", 0, 0, -1)};
  backward.operands[5].role = Role::scratch;
  backward.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.swiglu_backward({.gate = v[0], .up = v[1], .dout = v[2], .dgate = v[3], .dup = v[4]},
                          queue);
  };
  Case both = backward;
  both.name += ", and forward";
  both.operands[3].alias_of = in_place ? 0 : -1;
  both.operands[4].alias_of = in_place ? 1 : -1;
  both.operands[5] = result("out", 0, 8 * f32_unit, 2);
  both.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.swiglu_backward(
        {.gate = v[0], .up = v[1], .dout = v[2], .dgate = v[3], .dup = v[4], .out = v[5]}, queue);
  };
  if (type == DType::f32 && !in_place && rows * columns < 4000) {
    backward.loss = [](Views v, device::Queue& queue) {
      reference_kernels().swiglu_forward({.gate = v[0], .up = v[1], .out = v[5]}, queue);
      return dot(v[5], v[2]);
    };
    backward.gradients = {{0, 3}, {1, 4}};
  }
  forward.benchmark = backward.benchmark = benchmark;
  all.push_back(std::move(forward));
  all.push_back(std::move(backward));
  all.push_back(std::move(both));
}

inline Case cross_entropy_case(std::int64_t rows, std::int64_t vocabulary, DType type,
                               bool with_gradient, std::int64_t gap) {
  Case item{.operation = "cross_entropy"};
  item.name = fmt::format("{}x{} {}{}", rows, vocabulary, name_of(type),
                          with_gradient ? "" : ", loss only");
  const double row_error = sum_bound(vocabulary) + (16 + 4) * f32_unit;  // |logit - largest| <= 16
  const double scale = 1.0 / 64;
  const auto targets = [=](std::int64_t row, std::int64_t column) {
    const std::int64_t index = row + column;
    return index % 5 == 3 ? static_cast<double>(ignore_target) : below(72, vocabulary)(row, column);
  };
  item.operands = {{.name = "logits",
                    .role = with_gradient ? Role::in_out : Role::scratch,
                    .type = type,
                    .rows = rows,
                    .columns = vocabulary,
                    .fill = uniform(71, 8),
                    .bound = {.absolute = row_error * scale},
                    .stride_gap = gap},
                   {.name = "targets", .type = DType::i32, .columns = rows, .fill = targets},
                   {.name = "loss",
                    .role = Role::in_out,
                    .type = DType::f64,
                    .fill = constant(3),
                    .bound = {.absolute = row_error * 16 * static_cast<double>(rows + 1)}},
                   {.name = "gradient_scale", .fill = constant(scale)},
                   {.name = "scratch",
                    .role = Role::scratch,
                    .type = DType::u8,
                    .columns = cross_entropy_scratch_bytes(rows)}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.cross_entropy({.logits = v[0],
                         .targets = v[1],
                         .loss = v[2],
                         .gradient_scale = v[3],
                         .with_gradient = with_gradient,
                         .scratch = v[4]},
                        queue);
  };
  if (type == DType::f32 && with_gradient && rows * vocabulary < 4000) {
    item.loss = [](Views v, device::Queue& queue) {
      *v[2].as<double>() = 0;
      reference_kernels().cross_entropy(
          {.logits = v[0], .targets = v[1], .loss = v[2], .with_gradient = false}, queue);
      return *v[2].as<double>() * reference::load(v[3], 0);
    };
    item.gradients = {{0, 0}};
  }
  return item;
}

inline void add_embedding_cases(std::vector<Case>& all, std::int64_t rows, std::int64_t vocabulary,
                                std::int64_t width, DType type, bool accumulate, std::int64_t gap) {
  const std::string name = fmt::format("{} rows, {}x{} {}{}", rows, vocabulary, width,
                                       name_of(type), accumulate ? ", accumulating" : "");
  const Operand tokens{
      .name = "tokens", .type = DType::i32, .columns = rows, .fill = below(81, vocabulary)};
  Case forward{.operation = "embedding_forward", .name = name};
  forward.operands = {tokens,
                      {.name = "weight",
                       .type = type,
                       .rows = vocabulary,
                       .columns = width,
                       .fill = uniform(82, 1)},
                      {.name = "out",
                       .role = Role::output,
                       .type = type,
                       .rows = rows,
                       .columns = width,
                       .bound = {.same_bits = true},
                       .stride_gap = gap}};
  forward.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.embedding_forward({.tokens = v[0], .weight = v[1], .out = v[2]}, queue);
  };
  Case backward{.operation = "embedding_backward", .name = name};
  backward.operands = {tokens,
                       {.name = "dout",
                        .type = type,
                        .rows = rows,
                        .columns = width,
                        .fill = uniform(83, 1),
                        .stride_gap = gap},
                       {.name = "dweight",
                        .role = accumulate ? Role::in_out : Role::output,
                        .rows = vocabulary,
                        .columns = width,
                        .fill = accumulate ? uniform(84, 1) : Fill{},
                        .bound = {.same_bits = true}}};
  backward.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.embedding_backward(
        {.tokens = v[0], .dout = v[1], .dweight = v[2], .accumulate = accumulate}, queue);
  };
  all.push_back(std::move(forward));
  all.push_back(std::move(backward));
}

inline void add_row_cases(std::vector<Case>& all) {
  const auto f32 = DType::f32;
  const auto benchmark = [&](Case item) {
    item.benchmark = true;
    all.push_back(std::move(item));
  };
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    add_norm_cases(all, {131, 259, 1, type, type, false, false, false, 3});
    add_norm_cases(all, {131, 96, 1, type, f32, true, true});
    add_norm_cases(all, {67, 40, 3, type, type, false, true, true});
    add_norm_cases(all, {67, 64, 2, type, f32, true, false, false, 9});
    add_norm_cases(all, {0, 67, 1, type, type});
    add_norm_cases(all, {0, 67, 1, type, f32, false, true});
    add_norm_cases(all, {1, 1, 1, type, type});
    add_norm_cases(all,
                   {70, 2304, 1, type, f32, true, false, false, 8});  // wider than a warp holds
    add_norm_cases(all, {5, 1501, 1, type, type});
    add_norm_cases(all, {131, 4096, 1, type, f32, true, true, false, 8});
    add_norm_cases(all, {67, 2048, 2, type, type});
    add_norm_cases(all, {3, 1032, 1, type, f32, true});
    add_norm_cases(all, {65, 128, 3, type, f32, false, false, false, 128});
    for (NormCase norm :
         {NormCase{131, 4096, 1, type, f32, true, true}, NormCase{67, 3584, 1, type, type, true},
          NormCase{131, 259, 1, type, f32}, NormCase{67, 2048, 1, type, type, false, true},
          NormCase{37, 64, 2, type, f32}, NormCase{0, 67, 1, type, f32}}) {
      norm.again = true;
      norm.stride_gap = 8;
      add_norm_cases(all, norm);
    }
    for (const bool inverse : {false, true}) {
      all.push_back(rope_apply_case(67, 3, 22, type, inverse, 5));
      all.push_back(rope_apply_case(131, 4, 64, type, inverse, 0));
      all.push_back(rope_apply_case(0, 4, 64, type, inverse, 0));
    }
    for (const bool in_place : {false, true}) {
      add_swiglu_cases(all, 67, 131, type, in_place, 7);
      add_swiglu_cases(all, 0, 131, type, in_place, 0);
      add_swiglu_cases(all, 3, 8192, type, in_place, 0);
    }
    for (const bool with_gradient : {false, true}) {
      all.push_back(cross_entropy_case(37, 259, type, with_gradient, 3));
      all.push_back(cross_entropy_case(9, 5003, type, with_gradient, 0));
      all.push_back(cross_entropy_case(0, 259, type, with_gradient, 0));
      all.push_back(cross_entropy_case(5, 2, type, with_gradient, 0));
      all.push_back(cross_entropy_case(7, 4096, type, with_gradient, 8));
    }
    for (const bool accumulate : {false, true}) {
      add_embedding_cases(all, 67, 19, 131, type, accumulate, 5);
      add_embedding_cases(all, 0, 19, 67, type, accumulate, 0);
      add_embedding_cases(all, 131, 259, 300, type, accumulate, 0);
      add_embedding_cases(all, 300, 5, 64, type, accumulate, 8);
    }
  }
  add_norm_cases(all, {13, 17});
  add_norm_cases(all, {7, 8, 3});
  add_swiglu_cases(all, 11, 13, f32, false, 0);
  all.push_back(cross_entropy_case(7, 31, f32, true, 0));

  all.push_back(rope_table_case(67, 11, {}, "plain"));
  all.push_back(rope_table_case(0, 11, {}, "plain"));
  all.push_back(rope_table_case(131, 32, {.kind = RopeKind::linear, .factor = 4}, "linear"));
  all.push_back(rope_table_case(
      131, 32, {.kind = RopeKind::dynamic, .factor = 2, .max_position_embeddings = 300},
      "dynamic"));
  all.push_back(
      rope_table_case(131, 64, {.kind = RopeKind::llama3, .theta = 5e5, .factor = 8}, "llama3"));
  all.push_back(rope_table_case(
      131, 64, {.kind = RopeKind::yarn, .theta = 1e6, .factor = 4, .attention_scaling = 1.1},
      "yarn"));

  benchmark(rope_table_case(2048, 32, {}, "plain"));
  for (const DType type : {DType::f32, DType::bf16}) {
    NormCase norm{2048, 768, 1, type, type};
    norm.benchmark = true;
    add_norm_cases(all, norm);
    norm = {2048, 64, 12, type, type};
    norm.benchmark = true;
    add_norm_cases(all, norm);
    benchmark(rope_apply_case(2048, 24, 64, type, false, 768));
    add_swiglu_cases(all, 2048, 2048, type, false, 2048, true);
    benchmark(cross_entropy_case(128, 32000, type, true, 0));
    std::vector<Case> embedding;
    add_embedding_cases(embedding, 2048, 32000, 768, type, true, 0);
    for (Case& item : embedding) benchmark(std::move(item));
  }
}

}  // namespace underkeel::kernels::cases
