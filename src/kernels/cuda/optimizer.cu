// Sum of squares, clip factor and AdamW: the written order of docs/numerics.md, so bits are the CPU's.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int accumulators = 16;  // of the written order
constexpr int square_threads = 128;
constexpr int blocks_of_elements_per_block = square_threads / accumulators;
// Loads that are under way at once in a thread, so that the chain of fma does not wait for memory.
constexpr int loads_ahead = 16;

/// 16 threads a block of sum_squares_block elements; thread j holds accumulator j.
template <class T>
__global__ void __launch_bounds__(square_threads)
    sum_squares_of_blocks(const T* x, std::int64_t element_count, double* partial) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * blocks_of_elements_per_block +
                             threadIdx.x / accumulators;
  const int accumulator = static_cast<int>(threadIdx.x) % accumulators;
  const std::int64_t begin = block * sum_squares_block;
  const std::int64_t count = min(sum_squares_block, element_count - begin);
  float sum = 0.0f;
  std::int64_t i = accumulator;
  for (; i + (loads_ahead - 1) * accumulators < count; i += loads_ahead * accumulators) {
    float values[loads_ahead];
#pragma unroll
    for (int j = 0; j < loads_ahead; ++j) values[j] = to_float(x[begin + i + j * accumulators]);
#pragma unroll
    for (int j = 0; j < loads_ahead; ++j) sum = fmaf(values[j], values[j], sum);
  }
  for (; i < count; i += accumulators) {
    const float value = to_float(x[begin + i]);
    sum = fmaf(value, value, sum);
  }
  double wide = static_cast<double>(sum);
#pragma unroll
  for (int distance = accumulators / 2; distance > 0; distance /= 2)
    wide += __shfl_down_sync(0xffffffffu, wide, distance, accumulators);
  if (accumulator == 0 && count > 0) partial[block] = wide;
}

constexpr int order_threads = 1024;

/// sum [+]= the values in order, in double. One block: threads fetch, thread 0 adds.
__global__ void __launch_bounds__(order_threads)
    sum_in_order(const double* values, std::int64_t count, double* sum, bool accumulate) {
  __shared__ double fetched[order_threads];
  double total = accumulate ? *sum : 0.0;
  for (std::int64_t begin = 0; begin < count; begin += order_threads) {
    const int here = static_cast<int>(min(static_cast<std::int64_t>(order_threads), count - begin));
    if (static_cast<int>(threadIdx.x) < here) fetched[threadIdx.x] = values[begin + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < here; ++i) total += fetched[i];
    __syncthreads();
  }
  if (threadIdx.x == 0) *sum = total;
}

__global__ void clip(const double* sums, std::int64_t count, float max_norm,
                     const float* loss_scale, float* out) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += sums[i];
  const double scale = loss_scale == nullptr ? 1.0 : static_cast<double>(*loss_scale);
  const double norm = sqrt(sum) / scale;
  const bool finite = isfinite(norm);
  double factor = 1;
  // As std::min: a norm that is not a number leaves 1.
  if (max_norm > 0) {
    const double ratio = static_cast<double>(max_norm) / (norm + 1e-6);
    if (ratio < factor) factor = ratio;
  }
  factor /= scale;
  // Not-a-number has one bit pattern here and another on the CPU; a log compares equal with this one.
  out[0] = isnan(norm) ? __uint_as_float(0x7fc00000u) : static_cast<float>(norm);
  out[1] = finite ? static_cast<float>(factor) : 0.0f;
  out[2] = finite ? 1.0f : 0.0f;
  out[3] = 0.0f;
}

struct AdamwConstants {
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float epsilon;
  float weight_decay;
};

template <int N, class G, class W>
struct AdamwElements {
  float* masters;
  float* moments1;
  float* moments2;
  const G* gradients;
  W* weights;
  const float* step_values;
  const float* clip_values;
  AdamwConstants constants;

