#pragma once
// UK_CHECK: our own mistakes. On in every build; prints where and why, then aborts (exit 134).

#include <string>
#include <string_view>

namespace underkeel {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace underkeel

/// UK_CHECK(condition, message): `message` is evaluated only when the condition is false.
#define UK_CHECK(condition, message)                                                   \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::underkeel::check_failed(__FILE__, __LINE__, #condition, std::string(message)); \
  } while (false)
