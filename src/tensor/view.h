#pragma once
// A non-owning view of rows of elements. Everything a kernel touches is a matrix (rows, columns)
// or, with one row, a vector.

#include <cstdint>

#include "tensor/dtype.h"

namespace underkeel {

struct TensorView {
  void* data = nullptr;
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;  // in elements; at least `columns`

  std::int64_t element_count() const { return rows * columns; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

inline TensorView matrix(void* data, DType type, std::int64_t rows, std::int64_t columns) {
  return {data, type, rows, columns, columns};
}
inline TensorView vector(void* data, DType type, std::int64_t element_count) {
  return {data, type, 1, element_count, element_count};
}

}  // namespace underkeel
