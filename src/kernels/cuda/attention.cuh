#pragma once
// What attention kernels share: which keys a query sees, and a tile of rows in shared memory.

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace underkeel::kernels::cuda {

/// Which pairs of query and key are visible: causal, inside a sequence, within the window.
struct Visibility {
  const std::int32_t* starts;  // (rows + 1), ascending
  std::int32_t row_count;
  std::int32_t window;  // 0: none

  /// Index of the first start that is after `row`; there is one, since the last start is row_count. Looked for
  /// from start `from` on, which is not after `row`, in doubling steps: batches have few sequences, and the
  /// rows of a block lie near its first one's start.
  __device__ std::int32_t next_start(std::int32_t row, std::int32_t from = 0) const {
    std::int32_t low = from;
    std::int32_t step = 1;
    while (low + step < row_count && starts[low + step] <= row) {
      low += step;
      step *= 2;
    }
    std::int32_t high = min(low + step, row_count);
    ++low;
    while (low < high) {
      const std::int32_t middle = (low + high) / 2;
      if (starts[middle] > row) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }
  __device__ std::int32_t first_key(std::int32_t query, std::int32_t from = 0) const {
    const std::int32_t begin = starts[next_start(query, from) - 1];
    return window > 0 ? max(begin, query - window + 1) : begin;
  }
  /// One past the last query that sees the key.
  __device__ std::int32_t query_end(std::int32_t key, std::int32_t from = 0) const {
    const std::int32_t end = starts[next_start(key, from)];
    return window > 0 && window < end - key ? key + window : end;
  }
};

/// Copies `count` rows of one head into shared memory as f32, times `factor`; rows past `row_end` are 0.
template <class T>
__device__ inline void load_tile(const Rows<const T>& from, std::int64_t first_row, int count,
                                 std::int64_t row_end, int width, float factor, float* to,
                                 int to_stride) {
  for (int i = static_cast<int>(threadIdx.x); i < count * width;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / width;
    const int column = i - row * width;
    to[row * to_stride + column] =
        first_row + row < row_end ? to_float(*from.at(first_row + row, column)) * factor : 0.0f;
  }
}

template <class T>
Rows<const T> head_of(const TensorView& view, std::int64_t head, std::int64_t width) {
  return {view.as<T>() + head * width, view.row_stride};
}

template <class T>
struct AttentionForward {
  Rows<const T> q;
  Rows<const T> k;
  Rows<const T> v;
  Rows<T> out;
  float* lse;  // (rows, H)
  Visibility visibility;
  int query_heads;
  int group;  // query heads of one key head
  int width;
  float scale;
};

template <class T>
struct AttentionBackward {
  Rows<const T> q;
  Rows<const T> k;
  Rows<const T> v;
  Rows<const T> out;
  Rows<const T> dout;
  Rows<T> dq;
  Rows<T> dk;
  Rows<T> dv;
  const float* lse;          // (rows, H)
  float* delta;              // (rows, H): dout . out
  Rows<const float> cosine;  // (rows, E/2), to turn dq and dk back by; none: null
  Rows<const float> sine;
  Visibility visibility;
  int query_heads;
  int group;
  int width;
  float scale;
};

/// Raises the kernel's limit of shared memory; most cards have more than the limit that a launch starts with.
inline void allow_shared_memory(const void* kernel, std::size_t size_bytes) {
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size_bytes));
  UK_CHECK(error == cudaSuccess,
           "attention: this GPU has too little shared memory for a head of this width");
}

/// Attention of 16-bit types on tensor cores. False, and nothing done, for widths or strides that they do not
/// take. The backward pass needs args.delta filled.
template <class T>
bool attend_on_tensor_cores(const AttentionForward<T>& args, const device::Queue& queue);
template <class T>
bool differentiate_on_tensor_cores(const AttentionBackward<T>& args, const device::Queue& queue);

/// The same with what Hopper has (attention_hopper_*.cu). False on other GPUs as well. The backward pass turns dq
/// and dk back itself where there is a cosine, which the others leave to rope_apply.
template <class T>
bool attend_on_hopper(const AttentionForward<T>& args, const device::Queue& queue);
template <class T>
bool differentiate_on_hopper(const AttentionBackward<T>& args, const device::Queue& queue);

}  // namespace underkeel::kernels::cuda
