#include <cstring>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

void copy(const CopyArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless(args.from) && is_gapless(args.to);
  with_storage(args.from.type, [&](auto from_tag) {
    with_storage(args.to.type, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      for_stretches(queue.pool(), args.from.rows, args.from.columns, gapless,
                    [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                      const From* from = row_of<From>(args.from, row) + column;
                      To* to = row_of<To>(args.to, row) + column;
                      if (args.from.type == args.to.type) {
                        std::memmove(to, from, static_cast<std::size_t>(count) * sizeof(To));
                        return;
                      }
                      for (std::int64_t i = 0; i < count; i += lanes)
                        store_up_to(to + i, load_up_to(from + i, count - i), count - i);
                    });
    });
  });
}

void add(const AddArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless(args.from) && is_gapless(args.into);
  with_storage(args.from.type, [&](auto from_tag) {
    with_storage(args.into.type, [&](auto into_tag) {
      using From = decltype(from_tag);
      using Into = decltype(into_tag);
      for_stretches(queue.pool(), args.from.rows, args.from.columns, gapless,
                    [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                      const From* from = row_of<From>(args.from, row) + column;
                      Into* into = row_of<Into>(args.into, row) + column;
                      for (std::int64_t i = 0; i < count; i += lanes) {
                        const std::int64_t left = count - i;
                        const Vec sum = load_up_to(into + i, left) + load_up_to(from + i, left);
                        store_up_to(into + i, sum, left);
                      }
                    });
    });
  });
}

namespace {
template <class T>
void fill_with(const TensorView& to, T value, device::ThreadPool& pool) {
  for_stretches(pool, to.rows, to.columns, is_gapless(to),
                [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                  T* elements = row_of<T>(to, row) + column;
                  for (std::int64_t i = 0; i < count; ++i) elements[i] = value;
                });
}
}  // namespace

void fill(const FillArgs& args, device::Queue& queue) {
  check_shapes(args);
  // A narrow value is made as all others are, by a store.
  const Vec value = broadcast(static_cast<float>(args.value));
  BFloat16 bf16;
  Float16 f16;
  store_first(&bf16, value, 1);
  store_first(&f16, value, 1);
  switch (args.to.type) {
    case DType::f64:
      return fill_with<double>(args.to, args.value, queue.pool());
    case DType::i32:
      return fill_with<std::int32_t>(args.to, static_cast<std::int32_t>(args.value), queue.pool());
    case DType::bf16:
      return fill_with<BFloat16>(args.to, bf16, queue.pool());
    case DType::f16:
      return fill_with<Float16>(args.to, f16, queue.pool());
    default:
      return fill_with<float>(args.to, static_cast<float>(args.value), queue.pool());
  }
}

// Rows are added in blocks of 64, then the blocks' sums: fewer roundings in a row.
void column_sum(const ColumnSumArgs& args, device::Queue& queue) {
  check_shapes(args);
  constexpr std::int64_t row_block = 64;
  with_storage(args.x.type, [&](auto x_tag) {
    with_storage(args.sum.type, [&](auto sum_tag) {
      using X = decltype(x_tag);
      using Sum = decltype(sum_tag);
      queue.pool().parallel_for((args.x.columns + lanes - 1) / lanes, [&](std::int64_t tile) {
        const std::int64_t column = tile * lanes;
        const std::int64_t left = args.x.columns - column;
        Sum* sum = args.sum.as<Sum>() + column;
        Vec total = args.accumulate ? load_up_to(sum, left) : zero();
        for (std::int64_t begin = 0; begin < args.x.rows; begin += row_block) {
          Vec part = zero();
          const std::int64_t end = min_of(args.x.rows, begin + row_block);
          for (std::int64_t row = begin; row < end; ++row)
            part = part + load_up_to(row_of<X>(args.x, row) + column, left);
          total = total + part;
        }
        store_up_to(sum, total, left);
      });
    });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
