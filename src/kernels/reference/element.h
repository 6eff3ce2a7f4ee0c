#pragma once
// One element of any type, read as double and written with one rounding.

#include <bit>
#include <cmath>

#include "base/check.h"
#include "tensor/view.h"

namespace underkeel::kernels::reference {

/// f32 such that a later rounding to fewer bits gives what rounding `value` at once would have
/// given: when inexact, truncated with the last bit set ("round to odd").
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool too_far = std::abs(static_cast<double>(nearest)) > std::abs(value);
  return std::bit_cast<float>((too_far ? bits - 1 : bits) | 1u);
}

/// `value` after storage in `type`: f32, bf16 or f16.
inline double round_to(DType type, double value) {
  switch (type) {
    case DType::bf16:
      return to_f32(to_bf16(round_to_odd(value)));
    case DType::f16:
      return to_f32(to_f16(round_to_odd(value)));
    default:
      return static_cast<float>(value);
  }
}

inline double load(const TensorView& view, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row * view.row_stride + column;
  switch (view.type) {
    case DType::f32:
      return view.as<float>()[index];
    case DType::bf16:
      return to_f32(view.as<BFloat16>()[index]);
    case DType::f16:
      return to_f32(view.as<Float16>()[index]);
    case DType::f64:
      return view.as<double>()[index];
    case DType::i32:
      return view.as<std::int32_t>()[index];
    default:
      UK_CHECK(false, "no such element type in a kernel");
  }
  return 0;
}

inline void store(const TensorView& view, std::int64_t row, std::int64_t column, double value) {
  const std::int64_t index = row * view.row_stride + column;
  switch (view.type) {
    case DType::f32:
      view.as<float>()[index] = static_cast<float>(value);
      return;
    case DType::bf16:
      view.as<BFloat16>()[index] = to_bf16(round_to_odd(value));
      return;
    case DType::f16:
      view.as<Float16>()[index] = to_f16(round_to_odd(value));
      return;
    case DType::f64:
      view.as<double>()[index] = value;
      return;
    case DType::i32:
      view.as<std::int32_t>()[index] = static_cast<std::int32_t>(value);
      return;
    default:
      UK_CHECK(false, "no such element type in a kernel");
  }
}

/// Vectors may come as one row of n or as n rows of one.
inline double load(const TensorView& vector_view, std::int64_t index) {
  return load({.data = vector_view.data, .type = vector_view.type}, 0, index);
}
inline void store(const TensorView& vector_view, std::int64_t index, double value) {
  store({.data = vector_view.data, .type = vector_view.type}, 0, index, value);
}

}  // namespace underkeel::kernels::reference
