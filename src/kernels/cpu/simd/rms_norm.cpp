#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/facts/facts.h"
#include "kernels/shapes.h"

namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET {

namespace {

/// Sum of f(i, left) over [0, count) in steps of a vector, in four interleaved sums: short chains
/// are faster and round less.
template <class F>
float sum_vectors(std::int64_t count, const F& f) {
  Vec sums[4] = {zero(), zero(), zero(), zero()};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (int part = 0; part < 4; ++part)
      sums[part] = f(i + part * lanes, std::int64_t{lanes}, sums[part]);
  for (; i < count; i += lanes) sums[0] = f(i, count - i, sums[0]);
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <class T>
void normalize(const T* x, const T* weight, T* y, float* rstd, std::int64_t width, float epsilon) {
  const float squares = sum_vectors(width, [&](std::int64_t i, std::int64_t left, Vec sum) {
    const Vec value = load_up_to(x + i, left);
    return fma(value, value, sum);
  });
  const double mean = static_cast<double>(squares) / static_cast<double>(width);
  const auto factor = static_cast<float>(1.0 / __builtin_sqrt(mean + static_cast<double>(epsilon)));
  *rstd = factor;
  for (std::int64_t i = 0; i < width; i += lanes) {
    const std::int64_t left = width - i;
    const Vec normalized = round_to_storage<T>(load_up_to(x + i, left) * broadcast(factor));
    store_up_to(y + i, normalized * load_up_to(weight + i, left), left);
  }
}

/// dx of one group, its part of the weight's gradient into `dweight` (f32), and y unless that is null.
template <class T>
void differentiate(const T* x, const T* weight, const T* dy, T* dx, T* y, float* dweight,
                   float rstd, std::int64_t width, bool accumulate_dx) {
  const float dot = sum_vectors(width, [&](std::int64_t i, std::int64_t left, Vec sum) {
    const Vec scaled = load_up_to(weight + i, left) * load_up_to(dy + i, left);
    return fma(scaled, load_up_to(x + i, left), sum);
  });
  const Vec factor = broadcast(rstd);
  // The mean of weight * dy * normalised x.
  const Vec mean = broadcast(dot * rstd / static_cast<float>(width));
  for (std::int64_t i = 0; i < width; i += lanes) {
    const std::int64_t left = width - i;
    const Vec gradient = load_up_to(dy + i, left);
    const Vec normalized = load_up_to(x + i, left) * factor;
    Vec result = negative_fma(normalized, mean, load_up_to(weight + i, left) * gradient) * factor;
    if (accumulate_dx) result = result + load_up_to(dx + i, left);
    store_up_to(dx + i, result, left);
    store_up_to(dweight + i, fma(gradient, normalized, load_up_to(dweight + i, left)), left);
    if (y != nullptr)
      store_up_to(y + i, round_to_storage<T>(normalized) * load_up_to(weight + i, left), left);
  }
}

}  // namespace

void rms_norm_forward(const RmsNormForwardArgs& args, device::Queue& queue) {
  const std::int64_t width = check_shapes(args);
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    for_row_tiles(
        queue.pool(), args.x.rows, args.x.columns, [&](std::int64_t first, std::int64_t end) {
          for (std::int64_t row = first; row < end; ++row)
            for (std::int64_t group = 0; group < args.groups; ++group)
              normalize(row_of<T>(args.x, row) + group * width, args.weight.as<T>(),
                        row_of<T>(args.y, row) + group * width,
                        args.rstd.as<float>() + row * args.groups + group, width, args.epsilon);
        });
  });
}

void rms_norm_backward(const RmsNormBackwardArgs& args, device::Queue& queue) {
  const std::int64_t width = check_shapes(args);
  const std::int64_t blocks = (args.x.rows + rms_norm_row_block - 1) / rms_norm_row_block;
  auto* partial = args.scratch.as<float>();
  with_storage(args.x.type, [&](auto tag) {
    using T = decltype(tag);
    queue.pool().parallel_for(blocks, [&](std::int64_t block) {
      float* dweight = partial + block * width;
      for (std::int64_t i = 0; i < width; ++i) dweight[i] = 0;
      const std::int64_t end = min_of(args.x.rows, (block + 1) * rms_norm_row_block);
      for (std::int64_t row = block * rms_norm_row_block; row < end; ++row)
        for (std::int64_t group = 0; group < args.groups; ++group)
          differentiate(
              row_of<T>(args.x, row) + group * width, args.weight.as<T>(),
              row_of<T>(args.dy, row) + group * width, row_of<T>(args.dx, row) + group * width,
              args.y.data != nullptr ? row_of<T>(args.y, row) + group * width : nullptr, dweight,
              args.rstd.as<float>()[row * args.groups + group], width, args.accumulate_dx);
    });
  });
  with_storage(args.dweight.type, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t pieces = (width + lanes - 1) / lanes;
    queue.pool().parallel_for((pieces + 15) / 16, [&](std::int64_t tile) {
      for (std::int64_t piece = tile * 16; piece < min_of(pieces, tile * 16 + 16); ++piece) {
        const std::int64_t left = width - piece * lanes;
        T* dweight = args.dweight.as<T>() + piece * lanes;
        Vec sum = args.accumulate_dweight ? load_up_to(dweight, left) : zero();
        for (std::int64_t block = 0; block < blocks; ++block)
          sum = sum + load_up_to(partial + block * width + piece * lanes, left);
        store_up_to(dweight, sum, left);
      }
    });
  });
}

}  // namespace underkeel::kernels::cpu::UNDERKEEL_INSTRUCTION_SET
