#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void rms_norm_forward(const RmsNormForwardArgs& args, device::Queue& /*queue*/) {
  const std::int64_t width = check_shapes(args);
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    for (std::int64_t group = 0; group < args.groups; ++group) {
      double sum = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const double x = load(args.x, row, group * width + i);
        sum += x * x;
      }
      const double rstd =
          1.0 / std::sqrt(sum / static_cast<double>(width) + static_cast<double>(args.epsilon));
      store(args.rstd, row * args.groups + group, rstd);
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t column = group * width + i;
        const double normalized = round_to(args.x.type, load(args.x, row, column) * rstd);
        store(args.y, row, column, normalized * load(args.weight, i));
      }
    }
  }
}

void rms_norm_backward(const RmsNormBackwardArgs& args, device::Queue& /*queue*/) {
  const std::int64_t width = check_shapes(args);
  // First the weight's gradient, because dx may overwrite dy.
  for (std::int64_t i = 0; i < width; ++i) {
    double sum = args.accumulate_dweight ? load(args.dweight, i) : 0;
    for (std::int64_t row = 0; row < args.x.rows; ++row)
      for (std::int64_t group = 0; group < args.groups; ++group)
        sum += load(args.dy, row, group * width + i) * load(args.x, row, group * width + i) *
               load(args.rstd, row * args.groups + group);
    store(args.dweight, i, sum);
  }
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    for (std::int64_t group = 0; group < args.groups; ++group) {
      const double rstd = load(args.rstd, row * args.groups + group);
      double dot = 0;  // of weight * dy with the normalised group
      for (std::int64_t i = 0; i < width; ++i)
        dot += load(args.weight, i) * load(args.dy, row, group * width + i) *
               load(args.x, row, group * width + i) * rstd;
      dot /= static_cast<double>(width);
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t column = group * width + i;
        const double normalized = load(args.x, row, column) * rstd;
        double dx = rstd * (load(args.weight, i) * load(args.dy, row, column) - normalized * dot);
        if (args.accumulate_dx) dx += load(args.dx, row, column);
        store(args.dx, row, column, dx);
        if (args.y.data != nullptr) {
          store(args.y, row, column, normalized);  // rounded before the weight comes in
          store(args.y, row, column, load(args.y, row, column) * load(args.weight, i));
        }
      }
    }
  }
}

}  // namespace underkeel::kernels::reference
