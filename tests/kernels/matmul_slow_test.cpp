// Large products, which the reference would take minutes for. The order of a sum depends on depth
// alone, so a few rows and columns multiplied by themselves must give the same bits.

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/reference/element.h"

namespace underkeel::kernels {
namespace {

struct Shape {
  std::int64_t m, n, k;
  DType type;
  DType c_type;
};

/// Which way a product is cut depends on its shape; each of these takes another one.
constexpr Shape shapes[] = {
    {600, 1500, 1700, DType::f32, DType::f32},   // b shared, depth in chunks
    {600, 3000, 800, DType::f32, DType::f32},    // b shared, columns in chunks
    {500, 1500, 4500, DType::f32, DType::f32},   // a shared, depth in chunks
    {600, 3000, 300, DType::bf16, DType::bf16},  // sums of a tile beside its rows
    {900, 700, 8700, DType::bf16, DType::bf16},  // sums in shared memory, rows in chunks
    {70, 2100, 8700, DType::bf16, DType::bf16},  // the same with a shared
    {3100, 70, 1700, DType::bf16, DType::f32}};  // more rows than anything

std::vector<std::byte> random_operand(std::int64_t elements, DType type, std::uint32_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(type, elements)));
  const TensorView view = vector(bytes.data(), type, elements);
  for (std::int64_t i = 0; i < elements; ++i)
    reference::store(view, i, 2 * static_cast<double>(random_uniform(seed, 0, i)) - 1);
  return bytes;
}

/// Rows [row, row + rows) and columns [column, column + columns) of a matrix.
TensorView part(TensorView view, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns) {
  view.data =
      static_cast<std::byte*>(view.data) + bytes_of(view.type, row * view.row_stride + column);
  view.rows = rows;
  view.columns = columns;
  return view;
}

class LargeMatmul : public testing::TestWithParam<cpu::InstructionSet> {};

TEST_P(LargeMatmul, HasTheBitsOfItsParts) {
  const KernelTable& table = cpu::kernels_for(GetParam());
  device::ThreadPool pool(2);
  device::Queue queue = device::Queue::on_cpu(pool);
  for (const auto& [m, n, k, type, c_type] : shapes) {
    for (const bool transpose_a : {false, true}) {
      const bool transpose_b = !transpose_a;
      SCOPED_TRACE(fmt::format("{}x{}x{} {} to {}, {} transposed", m, n, k, name_of(type),
                               name_of(c_type), transpose_a ? "a" : "b"));
      auto a_bytes = random_operand(m * k, type, 1);
      auto b_bytes = random_operand(k * n, type, 2);
      std::vector<std::byte> c_bytes(static_cast<std::size_t>(bytes_of(c_type, m * n)));
      const TensorView a =
          transpose_a ? matrix(a_bytes.data(), type, k, m) : matrix(a_bytes.data(), type, m, k);
      const TensorView b =
          transpose_b ? matrix(b_bytes.data(), type, n, k) : matrix(b_bytes.data(), type, k, n);
      const TensorView c = matrix(c_bytes.data(), c_type, m, n);

      table.matmul({.a = a, .b = b, .c = c, .transpose_a = transpose_a, .transpose_b = transpose_b},
                   queue);

      constexpr std::int64_t rows = 7;
      constexpr std::int64_t columns = 5;
      for (const std::int64_t row : {std::int64_t{0}, m / 3, m - rows}) {
        for (const std::int64_t column : {std::int64_t{0}, n / 2, n - columns}) {
          std::vector<std::byte> small_bytes(
              static_cast<std::size_t>(bytes_of(c_type, rows * columns)));
          const TensorView small = matrix(small_bytes.data(), c_type, rows, columns);
          table.matmul(
              {.a = transpose_a ? part(a, 0, row, k, rows) : part(a, row, 0, rows, k),
               .b = transpose_b ? part(b, column, 0, columns, k) : part(b, 0, column, k, columns),
               .c = small,
               .transpose_a = transpose_a,
               .transpose_b = transpose_b},
              queue);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              ASSERT_EQ(reference::load(c, row + i, column + j), reference::load(small, i, j))
                  << "at " << row + i << ", " << column + j;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, LargeMatmul, testing::ValuesIn(cpu::instruction_sets()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace underkeel::kernels
