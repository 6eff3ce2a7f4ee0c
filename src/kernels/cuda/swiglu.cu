#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/shapes.h"

namespace underkeel::kernels::cuda {

namespace {

/// For results that are rounded to 16 bits the quick functions are exact enough: within 2^-17, at arguments of 80.
template <class T>
__device__ inline float sigmoid(float x) {
  if constexpr (std::is_same_v<T, float>) return 1.0f / (1.0f + expf(-x));
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

template <int N, class T>
struct Forward {
  Rows<T> gates;
  Rows<T> ups;
  Rows<T> outs;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float gate[N];
    float up[N];
    load<N>(gates.at(row, column), gate);
    load<N>(ups.at(row, column), up);
#pragma unroll
    for (int i = 0; i < N; ++i) up[i] = gate[i] * sigmoid<T>(gate[i]) * up[i];
    store<N>(outs.at(row, column), up);
  }
};

template <int N, class T>
struct Backward {
  Rows<T> gates;
  Rows<T> ups;
  Rows<T> douts;
  Rows<T> dgates;
  Rows<T> dups;
  Rows<T> outs;  // none: null
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    float gate[N];
    float up[N];
    float dout[N];
    float out[N];
    load<N>(gates.at(row, column), gate);
    load<N>(ups.at(row, column), up);
    load<N>(douts.at(row, column), dout);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float s = sigmoid<T>(gate[i]);
      const float slope = s * fmaf(gate[i], 1.0f - s, 1.0f);
      out[i] = gate[i] * s * up[i];
      up[i] = dout[i] * up[i] * slope;
      dout[i] = dout[i] * (gate[i] * s);
    }
    store<N>(dgates.at(row, column), up);
    store<N>(dups.at(row, column), dout);
    if (outs.data != nullptr) store<N>(outs.at(row, column), out);
  }
};

}  // namespace

void swiglu_forward(const SwigluForwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  with_storage(args.gate.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({args.gate, args.up, args.out}), [&](auto n) {
      map<n>(args.gate.rows, args.gate.columns, queue,
             Forward<n, T>{rows_of<T>(args.gate), rows_of<T>(args.up), rows_of<T>(args.out)});
    });
  });
}

void swiglu_backward(const SwigluBackwardArgs& args, device::Queue& queue) {
  check_shapes(args);
  with_storage(args.gate.type, [&](auto tag) {
    using T = decltype(tag);
    with_width(packs({args.gate, args.up, args.dout, args.dgate, args.dup, args.out}), [&](auto n) {
      map<n>(args.gate.rows, args.gate.columns, queue,
             Backward<n, T>{rows_of<T>(args.gate), rows_of<T>(args.up), rows_of<T>(args.dout),
                            rows_of<T>(args.dgate), rows_of<T>(args.dup), rows_of<T>(args.out)});
    });
  });
}

}  // namespace underkeel::kernels::cuda
