#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void cross_entropy(const CrossEntropyArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const std::int64_t vocabulary = args.logits.columns;
  for (std::int64_t row = 0; row < args.logits.rows; ++row) {
    const std::int64_t target = args.targets.as<std::int32_t>()[row];
    if (target == ignore_target) {
      for (std::int64_t token = 0; token < vocabulary && args.with_gradient; ++token)
        store(args.logits, row, token, 0);
      continue;
    }
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t token = 0; token < vocabulary; ++token)
      largest = std::max(largest, load(args.logits, row, token));
    double sum = 0;
    for (std::int64_t token = 0; token < vocabulary; ++token)
      sum += std::exp(load(args.logits, row, token) - largest);
    const double lse = largest + std::log(sum);
    *args.loss.as<double>() += lse - load(args.logits, row, target);
    if (!args.with_gradient) continue;
    const double scale = load(args.gradient_scale, 0);
    for (std::int64_t token = 0; token < vocabulary; ++token) {
      const double probability = std::exp(load(args.logits, row, token) - lse);
      store(args.logits, row, token, (probability - (token == target ? 1 : 0)) * scale);
    }
  }
}

}  // namespace underkeel::kernels::reference
