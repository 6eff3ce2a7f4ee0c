#pragma once
// Operations on elements and on runs of elements: copy, add, fill, and the optimizer's.

#include <bit>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "kernels/bounds.h"
#include "kernels/case.h"
#include "kernels/facts/facts.h"

namespace underkeel::kernels::cases {

inline Case copy_case(std::int64_t rows, std::int64_t columns, DType from, DType to,
                      std::int64_t gap) {
  Case item{.operation = "copy"};
  item.name = fmt::format("{}x{} {} to {}", rows, columns, name_of(from), name_of(to));
  item.operands = {{.name = "from",
                    .type = from,
                    .rows = rows,
                    .columns = columns,
                    .fill = uniform(91, 300),
                    .stride_gap = gap},
                   {.name = "to",
                    .role = Role::output,
                    .type = to,
                    .rows = rows,
                    .columns = columns,
                    .bound = {.same_bits = true},
                    .stride_gap = gap / 2}};
  item.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.copy({.from = v[0], .to = v[1]}, queue);
  };
  return item;
}

inline Case add_case(std::int64_t rows, std::int64_t columns, DType from, DType into,
                     std::int64_t gap) {
  Case item{.operation = "add"};
  item.name = fmt::format("{}x{} {} into {}", rows, columns, name_of(from), name_of(into));
  item.operands = {{.name = "from",
                    .type = from,
                    .rows = rows,
                    .columns = columns,
                    .fill = uniform(92, 3),
                    .stride_gap = gap},
                   {.name = "into",
                    .role = Role::in_out,
                    .type = into,
                    .rows = rows,
                    .columns = columns,
                    .fill = uniform(93, 3),
                    .bound = {.same_bits = true},
                    .stride_gap = gap / 2}};
  item.run = [](const KernelTable& table, Views v, device::Queue& queue) {
    table.add({.from = v[0], .into = v[1]}, queue);
  };
  return item;
}

inline Case fill_case(std::int64_t rows, std::int64_t columns, DType type, double value,
                      std::int64_t gap) {
  Case item{.operation = "fill"};
  item.name = fmt::format("{}x{} {} with {}", rows, columns, name_of(type), value);
  item.operands = {{.name = "to",
                    .role = Role::output,
                    .type = type,
                    .rows = rows,
                    .columns = columns,
                    .bound = {.same_bits = true},
                    .stride_gap = gap}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.fill({.to = v[0], .value = value}, queue);
  };
  return item;
}

inline Case sum_squares_case(std::int64_t elements, DType type, bool accumulate) {
  Case item{.operation = "sum_squares"};
  item.name = fmt::format("{} {}{}", elements, name_of(type), accumulate ? ", accumulating" : "");
  item.operands = {{.name = "x", .type = type, .columns = elements, .fill = uniform(94, 2)},
                   {.name = "sum",
                    .role = accumulate ? Role::in_out : Role::output,
                    .type = DType::f64,
                    .fill = accumulate ? constant(1.5) : Fill{},
                    .bound = {.same_bits = true}},
                   {.name = "scratch",
                    .role = Role::scratch,
                    .type = DType::u8,
                    .columns = sum_squares_scratch_bytes(elements)}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.sum_squares({.x = v[0], .sum = v[1], .accumulate = accumulate, .scratch = v[2]}, queue);
  };
  return item;
}

inline Case clip_case(std::vector<double> sums, float max_norm, std::string name,
                      std::optional<double> loss_scale = std::nullopt) {
  Case item{.operation = "clip_factor", .name = std::move(name)};
  item.operands = {
      {.name = "sums",
       .type = DType::f64,
       .columns = static_cast<std::int64_t>(sums.size()),
       .fill = values(sums)},
      {.name = "out", .role = Role::output, .columns = 4, .bound = {.same_bits = true}}};
  if (loss_scale)
    item.operands.push_back({.name = "loss_scale", .columns = 1, .fill = values({*loss_scale})});
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.clip_factor({.sums = v[0],
                       .out = v[1],
                       .loss_scale = loss_scale ? v[2] : TensorView{},
                       .max_norm = max_norm},
                      queue);
  };
  return item;
}

inline Case adamw_case(std::int64_t elements, DType gradient, DType weight, bool has_weight,
                       bool finite) {
  Case item{.operation = "adamw"};
  item.name = fmt::format("{}, gradient {}, weight {}{}", elements, name_of(gradient),
                          has_weight ? name_of(weight) : "none", finite ? "" : ", not finite");
  const auto state = [&](const char* label, std::uint32_t seed, double amplitude, double middle) {
    return Operand{.name = label,
                   .role = Role::in_out,
                   .columns = elements,
                   .fill = uniform(seed, amplitude, middle),
                   .bound = {.same_bits = true}};
  };
  item.operands = {
      state("master", 95, 1, 0),
      state("moment1", 96, 0.1, 0),
      state("moment2", 97, 0.01, 0.011),
      {.name = "gradient", .type = gradient, .columns = elements, .fill = uniform(98, 1)},
      {.name = "weight",
       .role = has_weight ? Role::in_out : Role::scratch,
       .type = weight,
       .columns = elements,
       .fill = uniform(99, 1),
       .bound = {.same_bits = true}},
      {.name = "step_values", .columns = 4, .fill = values({1e-3, 0.271, 0.0547, 0})},
      {.name = "clip",
       .columns = 4,
       .fill = values({2.5, finite ? 0.4 : 0.0, finite ? 1.0 : 0.0, 0})}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.adamw({.master = v[0],
                 .moment1 = v[1],
                 .moment2 = v[2],
                 .gradient = v[3],
                 .weight = has_weight ? v[4] : TensorView{},
                 .step_values = v[5],
                 .clip = v[6],
                 .beta1 = 0.9,
                 .beta2 = 0.999,
                 .epsilon = 1e-8f,
                 .weight_decay = 0.1f},
                queue);
  };
  return item;
}

