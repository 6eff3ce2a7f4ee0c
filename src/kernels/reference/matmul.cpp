#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void matmul(const MatmulArgs& args, device::Queue& /*queue*/) {
  const auto [m, n, k] = check_shapes(args);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t depth = 0; depth < k; ++depth) {
        const double a = args.transpose_a ? load(args.a, depth, i) : load(args.a, i, depth);
        const double b = args.transpose_b ? load(args.b, j, depth) : load(args.b, depth, j);
        sum += a * b;
      }
      if (args.bias.data != nullptr) sum += load(args.bias, j);
      if (args.accumulate) sum += load(args.c, i, j);
      if (args.addend.data != nullptr) sum += load(args.addend, i, j);
      store(args.c, i, j, sum);
    }
  }
}

void column_sum(const ColumnSumArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t column = 0; column < args.x.columns; ++column) {
    double sum = args.accumulate ? load(args.sum, column) : 0;
    for (std::int64_t row = 0; row < args.x.rows; ++row) sum += load(args.x, row, column);
    store(args.sum, column, sum);
  }
}

}  // namespace underkeel::kernels::reference
