#pragma once
// The value of a Result, or an exception that GoogleTest reports with the error's text.

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace underkeel::test {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_text(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace underkeel::test
