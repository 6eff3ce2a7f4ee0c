#pragma once
// Result<T>: a value, or an Error for the user's mistake or the world's failure.

#include <utility>

#include <tl/expected.hpp>

#include "base/error.h"

namespace underkeel {

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string where = {},
                                  std::string fix = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(where), std::move(fix)});
}

}  // namespace underkeel

#define UK_CONCAT_INNER(a, b) a##b
#define UK_CONCAT(a, b) UK_CONCAT_INNER(a, b)

/// UK_TRY(name, expression): declares `name` as the value, or returns the error.
#define UK_TRY(name, ...)                                                      \
  auto UK_CONCAT(uk_result_, __LINE__) = (__VA_ARGS__);                        \
  if (!UK_CONCAT(uk_result_, __LINE__))                                        \
    return tl::unexpected(std::move(UK_CONCAT(uk_result_, __LINE__)).error()); \
  auto name = std::move(*UK_CONCAT(uk_result_, __LINE__))

/// UK_TRY_VOID(expression): returns the error of a Result<void>, or of any Result whose value is
/// not wanted. May be nested in a lambda inside its own argument, hence the counter.
#define UK_TRY_VOID(...) UK_TRY_VOID_NAMED(UK_CONCAT(uk_result_, __COUNTER__), __VA_ARGS__)
#define UK_TRY_VOID_NAMED(name, ...)                           \
  do {                                                         \
    auto name = (__VA_ARGS__);                                 \
    if (!name) return tl::unexpected(std::move(name).error()); \
  } while (false)
