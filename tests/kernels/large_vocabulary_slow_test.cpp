// A loss over 300,000 tokens in pieces, head and all, against plain sums in double: above 250,000
// some fused losses are known to lose accuracy.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/kernels.h"

namespace underkeel::kernels {
namespace {

constexpr std::int64_t tokens = 256;
constexpr std::int64_t vocabulary = 300'000;
constexpr std::int64_t width = 64;
constexpr std::int64_t chunk = 32;  // rows of logits that exist at once

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

TensorView view(std::vector<float>& values, std::int64_t first_row, std::int64_t rows,
                std::int64_t columns) {
  return matrix(values.data() + first_row * columns, DType::f32, rows, columns);
}

struct Result {
  double loss = 0;
  std::vector<double> hidden_gradient = std::vector<double>(at(tokens * width));
  std::vector<double> weight_gradient = std::vector<double>(at(vocabulary * width));
};

double relative_error(const std::vector<float>& found, const std::vector<double>& expected) {
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

  Result expected() const {
    std::vector<double> transposed(at(width * vocabulary));
    for (std::int64_t j = 0; j < vocabulary; ++j)
      for (std::int64_t d = 0; d < width; ++d)
        transposed[at(d * vocabulary + j)] = weight_[at(j * width + d)];
    Result result;
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

  std::vector<float> hidden_ = std::vector<float>(at(tokens * width));
  std::vector<float> weight_ = std::vector<float>(at(vocabulary * width));
  std::vector<std::int32_t> targets_ = std::vector<std::int32_t>(at(tokens));
};

TEST_F(LargeVocabulary, LosesNoAccuracyInPieces) {
  const KernelTable& table = cpu_kernels();
  device::ThreadPool pool(2);
  device::Queue queue = device::Queue::on_cpu(pool);
  std::vector<float> logits(at(chunk * vocabulary));
  std::vector<float> hidden_gradient(hidden_.size());
  std::vector<float> weight_gradient(weight_.size());
  double loss = 0;
  float scale = 1.0F / tokens;
  for (std::int64_t row = 0; row < tokens; row += chunk) {
    const TensorView hidden = view(hidden_, row, chunk, width);
    const TensorView weight = view(weight_, 0, vocabulary, width);
    const TensorView piece = view(logits, 0, chunk, vocabulary);
    table.matmul({.a = hidden, .b = weight, .c = piece, .transpose_b = true}, queue);
    table.cross_entropy({.logits = piece,
                         .targets = vector(targets_.data() + row, DType::i32, chunk),
                         .loss = vector(&loss, DType::f64, 1),
                         .gradient_scale = vector(&scale, DType::f32, 1)},
                        queue);
    table.matmul({.a = piece, .b = weight, .c = view(hidden_gradient, row, chunk, width)}, queue);
    table.matmul({.a = piece,
                  .b = hidden,
                  .c = view(weight_gradient, 0, vocabulary, width),
                  .transpose_a = true,
                  .accumulate = row > 0},
                 queue);
  }

  const Result reference = expected();
  EXPECT_NEAR(loss / reference.loss, 1, 1e-5);
  EXPECT_LT(relative_error(hidden_gradient, reference.hidden_gradient), 1e-4);
  EXPECT_LT(relative_error(weight_gradient, reference.weight_gradient), 1e-4);
}

}  // namespace
}  // namespace underkeel::kernels
