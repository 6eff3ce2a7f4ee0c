// Attention over a cache: the bits of attention over the whole sequence, however it is cut.

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/instruction_set.h"
#include "kernels/kernels.h"
#include "kernels/reference/element.h"

namespace underkeel::kernels {
namespace {

struct Shape {
  std::int64_t rows = 0;
  std::int64_t query_heads = 4;
  std::int64_t key_heads = 2;
  std::int64_t head_width = 16;
  std::int64_t window = 0;
  DType type = DType::f32;

  std::int64_t q_columns() const { return query_heads * head_width; }
  std::int64_t k_columns() const { return key_heads * head_width; }
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(head_width))); }
};

struct Matrix {
  std::vector<std::byte> bytes;
  TensorView view;

  Matrix(DType type, std::int64_t rows, std::int64_t columns, std::uint32_t seed)
      : bytes(static_cast<std::size_t>(bytes_of(type, rows * columns))),
        view(matrix(bytes.data(), type, rows, columns)) {
    for (std::int64_t row = 0; row < rows && seed != 0; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        reference::store(view, row, column,
                         static_cast<double>(random_normal(seed, static_cast<std::uint32_t>(row),
                                                           static_cast<std::uint64_t>(column))));
  }
  TensorView part(std::int64_t begin, std::int64_t end) const {
    TensorView cut = view;
    cut.data = static_cast<std::byte*>(view.data) + bytes_of(view.type, begin * view.row_stride);
    cut.rows = end - begin;
    return cut;
  }
};

class AttentionCached : public testing::Test {
 protected:
  Matrix whole(const Shape& shape, const KernelTable& table) {
    const Matrix q(shape.type, shape.rows, shape.q_columns(), 1);
    const Matrix k(shape.type, shape.rows, shape.k_columns(), 2);
    const Matrix v(shape.type, shape.rows, shape.k_columns(), 3);
    std::vector<std::int32_t> starts(static_cast<std::size_t>(shape.rows + 1),
                                     static_cast<std::int32_t>(shape.rows));
    starts[0] = 0;
    Matrix out(shape.type, shape.rows, shape.q_columns(), 0);
    const Matrix lse(DType::f32, shape.rows, shape.query_heads, 0);
    table.attention_forward({.q = q.view,
                             .k = k.view,
                             .v = v.view,
                             .sequence_starts = vector(starts.data(), DType::i32, shape.rows + 1),
                             .out = out.view,
                             .lse = lse.view,
                             .query_heads = shape.query_heads,
                             .key_heads = shape.key_heads,
                             .head_width = shape.head_width,
                             .window = shape.window,
                             .scale = shape.scale()},
                            queue_);
    return out;
  }

  /// The same rows in stretches that end at `ends`.
  Matrix in_parts(const Shape& shape, const KernelTable& table,
                  const std::vector<std::int64_t>& ends) {
    const Matrix q(shape.type, shape.rows, shape.q_columns(), 1);
    const Matrix k(shape.type, shape.rows, shape.k_columns(), 2);
    const Matrix v(shape.type, shape.rows, shape.k_columns(), 3);
    const std::int64_t room = shape.rows + 5;
    const Matrix keys(shape.type, room, shape.k_columns(), 8);
    const Matrix values(shape.type, room, shape.k_columns(), 9);
    std::vector<std::int32_t> positions(static_cast<std::size_t>(shape.rows));
    std::iota(positions.begin(), positions.end(), 0);
    Matrix out(shape.type, shape.rows, shape.q_columns(), 0);
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      table.attention_cached(
          {.q = q.part(begin, end),
           .k = k.part(begin, end),
           .v = v.part(begin, end),
           .positions = vector(positions.data() + begin, DType::i32, end - begin),
           .keys = keys.view,
           .values = values.view,
           .out = out.part(begin, end),
           .query_heads = shape.query_heads,
           .key_heads = shape.key_heads,
           .head_width = shape.head_width,
           .window = shape.window,
           .scale = shape.scale()},
          queue_);
      begin = end;
    }
    return out;
  }

  device::ThreadPool pool_{2};
  device::Queue queue_ = device::Queue::on_cpu(pool_);
};

std::vector<std::int64_t> one_by_one_after(std::int64_t prompt, std::int64_t rows) {
  std::vector<std::int64_t> ends = {prompt};
  for (std::int64_t end = prompt + 1; end <= rows; ++end) ends.push_back(end);
  return ends;
}

TEST_F(AttentionCached, HasTheBitsOfTheWholeSequence) {
  for (const cpu::InstructionSet set : cpu::instruction_sets())
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t window : {0, 7, 100})
        for (const std::int64_t width : {16, 64}) {
          const Shape shape{.rows = 211, .head_width = width, .window = window, .type = type};
          const KernelTable& table = cpu::kernels_for(set);
          const Matrix expected = whole(shape, table);
          for (const auto& ends : {one_by_one_after(50, 211), std::vector<std::int64_t>{211},
                                   std::vector<std::int64_t>{1, 64, 65, 160, 211}})
            EXPECT_EQ(in_parts(shape, table, ends).bytes, expected.bytes)
                << name_of(set) << " " << name_of(type) << " window " << window << " width "
                << width << " in " << ends.size() << " parts";
        }
}

TEST_F(AttentionCached, AgreesWithTheReference) {
  for (const std::int64_t window : {0, 9}) {
    const Shape shape{.rows = 40, .window = window};
    const auto ends = one_by_one_after(13, 40);
    const Matrix expected = in_parts(shape, reference_kernels(), ends);
    const Matrix of_whole = whole(shape, reference_kernels());
    const Matrix ours = in_parts(shape, cpu_kernels(), ends);
    for (std::int64_t row = 0; row < 40; ++row)
      for (std::int64_t column = 0; column < shape.q_columns(); ++column) {
        const double value = reference::load(expected.view, row, column);
        ASSERT_NEAR(reference::load(of_whole.view, row, column), value, 1e-6) << row;
        ASSERT_NEAR(reference::load(ours.view, row, column), value, 1e-5) << row;
      }
  }
}

TEST_F(AttentionCached, RefusesRowsBeyondTheCache) {
  const Shape shape{.rows = 4};
  std::vector<std::int32_t> positions = {8, 9, 10, 11};
  const Matrix q(DType::f32, 4, shape.q_columns(), 1);
  const Matrix k(DType::f32, 4, shape.k_columns(), 2);
  const Matrix keys(DType::f32, 11, shape.k_columns(), 0);

  EXPECT_DEATH(cpu_kernels().attention_cached({.q = q.view,
                                               .k = k.view,
                                               .v = k.view,
                                               .positions = vector(positions.data(), DType::i32, 4),
                                               .keys = keys.view,
                                               .values = keys.view,
                                               .out = q.view,
                                               .query_heads = 4,
                                               .key_heads = 2,
                                               .head_width = 16},
                                              queue_),
               "rows 8 to 12 of a cache of 11");
}

}  // namespace
}  // namespace underkeel::kernels
