#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void copy(const CopyArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.from.rows; ++row)
    for (std::int64_t column = 0; column < args.from.columns; ++column)
      store(args.to, row, column, load(args.from, row, column));
}

void add(const AddArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.from.rows; ++row) {
    for (std::int64_t column = 0; column < args.from.columns; ++column) {
      const double sum = load(args.into, row, column) + load(args.from, row, column);
      // The sum is rounded to f32 first, then to the storage: the header's order.
      store(args.into, row, column, static_cast<float>(sum));
    }
  }
}

void fill(const FillArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.to.rows; ++row)
    for (std::int64_t column = 0; column < args.to.columns; ++column)
      store(args.to, row, column, args.value);
}

}  // namespace underkeel::kernels::reference