  __device__ void operator()(std::int64_t, std::int64_t i) const {
    if (clip_values[2] == 0.0f) return;
    const float factor = clip_values[1];
    const float learning_rate = step_values[0];
    const float correction2 = step_values[2];
    const float decay = -(learning_rate * constants.weight_decay);
    const float step = -(learning_rate / step_values[1]);
    float master[N];
    float moment1[N];
    float moment2[N];
    float gradient[N];
    load<N>(masters + i, master);
    load<N>(moments1 + i, moment1);
    load<N>(moments2 + i, moment2);
    load<N>(gradients + i, gradient);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float g = gradient[j] * factor;
      moment1[j] = fmaf(constants.beta1, moment1[j], constants.rest1 * g);
      moment2[j] = fmaf(constants.beta2, moment2[j], constants.rest2 * g * g);
      master[j] = fmaf(decay, master[j], master[j]);
      const float denominator = sqrtf(moment2[j]) / correction2 + constants.epsilon;
      master[j] = fmaf(step, moment1[j] / denominator, master[j]);
    }
    store<N>(masters + i, master);
    store<N>(moments1 + i, moment1);
    store<N>(moments2 + i, moment2);
    if (weights != nullptr) store<N>(weights + i, master);
  }
};

template <int N>
__device__ void store_high_halves(__nv_bfloat16* to, const std::uint32_t (&from)[N]) {
  if constexpr (N == 1) {
    *reinterpret_cast<std::uint16_t*>(to) = high_half(from[0]);
  } else {
    Pack<std::uint32_t, N / 2> pairs;
#pragma unroll
    for (int i = 0; i < N; i += 2) pairs.values[i / 2] = __byte_perm(from[i], from[i + 1], 0x7632);
    *reinterpret_cast<Pack<std::uint32_t, N / 2>*>(to) = pairs;
  }
}

/// Of bf16 alone; values as on the CPU, bit by bit.
template <int N, class G>
struct AdamwAtRandomElements {
  __nv_bfloat16* weights;
  __nv_bfloat16* moments1;
  __nv_bfloat16* moments2;
  const G* gradients;
  const float* step_values;
  const float* clip_values;
  AdamwConstants constants;
  AdamwAtRandomArgs args;  // for the random bits
  std::int64_t begin;      // of the elements that the kernel takes

  __device__ void operator()(std::int64_t, std::int64_t at) const {
    if (clip_values[2] == 0.0f) return;
    const float factor = clip_values[1];
    const float decay = -(step_values[0] * constants.weight_decay);
    const float step = -(step_values[0] / step_values[1]);
    const float reciprocal2 = 1.0f / step_values[2];
    const std::uint32_t update = update_number(step_values);
    const std::int64_t i = begin + at;
    float weight[N];
    float moment1[N];
    float moment2[N];
    float gradient[N];
    load<N>(weights + i, weight);
    load<N>(moments1 + i, moment1);
    load<N>(moments2 + i, moment2);
    load<N>(gradients + i, gradient);
    std::uint32_t rounded[3][N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float g = gradient[j] * factor;
      moment1[j] = fmaf(constants.beta1, moment1[j], constants.rest1 * g);
      moment2[j] = fmaf(constants.beta2, moment2[j], constants.rest2 * g * g);
      weight[j] = fmaf(decay, weight[j], weight[j]);
      const float denominator = sqrtf(moment2[j]) * reciprocal2 + constants.epsilon;
      weight[j] = fmaf(step, moment1[j] / denominator, weight[j]);
    }
    // Packs begin at multiples of their size, so that no block of bits is cut.
    constexpr int in_block = elements_of_rounding_block;
    static_assert(N == 1 || N % in_block == 0);
#pragma unroll
    for (int j = 0; j < N; j += in_block) {
      const std::int64_t element = args.first_element + i + j;
      const auto bits = rounding_bits(args, update, element / in_block);
#pragma unroll
      for (int k = 0; k < (N == 1 ? 1 : in_block); ++k) {
        const RoundedElement element_rounded = round_at_random(
            weight[j + k], moment1[j + k], moment2[j + k], bits[N == 1 ? element % in_block : k]);
        rounded[0][j + k] = element_rounded.weight;
        rounded[1][j + k] = element_rounded.moment1;
        rounded[2][j + k] = element_rounded.moment2;
      }
    }
    store_high_halves<N>(weights + i, rounded[0]);
    store_high_halves<N>(moments1 + i, rounded[1]);
    store_high_halves<N>(moments2 + i, rounded[2]);
  }
};

AdamwConstants constants_of(double beta1, double beta2, float epsilon, float weight_decay) {
  return {.beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(beta2),
          .rest1 = static_cast<float>(1.0 - beta1),
          .rest2 = static_cast<float>(1.0 - beta2),
          .epsilon = epsilon,
          .weight_decay = weight_decay};
}

