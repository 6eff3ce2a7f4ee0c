#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace underkeel::train {

std::int32_t sample_token(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t position) {
  UK_CHECK(!logits.empty(), "there is a token to choose");
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (sampling.temperature <= 0) return static_cast<std::int32_t>(likeliest - logits.begin());

  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::size_t kept = order.size();
  if (sampling.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(sampling.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    likelier);

  std::vector<double> weight(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    const double difference =
        static_cast<double>(logits[static_cast<std::size_t>(order[i])]) - *likeliest;
    weight[i] = std::exp(difference / sampling.temperature);
  }
  double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
  if (sampling.top_p < 1) {
    const double wanted = std::max(0.0, sampling.top_p) * sum;
    double held = 0;
    std::size_t last = 0;
    while (last + 1 < kept && held + weight[last] < wanted) held += weight[last++];
    sum = held + weight[last];
    kept = last + 1;
  }
  constexpr std::uint32_t stream = 0x67656e65;  // apart from the streams of weights and data order
  double left = random_uniform(sampling.seed, stream, static_cast<std::uint64_t>(position)) * sum;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    if (left < weight[i]) return order[i];
    left -= weight[i];
  }
  return order[kept - 1];
}

}  // namespace underkeel::train
