// Sum of squares and AdamW in the order that their headers write down: the same bits as the
// reference.

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

constexpr int interleaved_sums = 16;

template <class T>
double sum_squares_of_block(const T* x, std::int64_t count) {
  constexpr int vectors = interleaved_sums / lanes;
  Vec partial[vectors];
  for (Vec& sum : partial) sum = zero();
  for (std::int64_t i = 0; i < count; i += interleaved_sums) {
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t left = count - i - v * lanes;
      // Lanes past the end are zero and add nothing.
      const Vec value = load_up_to(x + i + v * lanes, max_of(left, 0));
      partial[v] = fma(value, value, partial[v]);
    }
  }
  float values[interleaved_sums];
  for (int v = 0; v < vectors; ++v) store(values + v * lanes, partial[v]);
  double sums[interleaved_sums];
  for (int i = 0; i < interleaved_sums; ++i) sums[i] = static_cast<double>(values[i]);
  for (int half = interleaved_sums / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

}  // namespace

void sum_squares(const SumSquaresArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t elements = args.x.element_count();
  const std::int64_t blocks = (elements + sum_squares_block - 1) / sum_squares_block;
  double sum = args.accumulate ? *args.sum.as<double>() : 0;
  // Sums of so many blocks at a time are kept and then added in order.
  constexpr std::int64_t batch = 512;
  double sums[batch];
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t begin = 0; begin < blocks; begin += batch) {
      const std::int64_t count = min_of(batch, blocks - begin);
      for_row_tiles(queue.pool(), count, sum_squares_block,
                    [&](std::int64_t first, std::int64_t end) {
                      for (std::int64_t i = first; i < end; ++i) {
                        const std::int64_t start = (begin + i) * sum_squares_block;
                        sums[i] = sum_squares_of_block(args.x.as<T>() + start,
                                                       min_of(sum_squares_block, elements - start));
                      }
                    });
      for (std::int64_t i = 0; i < count; ++i) sum += sums[i];
    }
  });
  *args.sum.as<double>() = sum;
}

void adamw(const AdamwArgs& args, device::Queue& queue) {
  check_shapes(args);
  const float* step_values = args.step_values.as<float>();
  const float* clip = args.clip.as<float>();
  if (clip[2] == 0) return;
  const Vec factor = broadcast(clip[1]);
  const Vec beta1 = broadcast(static_cast<float>(args.beta1));
  const Vec beta2 = broadcast(static_cast<float>(args.beta2));
  const Vec rest1 = broadcast(static_cast<float>(1.0 - args.beta1));
  const Vec rest2 = broadcast(static_cast<float>(1.0 - args.beta2));
  const Vec decay = broadcast(-(step_values[0] * args.weight_decay));
  const Vec step = broadcast(-(step_values[0] / step_values[1]));
  const Vec correction2 = broadcast(step_values[2]);
  const Vec epsilon = broadcast(args.epsilon);
  with_storage(args.gradient.type, [&](auto gradient_tag) {
    with_storage(args.weight.type, [&](auto weight_tag) {
      using Gradient = decltype(gradient_tag);
      using Weight = decltype(weight_tag);
      for_stretches(queue.pool(), 1, args.master.element_count(), true,
                    [&](std::int64_t /*row*/, std::int64_t begin, std::int64_t count) {
                      float* masters = args.master.as<float>() + begin;
                      float* moments1 = args.moment1.as<float>() + begin;
                      float* moments2 = args.moment2.as<float>() + begin;
                      const Gradient* gradients = args.gradient.as<Gradient>() + begin;
                      Weight* weights =
                          args.weight.data == nullptr ? nullptr : args.weight.as<Weight>() + begin;
                      for (std::int64_t i = 0; i < count; i += lanes) {
                        const std::int64_t left = count - i;
                        const Vec gradient = load_up_to(gradients + i, left) * factor;
                        const Vec moment1 =
                            fma(beta1, load_up_to(moments1 + i, left), rest1 * gradient);
                        const Vec moment2 =
                            fma(beta2, load_up_to(moments2 + i, left), rest2 * gradient * gradient);
                        Vec master = load_up_to(masters + i, left);
                        master = fma(decay, master, master);
                        const Vec denominator = sqrt(moment2) / correction2 + epsilon;
                        master = fma(step, moment1 / denominator, master);
                        store_up_to(moments1 + i, moment1, left);
                        store_up_to(moments2 + i, moment2, left);
                        store_up_to(masters + i, master, left);
                        if (weights != nullptr) store_up_to(weights + i, master, left);
                      }
                    });
    });
  });
}

