// One block a row: maximum and sum of exponentials in one reading, the gradient in a second, which finds
// the row in the cache.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int row_threads = 512;

template <int N, class T>
__global__ void __launch_bounds__(row_threads)
    loss_of_rows(Rows<T> logits, const std::int32_t* targets, std::int64_t vocabulary,
                 const float* gradient_scale, double* losses) {
  __shared__ float shared[warp_size];
  const std::int64_t row = blockIdx.x;
  const std::int32_t target = targets[row];
  T* logit = logits.at(row);
  if (target == ignore_target) {
    if (threadIdx.x == 0) losses[row] = 0.0;
    if (gradient_scale == nullptr) return;
    const float zeros[N] = {};
    for (std::int64_t i = threadIdx.x * N; i < vocabulary; i += row_threads * N)
      store<N>(logit + i, zeros);
    return;
  }
  // A running maximum: the sum is rescaled when a larger logit comes.
  float largest = Largest::start;
  float sum = 0.0f;
  for (std::int64_t i = threadIdx.x * N; i < vocabulary; i += row_threads * N) {
    float values[N];
    load<N>(logit + i, values);
    float most = values[0];
#pragma unroll
    for (int j = 1; j < N; ++j) most = fmaxf(most, values[j]);
    if (most > largest) {
      sum *= expf(largest - most);
      largest = most;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) sum += expf(values[j] - largest);
  }
  const float row_largest = reduce_block(largest, Largest{}, shared);
  sum = reduce_block(sum * expf(largest - row_largest), Sum{}, shared);
  const float target_logit = to_float(logit[target]);
  if (threadIdx.x == 0)
    losses[row] = log(static_cast<double>(sum)) + static_cast<double>(row_largest) -
                  static_cast<double>(target_logit);
  if (gradient_scale == nullptr) return;
  const float scale = *gradient_scale;
  const float factor = scale / sum;
  const float target_gradient = (expf(target_logit - row_largest) / sum - 1.0f) * scale;
  __syncthreads();  // everyone has read the target's logit
  for (std::int64_t i = threadIdx.x * N; i < vocabulary; i += row_threads * N) {
    float values[N];
    load<N>(logit + i, values);
#pragma unroll
    for (int j = 0; j < N; ++j)
      values[j] = i + j == target ? target_gradient : expf(values[j] - row_largest) * factor;
    store<N>(logit + i, values);
  }
}

}  // namespace

void cross_entropy(const CrossEntropyArgs& args, device::Queue& queue) {
  check_shapes(args, TokenValues::on_device);
  const std::int64_t rows = args.logits.rows;
  if (rows == 0) return;
  UK_CHECK(bytes_of(args.scratch.type, args.scratch.element_count()) >=
               cross_entropy_scratch_bytes(rows),
           "cross_entropy: too little scratch");
  with_storage(args.logits.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({args.logits}), [&](auto n) {
      loss_of_rows<n, T><<<static_cast<unsigned>(rows), row_threads, 0, stream_of(queue)>>>(
          rows_of<T>(args.logits), args.targets.as<std::int32_t>(), args.logits.columns,
          args.with_gradient ? args.gradient_scale.as<float>() : nullptr,
          args.scratch.as<double>());
    });
  });
  sum_in_order(vector(args.scratch.data, DType::f64, rows), args.loss, true, queue);
}

}  // namespace underkeel::kernels::cuda
