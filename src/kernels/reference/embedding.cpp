#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void embedding_forward(const EmbeddingForwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.out.rows; ++row) {
    const std::int64_t token = args.tokens.as<std::int32_t>()[row];
    for (std::int64_t column = 0; column < args.out.columns; ++column)
      store(args.out, row, column, load(args.weight, token, column));
  }
}

// The order is written down (rows in order, in f32), so this sum is f32 here too.
void embedding_backward(const EmbeddingBackwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  if (!args.accumulate)
    for (std::int64_t token = 0; token < args.dweight.rows; ++token)
      for (std::int64_t column = 0; column < args.dweight.columns; ++column)
        store(args.dweight, token, column, 0);
  for (std::int64_t row = 0; row < args.dout.rows; ++row) {
    const std::int64_t token = args.tokens.as<std::int32_t>()[row];
    for (std::int64_t column = 0; column < args.dout.columns; ++column)
      store(args.dweight, token, column,
            load(args.dweight, token, column) + load(args.dout, row, column));
  }
}

}  // namespace underkeel::kernels::reference