inline Case adamw_at_random_case(std::int64_t elements, DType gradient, std::int64_t first_element,
                                 bool finite) {
  Case item{.operation = "adamw_at_random"};
  item.name = fmt::format("{} from {}, gradient {}{}", elements, first_element, name_of(gradient),
                          finite ? "" : ", not finite");
  const auto state = [&](const char* label, std::uint32_t seed, double amplitude, double middle) {
    return Operand{.name = label,
                   .role = Role::in_out,
                   .type = DType::bf16,
                   .columns = elements,
                   .fill = uniform(seed, amplitude, middle),
                   .bound = {.same_bits = true}};
  };
  constexpr std::uint32_t update = 70'001;
  item.operands = {
      state("weight", 95, 1, 0),
      state("moment1", 96, 0.1, 0),
      state("moment2", 97, 0.01, 0.011),
      {.name = "gradient", .type = gradient, .columns = elements, .fill = uniform(98, 1)},
      {.name = "step_values",
       .columns = 4,
       .fill = values({1e-3, 0.271, 0.0547, static_cast<double>(std::bit_cast<float>(update))})},
      {.name = "clip",
       .columns = 4,
       .fill = values({2.5, finite ? 0.4 : 0.0, finite ? 1.0 : 0.0, 0})}};
  item.run = [=](const KernelTable& table, Views v, device::Queue& queue) {
    table.adamw_at_random({.weight = v[0],
                           .moment1 = v[1],
                           .moment2 = v[2],
                           .gradient = v[3],
                           .step_values = v[4],
                           .clip = v[5],
                           .weight_decay = 0.1f,
                           .seed = 0x123456789,
                           .stream = 5,
                           .first_element = first_element},
                          queue);
  };
  return item;
}

inline void add_element_cases(std::vector<Case>& all) {
  const auto benchmark = [&](Case item) {
    item.benchmark = true;
    all.push_back(std::move(item));
  };
  const auto storage = {DType::f32, DType::bf16, DType::f16};
  for (const DType from : storage) {
    for (const DType to : storage) {
      all.push_back(copy_case(67, 131, from, to, 6));
      all.push_back(copy_case(1, 100'003, from, to, 0));
      all.push_back(copy_case(0, 131, from, to, 0));
      all.push_back(copy_case(19, 64, from, to, 16));  // aligned for wide loads
      all.push_back(add_case(67, 131, from, to, 6));
      all.push_back(add_case(1, 100'003, from, to, 0));
      all.push_back(add_case(0, 131, from, to, 0));
      all.push_back(add_case(19, 64, from, to, 16));
      all.push_back(adamw_case(1031, from, to, true, true));
    }
    all.push_back(sum_squares_case(0, from, false));
    all.push_back(sum_squares_case(0, from, true));
    all.push_back(sum_squares_case(37, from, true));
    all.push_back(sum_squares_case(3 * sum_squares_block, from, false));
    all.push_back(sum_squares_case(5 * sum_squares_block + 1031, from, false));
    all.push_back(adamw_case(70'001, from, DType::bf16, true, true));
    all.push_back(adamw_case(131, from, from, false, true));
    all.push_back(adamw_case(131, from, from, true, false));
    all.push_back(adamw_case(0, from, from, true, true));
    all.push_back(adamw_at_random_case(0, from, 0, true));
    all.push_back(adamw_at_random_case(131, from, 0, false));
    all.push_back(adamw_at_random_case(70'001, from, 0, true));
    all.push_back(adamw_at_random_case(1031, from, (std::int64_t{1} << 34) + 12, true));
  }
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32}) {
    all.push_back(fill_case(67, 131, type, 0, 5));
    all.push_back(fill_case(1, 100'003, type, 3, 0));
    all.push_back(fill_case(0, 131, type, 3, 0));
  }
  all.push_back(clip_case({1.5, 2.5, 0, 5}, 1, "clips"));
  all.push_back(clip_case({0.01, 0.02}, 1, "below the limit"));
  all.push_back(clip_case({0, 0}, 1, "zero norm"));
  all.push_back(clip_case({4, 5}, 0, "no limit"));
  all.push_back(clip_case({}, 1, "no sums"));
  all.push_back(clip_case({1.5, 2.5, 0, 5}, 0.01f, "clips scaled gradients", 128));
  all.push_back(clip_case({1.5, 2.5, 0, 5}, 1, "scaled below the limit", 1000.5));
  all.push_back(clip_case({4, 5}, 0, "scaled, no limit", 65536));
  all.push_back(clip_case({1, std::numeric_limits<double>::infinity()}, 1, "infinite"));
  all.push_back(clip_case({1, std::numeric_limits<double>::quiet_NaN()}, 0, "not a number"));

  for (const DType type : {DType::f32, DType::bf16}) {
    benchmark(copy_case(1, 1 << 23, DType::f32, type, 0));
    benchmark(add_case(1, 1 << 23, DType::f32, type, 0));
    benchmark(add_case(2048, 768, type, type, 0));
    benchmark(fill_case(1, 1 << 23, type, 0, 0));
    benchmark(sum_squares_case(1 << 23, type, false));
    benchmark(adamw_case(1 << 22, type, type, type != DType::f32, true));
    benchmark(adamw_at_random_case(1 << 22, type, 0, true));
  }
}

}  // namespace underkeel::kernels::cases
