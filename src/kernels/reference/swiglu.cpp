#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

namespace {
double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
}  // namespace

void swiglu_forward(const SwigluForwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.gate.rows; ++row) {
    for (std::int64_t column = 0; column < args.gate.columns; ++column) {
      const double gate = load(args.gate, row, column);
      store(args.out, row, column, gate * sigmoid(gate) * load(args.up, row, column));
    }
  }
}

void swiglu_backward(const SwigluBackwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  for (std::int64_t row = 0; row < args.gate.rows; ++row) {
    for (std::int64_t column = 0; column < args.gate.columns; ++column) {
      const double gate = load(args.gate, row, column);
      const double up = load(args.up, row, column);
      const double dout = load(args.dout, row, column);
      const double s = sigmoid(gate);
      store(args.dgate, row, column, dout * up * s * (1 + gate * (1 - s)));
      store(args.dup, row, column, dout * gate * s);
      if (args.out.data != nullptr) store(args.out, row, column, gate * s * up);
    }
  }
}

}  // namespace underkeel::kernels::reference
