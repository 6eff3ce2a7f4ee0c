#pragma once
// A loss over 300,000 tokens in pieces, head and all, against plain sums in double: above 250,000
// some fused losses are known to lose accuracy. For the CPU's kernels and a GPU's.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/kernels.h"

namespace underkeel::kernels::large_vocabulary {
inline constexpr std::int64_t tokens = 256;
inline constexpr std::int64_t vocabulary = 300'000;
inline constexpr std::int64_t width = 64;
inline constexpr std::int64_t chunk = 32;  // rows of logits that exist at once

inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Where the loop's operands lie, in host memory or on a GPU.
struct Places {
  TensorView hidden;   // [tokens, width]
  TensorView weight;   // [vocabulary, width]
  TensorView targets;  // [tokens]
  TensorView logits;   // [chunk, vocabulary]
  TensorView hidden_gradient;
  TensorView weight_gradient;
  TensorView loss;
  TensorView scale;
  TensorView matmul_scratch;  // on a GPU
  TensorView loss_scratch;
};

/// Loss and gradients, `chunk` rows of logits at a time.
inline void run_in_pieces(const KernelTable& table, const Places& places, device::Queue& queue) {
  for (std::int64_t row = 0; row < tokens; row += chunk) {
    const auto rows = [&](const TensorView& view) {
      return matrix(view.as<float>() + row * width, DType::f32, chunk, width);
    };
    const TensorView hidden = rows(places.hidden);
    table.matmul({.a = hidden,
                  .b = places.weight,
                  .c = places.logits,
                  .transpose_b = true,
                  .scratch = places.matmul_scratch},
                 queue);
    table.cross_entropy(
        {.logits = places.logits,
         .targets = vector(places.targets.as<std::int32_t>() + row, DType::i32, chunk),
         .loss = places.loss,
         .gradient_scale = places.scale,
         .scratch = places.loss_scratch},
        queue);
    table.matmul({.a = places.logits,
                  .b = places.weight,
                  .c = rows(places.hidden_gradient),
                  .scratch = places.matmul_scratch},
                 queue);
    table.matmul({.a = places.logits,
                  .b = hidden,
                  .c = places.weight_gradient,
                  .transpose_a = true,
                  .accumulate = row > 0,
                  .scratch = places.matmul_scratch},
                 queue);
  }
}

struct Expected {
  double loss = 0;
  std::vector<double> hidden_gradient = std::vector<double>(at(tokens * width));
  std::vector<double> weight_gradient = std::vector<double>(at(vocabulary * width));
};

inline double relative_error(const std::vector<float>& found, const std::vector<double>& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

class LargeVocabulary : public testing::Test {
 protected:
  LargeVocabulary() {
    // Logits are sums of 64 products; their largest absolute value comes to about 30.
    for (std::size_t i = 0; i < hidden_.size(); ++i) hidden_[i] = random_normal(1, 0, i);
    for (std::size_t i = 0; i < weight_.size(); ++i) weight_[i] = 0.75F * random_normal(1, 1, i);
    for (std::int64_t i = 0; i < tokens; ++i)
      targets_[at(i)] =
          static_cast<std::int32_t>(random_word(1, 2, static_cast<std::uint64_t>(i)) % vocabulary);
  }

  Expected expected() const {
    std::vector<double> transposed(at(width * vocabulary));
    for (std::int64_t j = 0; j < vocabulary; ++j)
      for (std::int64_t d = 0; d < width; ++d)
        transposed[at(d * vocabulary + j)] = weight_[at(j * width + d)];
    Expected result;
    std::vector<double> logits(at(vocabulary));
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::fill(logits.begin(), logits.end(), 0.0);
      for (std::int64_t d = 0; d < width; ++d)
        for (std::int64_t j = 0; j < vocabulary; ++j)
          logits[at(j)] += hidden_[at(t * width + d)] * transposed[at(d * vocabulary + j)];
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit - largest);
      const double target_logit = logits[at(targets_[at(t)])];
      result.loss += largest + std::log(sum) - target_logit;
      for (double& logit : logits) logit = std::exp(logit - largest) / sum / tokens;
      logits[at(targets_[at(t)])] -= 1.0 / tokens;
      for (std::int64_t j = 0; j < vocabulary; ++j)
        for (std::int64_t d = 0; d < width; ++d) {
          result.hidden_gradient[at(t * width + d)] += logits[at(j)] * weight_[at(j * width + d)];
          result.weight_gradient[at(j * width + d)] += logits[at(j)] * hidden_[at(t * width + d)];
        }
    }
    return result;
  }

  /// Within 1e-5 of the loss and 1e-4 of the gradients.
  void expect_close(double loss, const std::vector<float>& hidden_gradient,
                    const std::vector<float>& weight_gradient) const {
    const Expected reference = expected();
    EXPECT_NEAR(loss / reference.loss, 1, 1e-5);
    EXPECT_LT(relative_error(hidden_gradient, reference.hidden_gradient), 1e-4);
    EXPECT_LT(relative_error(weight_gradient, reference.weight_gradient), 1e-4);
  }

  std::vector<float> hidden_ = std::vector<float>(at(tokens * width));
  std::vector<float> weight_ = std::vector<float>(at(vocabulary * width));
  std::vector<std::int32_t> targets_ = std::vector<std::int32_t>(at(tokens));
};

}  // namespace underkeel::kernels::large_vocabulary