void adamw_at_random(const AdamwAtRandomArgs& args, device::Queue& queue) {
  check_shapes(args);
  const float* step_values = args.step_values.as<float>();
  const float* clip = args.clip.as<float>();
  if (clip[2] == 0) return;
  const Vec factor = broadcast(clip[1]);
  const Vec beta1 = broadcast(static_cast<float>(args.beta1));
  const Vec beta2 = broadcast(static_cast<float>(args.beta2));
  const Vec rest1 = broadcast(static_cast<float>(1.0 - args.beta1));
  const Vec rest2 = broadcast(static_cast<float>(1.0 - args.beta2));
  const Vec decay = broadcast(-(step_values[0] * args.weight_decay));
  const Vec step = broadcast(-(step_values[0] / step_values[1]));
  const Vec reciprocal2 = broadcast(1.0f / step_values[2]);
  const Vec epsilon = broadcast(args.epsilon);
  const std::uint32_t update = update_number(step_values);
  // Stretches begin at multiples of tile_elements and vectors at multiples of lanes: no block of bits is cut.
  static_assert(tile_elements % elements_of_rounding_block == 0 &&
                lanes % elements_of_rounding_block == 0);
  with_storage(args.gradient.type, [&](auto gradient_tag) {
    using Gradient = decltype(gradient_tag);
    for_stretches(
        queue.pool(), 1, args.weight.element_count(), true,
        [&](std::int64_t /*row*/, std::int64_t begin, std::int64_t count) {
          BFloat16* weights = args.weight.as<BFloat16>() + begin;
          BFloat16* moments1 = args.moment1.as<BFloat16>() + begin;
          BFloat16* moments2 = args.moment2.as<BFloat16>() + begin;
          const Gradient* gradients = args.gradient.as<Gradient>() + begin;
          for (std::int64_t i = 0; i < count; i += lanes) {
            const std::int64_t left = count - i;
            const Vec gradient = load_up_to(gradients + i, left) * factor;
            const Vec moment1 = fma(beta1, load_up_to(moments1 + i, left), rest1 * gradient);
            const Vec moment2 =
                fma(beta2, load_up_to(moments2 + i, left), rest2 * gradient * gradient);
            Vec weight = load_up_to(weights + i, left);
            weight = fma(decay, weight, weight);
            const Vec denominator = sqrt(moment2) * reciprocal2 + epsilon;
            weight = fma(step, moment1 / denominator, weight);
            float wide[3][lanes];
            store(wide[0], weight);
            store(wide[1], moment1);
            store(wide[2], moment2);
            for (std::int64_t j = 0; j < min_of(lanes, left); j += elements_of_rounding_block) {
              const auto bits = rounding_bits(
                  args, update, (args.first_element + begin + i + j) / elements_of_rounding_block);
              for (std::int64_t k = 0; k < min_of(elements_of_rounding_block, left - j); ++k) {
                const RoundedElement rounded =
                    round_at_random(wide[0][j + k], wide[1][j + k], wide[2][j + k],
                                    bits[static_cast<std::size_t>(k)]);
                weights[i + j + k].bits = high_half(rounded.weight);
                moments1[i + j + k].bits = high_half(rounded.moment1);
                moments2[i + j + k].bits = high_half(rounded.moment2);
              }
            }
          }
        });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
