#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void rms_norm_forward(const RmsNormForwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const auto width = static_cast<double>(args.x.columns);
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < args.x.columns; ++column) {
      const double x = load(args.x, row, column);
      sum += x * x;
    }
    const double rstd = 1.0 / std::sqrt(sum / width + static_cast<double>(args.epsilon));
    store(args.rstd, row, rstd);
    for (std::int64_t column = 0; column < args.x.columns; ++column) {
      const double normalized = round_to(args.x.type, load(args.x, row, column) * rstd);
      store(args.y, row, column, normalized * load(args.weight, column));
    }
  }
}

void rms_norm_backward(const RmsNormBackwardArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  // First the weight's gradient, because dx may overwrite dy.
  for (std::int64_t column = 0; column < args.x.columns; ++column) {
    double sum = args.accumulate_dweight ? load(args.dweight, column) : 0;
    for (std::int64_t row = 0; row < args.x.rows; ++row)
      sum += load(args.dy, row, column) * load(args.x, row, column) * load(args.rstd, row);
    store(args.dweight, column, sum);
  }
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    const double rstd = load(args.rstd, row);
    double dot = 0;  // of weight * dy with the normalised row
    for (std::int64_t column = 0; column < args.x.columns; ++column)
      dot +=
          load(args.weight, column) * load(args.dy, row, column) * load(args.x, row, column) * rstd;
    dot /= static_cast<double>(args.x.columns);
    for (std::int64_t column = 0; column < args.x.columns; ++column) {
      const double normalized = load(args.x, row, column) * rstd;
      double dx =
          rstd * (load(args.weight, column) * load(args.dy, row, column) - normalized * dot);
      if (args.accumulate_dx) dx += load(args.dx, row, column);
      store(args.dx, row, column, dx);
    }
  }
}

}  // namespace underkeel::kernels::reference
