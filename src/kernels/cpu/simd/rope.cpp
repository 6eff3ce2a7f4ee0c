#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

void rope_apply(const RopeApplyArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t half = args.head_width / 2;
  const Vec sign = broadcast(args.inverse ? -1.0f : 1.0f);
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    for_row_tiles(queue.pool(), args.x.rows, args.x.columns,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      const float* cosines = row_of<float>(args.cosine, row);
                      const float* sines = row_of<float>(args.sine, row);
                      for (std::int64_t pair = 0; pair < half; pair += lanes) {
                        const std::int64_t left = half - pair;
                        const Vec cosine = load_up_to(cosines + pair, left);
                        const Vec sine = load_up_to(sines + pair, left) * sign;
                        T* x = row_of<T>(args.x, row) + pair;
                        for (T* head = x; head < x + args.x.columns; head += args.head_width) {
                          const Vec first = load_up_to(head, left);
                          const Vec second = load_up_to(head + half, left);
                          store_up_to(head, negative_fma(second, sine, first * cosine), left);
                          store_up_to(head + half, fma(first, sine, second * cosine), left);
                        }
                      }
                    }
                  });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
