#include "time_text.h"

#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::apps {

std::string time_text(double seconds) {
  // Sums of times differ in their last digits; less than this is not worth a number.
  constexpr double shortest_s = 1e-6;
  constexpr double minute_s = 60;
  constexpr double hour_s = 3600;
  constexpr double most = 90;  // of a unit, before the next one
  constexpr double digits_end = 1000;
  if (seconds < shortest_s) return "0 s";
  if (seconds < most) return fmt::format("{:.3g} s", seconds);
  if (seconds < most * minute_s) return fmt::format("{:.3g} min", seconds / minute_s);
  const double hours = seconds / hour_s;
  return hours < digits_end ? fmt::format("{:.3g} h", hours)
                            : format_count(std::llround(hours)) + " h";
}

}  // namespace underkeel::apps
