#include "base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace underkeel {

std::string format_bytes(std::int64_t size_bytes) {
  if (size_bytes < 0) return "-" + format_bytes(-size_bytes);
  if (size_bytes < kibibyte) return fmt::format("{} B", size_bytes);
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(size_bytes) / static_cast<double>(kibibyte);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) {
    value /= static_cast<double>(kibibyte);
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, units[unit]);
}

std::string format_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count < 0 ? -count : count);
  for (std::int64_t at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return count < 0 ? "-" + digits : digits;
}

Result<std::int64_t> parse_bytes(std::string_view text, std::string_view key) {
  const auto bad = [&] {
    return fail(ErrorCode::bad_config, fmt::format("`{}` is not a size in bytes", text),
                std::string(key), "write a number and a unit, such as 80GiB, 1.5GB or 512MiB");
  };
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || !(number >= 0)) return bad();
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  while (!unit.empty() && unit.back() == ' ') unit.remove_suffix(1);
  struct Unit {
    std::string_view name;
    double size_bytes;
  };
  constexpr std::array units = {Unit{"", 1},         Unit{"B", 1},        Unit{"KB", 1e3},
                                Unit{"MB", 1e6},     Unit{"GB", 1e9},     Unit{"TB", 1e12},
                                Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                                Unit{"TiB", 0x1p40}};
  const auto is_same_letter = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (const Unit& known : units) {
    if (!std::equal(known.name.begin(), known.name.end(), unit.begin(), unit.end(), is_same_letter))
      continue;
    const double size_bytes = std::round(number * known.size_bytes);
    if (!(size_bytes < 9e18)) return bad();
    return static_cast<std::int64_t>(size_bytes);
  }
  return bad();
}

bool lacks_unit(std::string_view text, std::int64_t size_bytes) {
  return size_bytes < mebibyte &&
         text.find_first_not_of("0123456789.+eE ") == std::string_view::npos;
}

}  // namespace underkeel
