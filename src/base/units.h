#pragma once
// Sizes in bytes, as text and back.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace underkeel {

constexpr std::int64_t kibibyte = 1024;
constexpr std::int64_t mebibyte = 1024 * kibibyte;
constexpr std::int64_t gibibyte = 1024 * mebibyte;

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return ceil_div(value, multiple) * multiple;
}

/// "91.4 GiB", "12.0 MiB", "512 B": three significant figures, binary units.
std::string format_bytes(std::int64_t size_bytes);
/// "1,234,567".
std::string format_count(std::int64_t count);
/// Reads "80GiB", "1.5 GB", "512mib", "4096". GB is 1e9, GiB is 2^30, in letters of either case. `key` names the
/// source in errors.
Result<std::int64_t> parse_bytes(std::string_view text, std::string_view key);
/// Whether a size that was parsed from `text` was meant in a larger unit: below 1 MiB without one. No budget of a run is so small.
bool lacks_unit(std::string_view text, std::int64_t size_bytes);

}  // namespace underkeel
