#include "kernels/cpu/rope_table.h"

#include <algorithm>
#include <cmath>

#include "kernels/rope_frequencies.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu {

void rope_table(const RopeTableArgs& args, device::Queue& queue) {
  check_shapes(args);
  const auto* positions = args.positions.as<std::int32_t>();
  const std::int64_t rows = args.cosine.rows;
  const std::int64_t pairs = args.cosine.columns;
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    longest = std::max<std::int64_t>(longest, positions[row]);
  const RopeFrequencies frequencies = rope_frequencies(args.constants, 2 * pairs, longest);
  constexpr std::int64_t tile_rows = 64;
  queue.pool().parallel_for((rows + tile_rows - 1) / tile_rows, [&](std::int64_t tile) {
    const std::int64_t end = std::min(rows, (tile + 1) * tile_rows);
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const float frequency = inverse_frequency(frequencies, pair);
      for (std::int64_t row = tile * tile_rows; row < end; ++row) {
        // The angle is rounded to f32, as in Hugging Face.
        const auto angle = static_cast<double>(static_cast<float>(positions[row]) * frequency);
        args.cosine.as<float>()[row * args.cosine.row_stride + pair] =
            static_cast<float>(std::cos(angle) * args.constants.attention_scaling);
        args.sine.as<float>()[row * args.sine.row_stride + pair] =
            static_cast<float>(std::sin(angle) * args.constants.attention_scaling);
      }
    }
  });
}

}  // namespace underkeel::kernels::cpu
