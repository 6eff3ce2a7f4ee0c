#include "base/random.h"

#include <cmath>
#include <numbers>

namespace underkeel {

float random_normal(std::uint64_t seed, std::uint32_t stream, std::uint64_t index) {
  // 1 - u is in (0, 1], so the logarithm is finite.
  const double u = 1.0 - random_uniform(seed, stream, 2 * index);
  const double v = random_uniform(seed, stream, 2 * index + 1);
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace underkeel
