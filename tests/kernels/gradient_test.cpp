// The reference's backward functions against differences of its forward functions.

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cases.h"

namespace underkeel::kernels {
namespace {

using cases::Case;
using cases::Instance;

/// Adds `step` times the direction to an operand. The direction's elements are -1, 0 or 1 and
/// `step` is a power of two, so little rounds.
void shift(const TensorView& x, std::uint32_t seed, double step) {
  for (std::int64_t row = 0; row < x.rows; ++row)
    for (std::int64_t column = 0; column < x.columns; ++column)
      reference::store(
          x, row, column,
          reference::load(x, row, column) + step * (cases::below(seed, 3)(row, column) - 1));
}

double along(const TensorView& gradient, std::uint32_t seed) {
  double sum = 0;
  for (std::int64_t row = 0; row < gradient.rows; ++row)
    for (std::int64_t column = 0; column < gradient.columns; ++column)
      sum += reference::load(gradient, row, column) * (cases::below(seed, 3)(row, column) - 1);
  return sum;
}

double norm_of(const TensorView& x) {
  return std::sqrt(cases::dot(x, x));
}

/// Central difference of the loss along a direction; fourth order by two step sizes.
double difference(const Case& item, int input, std::uint32_t seed, device::Queue& queue) {
  const auto central = [&](double step) {
    const auto loss_at = [&](double offset) {
      Instance instance(item);
      shift(instance.view(input), seed, offset);
      return item.loss(instance.views(), queue);
    };
    return (loss_at(step) - loss_at(-step)) / (2 * step);
  };
  return (4 * central(0x1p-7) - central(0x1p-6)) / 3;
}

TEST(ReferenceBackward, AgreesWithFiniteDifferences) {
  device::ThreadPool pool(1);
  device::Queue queue = device::Queue::on_cpu(pool);
  int checked = 0;
  for (const Case& item : cases::unit_cases()) {
    if (!item.loss) continue;
    SCOPED_TRACE(full_name(item));
    Instance instance(item);
    instance.prepare(queue);

    instance.run(reference_kernels(), queue);

    for (const auto& [input, gradient] : item.gradients) {
      const TensorView& result = instance.view(gradient);
      for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        const double by_difference = difference(item, input, seed, queue);
        // Outputs are rounded to f32: 2^-24 each, divided by the smallest step, is 8e-6. The
        // fourth-order remainder is far below that.
        const double allowed = 1e-4 * norm_of(result) + 1e-5;
        EXPECT_NEAR(along(result, seed), by_difference, allowed)
            << item.operands[static_cast<std::size_t>(gradient)].name << ", direction " << seed;
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 6 * 14);
}

}  // namespace
}  // namespace underkeel::kernels
