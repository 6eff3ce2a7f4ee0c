#include <cstring>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

void embedding_forward(const EmbeddingForwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t width = args.out.columns;
  const auto* tokens = args.tokens.as<std::int32_t>();
  with_storage(args.weight.type, [&](auto weight_tag) {
    with_storage(args.out.type, [&](auto out_tag) {
      using Weight = decltype(weight_tag);
      using Out = decltype(out_tag);
      for_row_tiles(queue.pool(), args.out.rows, width, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t row = first; row < end; ++row) {
          const Weight* from = row_of<Weight>(args.weight, tokens[row]);
          Out* to = row_of<Out>(args.out, row);
          for (std::int64_t i = 0; i < width; i += lanes)
            store_up_to(to + i, load_up_to(from + i, width - i), width - i);
        }
      });
    });
  });
}

// Each tile owns some columns of every token and adds rows in order, so repeated tokens need no
// locks and no atomic additions.
void embedding_backward(const EmbeddingBackwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  const auto* tokens = args.tokens.as<std::int32_t>();
  if (!args.accumulate) fill({.to = args.dweight, .value = 0}, queue);
  constexpr std::int64_t stripe = 8 * lanes;
  with_storage(args.dout.type, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t width = args.dout.columns;
    queue.pool().parallel_for((width + stripe - 1) / stripe, [&](std::int64_t tile) {
      const std::int64_t begin = tile * stripe;
      const std::int64_t end = min_of(width, begin + stripe);
      for (std::int64_t row = 0; row < args.dout.rows; ++row) {
        const T* from = row_of<T>(args.dout, row);
        float* into = row_of<float>(args.dweight, tokens[row]);
        for (std::int64_t i = begin; i < end; i += lanes) {
          const std::int64_t left = end - i;
          store_up_to(into + i, load_up_to(into + i, left) + load_up_to(from + i, left), left);
        }
      }
    });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
