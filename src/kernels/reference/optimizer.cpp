// Sum of squares, clip factor and AdamW. Their order and roundings are written down in their
// headers (equal bits on every backend), so this is f32 with explicit fma, not double.

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::reference {

namespace {

constexpr int lanes = 16;

double sum_squares_of_block(const TensorView& x, std::int64_t begin, std::int64_t end) {
  std::array<float, lanes> partial{};
  for (std::int64_t i = begin; i < end; ++i) {
    const auto value = static_cast<float>(load(x, i));
    float& lane = partial[(i - begin) % lanes];
    lane = std::fma(value, value, lane);
  }
  // Pairwise: lane i and lane i + half, halving.
  std::array<double, lanes> sums{};
  for (int i = 0; i < lanes; ++i) sums[i] = static_cast<double>(partial[i]);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

}  // namespace

void sum_squares(const SumSquaresArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const std::int64_t elements = args.x.element_count();
  double sum = args.accumulate ? *args.sum.as<double>() : 0;
  for (std::int64_t begin = 0; begin < elements; begin += sum_squares_block)
    sum += sum_squares_of_block(args.x, begin, std::min(elements, begin + sum_squares_block));
  *args.sum.as<double>() = sum;
}

void clip_factor(const ClipFactorArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  double sum = 0;
  for (std::int64_t i = 0; i < args.sums.element_count(); ++i) sum += load(args.sums, i);
  const double scale = args.loss_scale.data == nullptr ? 1 : load(args.loss_scale, 0);
  const double norm = std::sqrt(sum) / scale;
  const bool finite = std::isfinite(norm);
  double factor = 1;
  if (args.max_norm > 0) factor = std::min(1.0, static_cast<double>(args.max_norm) / (norm + 1e-6));
  factor /= scale;
  store(args.out, 0, norm);
  store(args.out, 1, finite ? factor : 0);
  store(args.out, 2, finite ? 1 : 0);
  store(args.out, 3, 0);
}

void adamw(const AdamwArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const float* step_values = args.step_values.as<float>();
  const float* clip = args.clip.as<float>();
  const float factor = clip[1];
  if (clip[2] == 0) return;
  const float learning_rate = step_values[0];
  const float correction1 = step_values[1];
  const float correction2 = step_values[2];
  const auto beta1 = static_cast<float>(args.beta1);
  const auto beta2 = static_cast<float>(args.beta2);
  const auto rest1 = static_cast<float>(1.0 - args.beta1);
  const auto rest2 = static_cast<float>(1.0 - args.beta2);
  const float decay = -(learning_rate * args.weight_decay);
  const float step = -(learning_rate / correction1);
  for (std::int64_t i = 0; i < args.master.element_count(); ++i) {
    const float gradient = static_cast<float>(load(args.gradient, i)) * factor;
    const float moment1 = std::fma(beta1, args.moment1.as<float>()[i], rest1 * gradient);
    const float moment2 = std::fma(beta2, args.moment2.as<float>()[i], rest2 * gradient * gradient);
    float master = args.master.as<float>()[i];
    master = std::fma(decay, master, master);
    const float denominator = std::sqrt(moment2) / correction2 + args.epsilon;
    master = std::fma(step, moment1 / denominator, master);
    args.moment1.as<float>()[i] = moment1;
    args.moment2.as<float>()[i] = moment2;
    args.master.as<float>()[i] = master;
    if (args.weight.data != nullptr) store(args.weight, i, static_cast<double>(master));
  }
}

void adamw_at_random(const AdamwAtRandomArgs& args, device::Queue& /*queue*/) {
  check_shapes(args);
  const float* step_values = args.step_values.as<float>();
  const float* clip = args.clip.as<float>();
  if (clip[2] == 0) return;
  const float factor = clip[1];
  const auto beta1 = static_cast<float>(args.beta1);
  const auto beta2 = static_cast<float>(args.beta2);
  const auto rest1 = static_cast<float>(1.0 - args.beta1);
  const auto rest2 = static_cast<float>(1.0 - args.beta2);
  const float decay = -(step_values[0] * args.weight_decay);
  const float step = -(step_values[0] / step_values[1]);
  const float reciprocal2 = 1.0f / step_values[2];
  const std::uint32_t update = update_number(step_values);
  for (std::int64_t i = 0; i < args.weight.element_count(); ++i) {
    const float gradient = static_cast<float>(load(args.gradient, i)) * factor;
    const float moment1 =
        std::fma(beta1, static_cast<float>(load(args.moment1, i)), rest1 * gradient);
    const float moment2 =
        std::fma(beta2, static_cast<float>(load(args.moment2, i)), rest2 * gradient * gradient);
    auto weight = static_cast<float>(load(args.weight, i));
    weight = std::fma(decay, weight, weight);
    const float denominator = std::sqrt(moment2) * reciprocal2 + args.epsilon;
    weight = std::fma(step, moment1 / denominator, weight);
    const std::int64_t element = args.first_element + i;
    const auto bits = rounding_bits(args, update, element / elements_of_rounding_block);
    const RoundedElement rounded =
        round_at_random(weight, moment1, moment2,
                        bits[static_cast<std::size_t>(element % elements_of_rounding_block)]);
    args.weight.as<BFloat16>()[i].bits = high_half(rounded.weight);
    args.moment1.as<BFloat16>()[i].bits = high_half(rounded.moment1);
    args.moment2.as<BFloat16>()[i].bits = high_half(rounded.moment2);
  }
}

}  // namespace underkeel::kernels::reference
