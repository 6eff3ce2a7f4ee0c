// copy, add, fill, bias: one pass over elements, 16 bytes a thread where alignment allows.

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

template <int N, class From, class To>
struct CopyElements {
  Rows<From> from;
  Rows<To> to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float values[N];
    load<N>(from.at(row, column), values);
    store<N>(to.at(row, column), values);
  }
};

template <int N, class From, class Into>
struct AddElements {
  Rows<From> from;
  Rows<Into> into;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float values[N];
    float sums[N];
    load<N>(from.at(row, column), values);
    load<N>(into.at(row, column), sums);
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += values[i];
    store<N>(into.at(row, column), sums);
  }
};

template <int N, class T>
struct FillElements {
  Rows<T> to;
  float value;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float values[N];
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = value;
    store<N>(to.at(row, column), values);
  }
};

template <class T>
struct FillPlain {
  Rows<T> to;
  T value;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    *to.at(row, column) = value;
  }
};

template <class C, class B>
struct AddBias {
  Rows<C> c;
  const B* bias;
  bool clear;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const float before = clear ? 0.0f : to_float(*c.at(row, column));
    *c.at(row, column) = from_float<C>(before + to_float(bias[column]));
  }
};

/// The view as one row, when no view of the operation has gaps.
TensorView flat(TensorView view, bool gapless) {
  if (!gapless || view.rows <= 1) return view;
  view.columns = view.row_stride = view.element_count();
  view.rows = view.columns == 0 ? 0 : 1;
  return view;
}

/// Calls f(width, types...) for two views that may differ in type.
template <class F>
void with_pair(const TensorView& a, const TensorView& b, F&& f) {
  with_storage(a.type, [&](auto a_tag) {
    with_storage(b.type, [&](auto b_tag) {
      with_width(packs({a, b}), [&](auto n) { f(n, a_tag, b_tag); });
    });
  });
}

}  // namespace

void copy(const CopyArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless({args.from, args.to});
  const TensorView from = flat(args.from, gapless);
  const TensorView to = flat(args.to, gapless);
  with_pair(from, to, [&](auto n, auto from_tag, auto to_tag) {
    using From = decltype(from_tag);
    using To = decltype(to_tag);
    map<n>(from.rows, from.columns, queue,
           CopyElements<n, From, To>{rows_of<From>(from), rows_of<To>(to)});
  });
}

void add(const AddArgs& args, device::Queue& queue) {
  check_shapes(args);
  const bool gapless = is_gapless({args.from, args.into});
  const TensorView from = flat(args.from, gapless);
  const TensorView into = flat(args.into, gapless);
  with_pair(from, into, [&](auto n, auto from_tag, auto into_tag) {
    using From = decltype(from_tag);
    using Into = decltype(into_tag);
    map<n>(from.rows, from.columns, queue,
           AddElements<n, From, Into>{rows_of<From>(from), rows_of<Into>(into)});
  });
}

void fill(const FillArgs& args, device::Queue& queue) {
  check_shapes(args);
  const TensorView to = flat(args.to, is_gapless({args.to}));
  if (to.type == DType::f64)
    return map<1>(to.rows, to.columns, queue, FillPlain<double>{rows_of<double>(to), args.value});
  if (to.type == DType::i32)
    return map<1>(
        to.rows, to.columns, queue,
        FillPlain<std::int32_t>{rows_of<std::int32_t>(to), static_cast<std::int32_t>(args.value)});
  with_storage(to.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({to}), [&](auto n) {
      map<n>(to.rows, to.columns, queue,
             FillElements<n, T>{rows_of<T>(to), static_cast<float>(args.value)});
    });
  });
}

void add_bias(const TensorView& c, const TensorView& bias, bool clear, device::Queue& queue) {
  with_storage(c.type, [&](auto c_tag) {
    with_storage(bias.type, [&](auto bias_tag) {
      using C = decltype(c_tag);
      using B = decltype(bias_tag);
      map<1>(c.rows, c.columns, queue, AddBias<C, B>{rows_of<C>(c), bias.as<B>(), clear});
    });
  });
}

}  // namespace underkeel::kernels::cuda
