#include <cstring>

#include "device/gpu.h"
#include "kernels/facts/facts.h"
#include "kernels/large_vocabulary.h"

namespace underkeel::kernels::large_vocabulary {
namespace {

TEST_F(LargeVocabulary, LosesNoAccuracyInPiecesOnAGpu) {
  const auto opened = device::open_gpu(0);
  if (!opened) GTEST_SKIP() << opened.error().what;
  device::Gpu& gpu = **opened;
  auto made = gpu.make_queue();
  ASSERT_TRUE(made);
  device::Queue& queue = *made;
  constexpr std::int64_t size_bytes = std::int64_t{1} << 29;
  const auto memory = gpu.allocate(size_bytes);
  ASSERT_TRUE(memory);
  auto* next = static_cast<std::byte*>(*memory);
  const auto put = [&](const void* from, DType type, std::int64_t rows, std::int64_t columns) {
    const TensorView view = matrix(next, type, rows, columns);
    const std::int64_t bytes = bytes_of(type, rows * columns);
    next += (bytes + 255) / 256 * 256;
    EXPECT_TRUE(from != nullptr ? gpu.copy(view.data, from, bytes, queue)
                                : gpu.clear(view.data, bytes, queue));
    return view;
  };
  const float scale = 1.0F / tokens;
  const Places places{.hidden = put(hidden_.data(), DType::f32, tokens, width),
                      .weight = put(weight_.data(), DType::f32, vocabulary, width),
                      .targets = put(targets_.data(), DType::i32, 1, tokens),
                      .logits = put(nullptr, DType::f32, chunk, vocabulary),
                      .hidden_gradient = put(nullptr, DType::f32, tokens, width),
                      .weight_gradient = put(nullptr, DType::f32, vocabulary, width),
                      .loss = put(nullptr, DType::f64, 1, 1),
                      .scale = put(&scale, DType::f32, 1, 1),
                      .matmul_scratch = put(nullptr, DType::u8, 1, cuda_matmul_workspace_bytes),
                      .loss_scratch = put(nullptr, DType::f64, 1, chunk)};
  ASSERT_LE(next - static_cast<std::byte*>(*memory), size_bytes);

  run_in_pieces(cuda_kernels(), places, queue);

  double loss = 0;
  std::vector<float> hidden_gradient(hidden_.size());
  std::vector<float> weight_gradient(weight_.size());
  const auto take = [&](void* to, const TensorView& from) {
    EXPECT_TRUE(gpu.copy(to, from.data, bytes_of(from.type, from.element_count()), queue));
  };
  take(&loss, places.loss);
  take(hidden_gradient.data(), places.hidden_gradient);
  take(weight_gradient.data(), places.weight_gradient);
  EXPECT_TRUE(gpu.check_launches());
  EXPECT_TRUE(gpu.synchronize(queue));
  gpu.release(*memory);
  expect_close(loss, hidden_gradient, weight_gradient);
}

}  // namespace
}  // namespace underkeel::kernels::large_vocabulary
