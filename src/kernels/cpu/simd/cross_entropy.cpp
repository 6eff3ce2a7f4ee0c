#include <cmath>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/exp.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

template <class T>
float largest_of(const T* logits, std::int64_t count) {
  const Vec lowest = broadcast(-__builtin_inff());
  Vec most = lowest;
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t left = count - i;
    const Vec value = load_up_to(logits + i, left);
    most = max(most, left >= lanes ? value : select(first_lanes(left), value, lowest));
  }
  return reduce_max(most);
}

template <class T>
float sum_of_exponentials(const T* logits, std::int64_t count, float largest) {
  Vec sums[2] = {zero(), zero()};
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    sums[0] = sums[0] + exp(load(logits + i) - broadcast(largest));
    sums[1] = sums[1] + exp(load(logits + i + lanes) - broadcast(largest));
  }
  for (; i < count; i += lanes) {
    const std::int64_t left = count - i;
    const Vec term = exp(load_up_to(logits + i, left) - broadcast(largest));
    sums[0] = sums[0] + (left >= lanes ? term : select(first_lanes(left), term, zero()));
  }
  return reduce_add(sums[0] + sums[1]);
}

/// The loss of one row; its gradient over the logits when `scale` is not null.
template <class T>
double row_loss(T* logits, std::int64_t vocabulary, std::int64_t target, const float* scale) {
  const float largest = largest_of(logits, vocabulary);
  const float sum = sum_of_exponentials(logits, vocabulary, largest);
  const float target_logit = first_lane(load_first(logits + target, 1));
  const double loss = std::log(static_cast<double>(sum)) + static_cast<double>(largest) -
                      static_cast<double>(target_logit);
  if (scale == nullptr) return loss;
  const float target_probability = first_lane(exp(broadcast(target_logit - largest))) / sum;
  const Vec factor = broadcast(*scale / sum);
  for (std::int64_t i = 0; i < vocabulary; i += lanes) {
    const std::int64_t left = vocabulary - i;
    const Vec term = exp(load_up_to(logits + i, left) - broadcast(largest));
    store_up_to(logits + i, term * factor, left);
  }
  store_first(logits + target, broadcast((target_probability - 1.0f) * *scale), 1);
  return loss;
}

}  // namespace

void cross_entropy(const CrossEntropyArgs& args, device::Queue& queue) {
  check_shapes(args);
  // Losses of so many rows at a time are kept and then added in order.
  constexpr std::int64_t batch = 512;
  double losses[batch];
  const std::int64_t vocabulary = args.logits.columns;
  const float* scale = args.with_gradient ? args.gradient_scale.as<float>() : nullptr;
  with_storage(args.logits.type, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t begin = 0; begin < args.logits.rows; begin += batch) {
      const std::int64_t count = min_of(batch, args.logits.rows - begin);
      for_row_tiles(queue.pool(), count, 4 * vocabulary, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          T* logits = row_of<T>(args.logits, begin + i);
          const std::int64_t target = args.targets.as<std::int32_t>()[begin + i];
          losses[i] = 0;
          if (target != ignore_target) {
            losses[i] = row_loss(logits, vocabulary, target, scale);
          } else if (scale != nullptr) {
            for (std::int64_t j = 0; j < vocabulary; ++j) logits[j] = T{};
          }
        }
      });
      for (std::int64_t i = 0; i < count; ++i) *args.loss.as<double>() += losses[i];
    }
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
