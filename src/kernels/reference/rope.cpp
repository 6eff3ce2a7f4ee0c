#include <algorithm>
#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/rope_frequencies.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

void rope_table(const RopeTableArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < args.cosine.rows; ++row)
    longest = std::max<std::int64_t>(longest, args.positions.as<std::int32_t>()[row]);
  const std::int64_t pairs = args.cosine.columns;
  const RopeFrequencies frequencies = rope_frequencies(args.constants, 2 * pairs, longest);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const float frequency = inverse_frequency(frequencies, pair);
    for (std::int64_t row = 0; row < args.cosine.rows; ++row) {
      // The angle is rounded to f32, as in Hugging Face.
      const float angle = static_cast<float>(args.positions.as<std::int32_t>()[row]) * frequency;
      store(args.cosine, row, pair,
            std::cos(static_cast<double>(angle)) * args.constants.attention_scaling);
      store(args.sine, row, pair,
            std::sin(static_cast<double>(angle)) * args.constants.attention_scaling);
    }
  }
}

void rope_apply(const RopeApplyArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const std::int64_t half = args.head_width / 2;
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    for (std::int64_t head = 0; head < args.x.columns; head += args.head_width) {
      for (std::int64_t pair = 0; pair < half; ++pair) {
        const double cosine = load(args.cosine, row, pair);
        const double sine = load(args.sine, row, pair) * (args.inverse ? -1 : 1);
        const double first = load(args.x, row, head + pair);
        const double second = load(args.x, row, head + half + pair);
        store(args.x, row, head + pair, first * cosine - second * sine);
        store(args.x, row, head + half + pair, second * cosine + first * sine);
      }
    }
  }
}

}  // namespace underkeel::kernels::reference
