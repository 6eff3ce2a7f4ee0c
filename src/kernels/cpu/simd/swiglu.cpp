#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/exp.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {
inline Vec sigmoid(Vec x) {
  const Vec one = broadcast(1.0f);
  return one / (one + exp(zero() - x));
}
}  // namespace

void swiglu_forward(const SwigluForwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless(args.gate) && is_gapless(args.up) && is_gapless(args.out);
  with_storage(args.gate.type, [&](auto tag) {
    using T = decltype(tag);
    for_stretches(queue.pool(), args.gate.rows, args.gate.columns, gapless,
                  [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                    const T* gates = row_of<T>(args.gate, row) + column;
                    const T* ups = row_of<T>(args.up, row) + column;
                    T* out = row_of<T>(args.out, row) + column;
                    for (std::int64_t i = 0; i < count; i += lanes) {
                      const std::int64_t left = count - i;
                      const Vec gate = load_up_to(gates + i, left);
                      const Vec up = load_up_to(ups + i, left);
                      store_up_to(out + i, gate * sigmoid(gate) * up, left);
                    }
                  });
  });
}

void swiglu_backward(const SwigluBackwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless(args.gate) && is_gapless(args.up) && is_gapless(args.dout) &&
                       is_gapless(args.dgate) && is_gapless(args.dup) &&
                       (args.out.data == nullptr || is_gapless(args.out));
  with_storage(args.gate.type, [&](auto tag) {
    using T = decltype(tag);
    for_stretches(queue.pool(), args.gate.rows, args.gate.columns, gapless,
                  [&](std::int64_t row, std::int64_t column, std::int64_t count) {
                    const T* gates = row_of<T>(args.gate, row) + column;
                    const T* ups = row_of<T>(args.up, row) + column;
                    const T* douts = row_of<T>(args.dout, row) + column;
                    T* dgates = row_of<T>(args.dgate, row) + column;
                    T* dups = row_of<T>(args.dup, row) + column;
                    T* outs =
                        args.out.data == nullptr ? nullptr : row_of<T>(args.out, row) + column;
                    const Vec one = broadcast(1.0f);
                    for (std::int64_t i = 0; i < count; i += lanes) {
                      const std::int64_t left = count - i;
                      const Vec gate = load_up_to(gates + i, left);
                      const Vec up = load_up_to(ups + i, left);
                      const Vec dout = load_up_to(douts + i, left);
                      const Vec s = sigmoid(gate);
                      const Vec slope = s * fma(gate, one - s, one);
                      store_up_to(dgates + i, dout * up * slope, left);
                      store_up_to(dups + i, dout * (gate * s), left);
                      if (outs != nullptr) store_up_to(outs + i, gate * s * up, left);
                    }
                  });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
