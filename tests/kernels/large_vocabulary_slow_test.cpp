#include "kernels/large_vocabulary.h"

namespace underkeel::kernels::large_vocabulary {
namespace {

TEST_F(LargeVocabulary, LosesNoAccuracyInPieces) {
  device::ThreadPool pool(2);
  device::Queue queue = device::Queue::on_cpu(pool);
  std::vector<float> logits(at(chunk * vocabulary));
  std::vector<float> hidden_gradient(hidden_.size());
  std::vector<float> weight_gradient(weight_.size());
  double loss = 0;
  float scale = 1.0F / tokens;

  run_in_pieces(cpu_kernels(),
                {.hidden = matrix(hidden_.data(), DType::f32, tokens, width),
                 .weight = matrix(weight_.data(), DType::f32, vocabulary, width),
                 .targets = vector(targets_.data(), DType::i32, tokens),
                 .logits = matrix(logits.data(), DType::f32, chunk, vocabulary),
                 .hidden_gradient = matrix(hidden_gradient.data(), DType::f32, tokens, width),
                 .weight_gradient = matrix(weight_gradient.data(), DType::f32, vocabulary, width),
                 .loss = vector(&loss, DType::f64, 1),
                 .scale = vector(&scale, DType::f32, 1),
                 .matmul_scratch = {},
                 .loss_scratch = {}},
                queue);

  expect_close(loss, hidden_gradient, weight_gradient);
}

}  // namespace
}  // namespace underkeel::kernels::large_vocabulary