/// How many of the first elements can be taken in packs.
std::int64_t elements_in_packs(std::int64_t elements, std::initializer_list<TensorView> vectors) {
  const std::int64_t in_packs = elements / pack_elements * pack_elements;
  for (const TensorView& view : vectors)
    if (!packs({vector(view.data, view.type, in_packs)})) return 0;
  return in_packs;
}

}  // namespace

void sum_in_order(const TensorView& values, const TensorView& sum, bool accumulate,
                  device::Queue& queue) {
  sum_in_order<<<1, order_threads, 0, stream_of(queue)>>>(
      values.as<double>(), values.element_count(), sum.as<double>(), accumulate);
}

void sum_squares(const SumSquaresArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t elements = args.x.element_count();
  const std::int64_t blocks = (elements + sum_squares_block - 1) / sum_squares_block;
  UK_CHECK(bytes_of(args.scratch.type, args.scratch.element_count()) >=
               sum_squares_scratch_bytes(elements),
           "sum_squares: too little scratch");
  if (blocks > 0) {
    const std::int64_t grid =
        (blocks + blocks_of_elements_per_block - 1) / blocks_of_elements_per_block;
    with_storage(args.x.type, [&](auto tag) {
      using T = decltype(tag);
      sum_squares_of_blocks<T>
          <<<static_cast<unsigned>(grid), square_threads, 0, stream_of(queue)>>>(
              args.x.as<T>(), elements, args.scratch.as<double>());
    });
  }
  sum_in_order(vector(args.scratch.data, DType::f64, blocks), args.sum, args.accumulate, queue);
}

void clip_factor(const ClipFactorArgs& args, device::Queue& queue) {
  check_shapes(args);
  clip<<<1, 1, 0, stream_of(queue)>>>(
      args.sums.as<double>(), args.sums.element_count(), args.max_norm,
      args.loss_scale.data == nullptr ? nullptr : args.loss_scale.as<float>(),
      args.out.as<float>());
}

void adamw(const AdamwArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t elements = args.master.element_count();
  const AdamwConstants constants =
      constants_of(args.beta1, args.beta2, args.epsilon, args.weight_decay);
  const std::int64_t in_packs = elements_in_packs(
      elements, {args.master, args.moment1, args.moment2, args.gradient, args.weight});
  const DType weight_type = args.weight.data != nullptr ? args.weight.type : DType::f32;
  with_storage(args.gradient.type, [&](auto gradient_tag) {
    with_storage(weight_type, [&](auto weight_tag) {
      using G = decltype(gradient_tag);
      using W = decltype(weight_tag);
      const auto run = [&](auto n, std::int64_t begin, std::int64_t end) {
        map<n>(1, end - begin, queue,
               AdamwElements<n, G, W>{
                   args.master.as<float>() + begin, args.moment1.as<float>() + begin,
                   args.moment2.as<float>() + begin, args.gradient.as<G>() + begin,
                   args.weight.data != nullptr ? args.weight.as<W>() + begin : nullptr,
                   args.step_values.as<float>(), args.clip.as<float>(), constants});
      };
      run(std::integral_constant<int, pack_elements>{}, 0, in_packs);
      run(std::integral_constant<int, 1>{}, in_packs, elements);
    });
  });
}

void adamw_at_random(const AdamwAtRandomArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t elements = args.weight.element_count();
  const AdamwConstants constants =
      constants_of(args.beta1, args.beta2, args.epsilon, args.weight_decay);
  const std::int64_t in_packs =
      elements_in_packs(elements, {args.weight, args.moment1, args.moment2, args.gradient});
  with_storage(args.gradient.type, [&](auto gradient_tag) {
    using G = decltype(gradient_tag);
    const auto run = [&](auto n, std::int64_t begin, std::int64_t end) {
      map<n>(1, end - begin, queue,
             AdamwAtRandomElements<n, G>{
                 args.weight.as<__nv_bfloat16>(), args.moment1.as<__nv_bfloat16>(),
                 args.moment2.as<__nv_bfloat16>(), args.gradient.as<G>(),
                 args.step_values.as<float>(), args.clip.as<float>(), constants, args, begin});
    };
    run(std::integral_constant<int, pack_elements>{}, 0, in_packs);
    run(std::integral_constant<int, 1>{}, in_packs, elements);
  });
}

}  // namespace underkeel::kernels::cuda
