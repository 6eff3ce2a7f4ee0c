// The table in double where the CPU uses double, so that it has the same bits; the rotation in place.

#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/facts/facts.h"
#include "kernels/rope_frequencies.h"
#include "kernels/rope_wavelength.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

constexpr int most_pairs = largest_head_width / 2;

/// Frequencies of all pairs, passed by value: at most 1 KiB.
struct PairFrequencies {
  float values[most_pairs];
};

__device__ inline void write_angle(const Rows<float>& cosines, const Rows<float>& sines,
                                   std::int64_t row, std::int64_t pair, std::int32_t position,
                                   float frequency, double scaling) {
  const auto angle = static_cast<double>(static_cast<float>(position) * frequency);
  double sine;
  double cosine;
  sincos(angle, &sine, &cosine);
  *cosines.at(row, pair) = static_cast<float>(cosine * scaling);
  *sines.at(row, pair) = static_cast<float>(sine * scaling);
}

struct FixedTable {
  const std::int32_t* positions;
  Rows<float> cosines;
  Rows<float> sines;
  PairFrequencies frequencies;
  double scaling;
  __device__ void operator()(std::int64_t row, std::int64_t pair) const {
    write_angle(cosines, sines, row, pair, positions[row], frequencies.values[pair], scaling);
  }
};

constexpr int dynamic_threads = 128;

/// One block a row: `dynamic` depends on the longest position of all rows, which is looked for anew by
/// every block. That is rows^2 reads of cached integers, for the few models that need it.
__global__ void __launch_bounds__(dynamic_threads)
    dynamic_table(const std::int32_t* positions, std::int64_t row_count, std::int64_t pairs,
                  Rows<float> cosines, Rows<float> sines, RopeConstants constants) {
  __shared__ std::int32_t longest_of_warp[dynamic_threads / warp_size];
  std::int32_t longest = 0;
  for (std::int64_t row = threadIdx.x; row < row_count; row += dynamic_threads)
    longest = max(longest, positions[row]);
  longest = __reduce_max_sync(whole_warp, longest);
  if (threadIdx.x % warp_size == 0) longest_of_warp[threadIdx.x / warp_size] = longest;
  __syncthreads();
  for (const std::int32_t other : longest_of_warp) longest = max(longest, other);
  const float base = raised_theta(constants, 2 * pairs, longest);
  const std::int64_t row = blockIdx.x;
  for (std::int64_t pair = threadIdx.x; pair < pairs; pair += dynamic_threads)
    write_angle(cosines, sines, row, pair, positions[row],
                1.0f / pair_wavelength(base, 2 * pairs, pair), constants.attention_scaling);
}

template <int N, class T>
struct Rotate {
  Rows<T> x;
  Rows<float> cosines;
  Rows<float> sines;
  std::uint32_t half;
  float sign;
  __device__ void operator()(std::int64_t row, std::int64_t position) const {
    const std::uint32_t head = static_cast<std::uint32_t>(position) / half;
    const std::uint32_t pair = static_cast<std::uint32_t>(position) - head * half;
    T* at = x.at(row, 2 * static_cast<std::int64_t>(head) * half + pair);
    float first[N];
    float second[N];
    float cosine[N];
    float sine[N];
    load<N>(at, first);
    load<N>(at + half, second);
    load<N>(cosines.at(row, pair), cosine);
    load<N>(sines.at(row, pair), sine);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float s = sine[i] * sign;
      const float turned = fmaf(-second[i], s, first[i] * cosine[i]);
      second[i] = fmaf(first[i], s, second[i] * cosine[i]);
      first[i] = turned;
    }
    store<N>(at, first);
    store<N>(at + half, second);
  }
};

}  // namespace

void rope_table(const RopeTableArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t rows = args.cosine.rows;
  const std::int64_t pairs = args.cosine.columns;
  UK_CHECK(pairs <= most_pairs, "rope: more pairs than the widest head has");
  if (rows == 0) return;
  if (args.constants.kind == RopeKind::dynamic) {
    dynamic_table<<<static_cast<unsigned>(rows), dynamic_threads, 0, stream_of(queue)>>>(
        args.positions.as<std::int32_t>(), rows, pairs, rows_of<float>(args.cosine),
        rows_of<float>(args.sine), args.constants);
    return;
  }
  FixedTable table{.positions = args.positions.as<std::int32_t>(),
                   .cosines = rows_of<float>(args.cosine),
                   .sines = rows_of<float>(args.sine),
                   .frequencies = {},
                   .scaling = args.constants.attention_scaling};
  const RopeFrequencies frequencies = rope_frequencies(args.constants, 2 * pairs, 0);
  for (std::int64_t pair = 0; pair < pairs; ++pair)
    table.frequencies.values[pair] = inverse_frequency(frequencies, pair);
  map<1>(rows, pairs, queue, table);
}

void rope_apply(const RopeApplyArgs& args, device::Queue& queue) {
  check_shapes(args);
  const std::int64_t half = args.head_width / 2;
  const std::int64_t heads = args.x.columns / args.head_width;
  TensorView first_half = args.x;  // both halves of every head are to be read in packs
  first_half.columns = half;
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({first_half, args.cosine, args.sine}), [&](auto n) {
      map<n>(
          args.x.rows, heads * half, queue,
          Rotate<n, T>{rows_of<T>(args.x), rows_of<float>(args.cosine), rows_of<float>(args.sine),
                       static_cast<std::uint32_t>(half), args.inverse ? -1.0f : 1.0f});
    });
  });
}

}  // namespace underkeel::kernels::cuda
