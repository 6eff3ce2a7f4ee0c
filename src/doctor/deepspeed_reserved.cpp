// What torch's allocator reserves for the peaks of a forecast, and keeps of what came and went.

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "doctor/deepspeed_memory.h"

namespace underkeel::doctor {

Reserved reserved_bytes(const Forecast& forecast) {
  constexpr std::array<std::string_view, 5> passing = {"set_up", "update_copies", "gradient_checks",
                                                       "bucket_copy", "bucket_cast"};
  std::array<double, passing.size()> cached = {};
  Reserved reserved;
  for (std::size_t p = 0; p < phase_count; ++p) {
    const auto& holding = forecast.at(static_cast<Phase>(p), Space::device);
    if (!holding) continue;
    Range held;
    for (const Term& term : holding->terms) {
      if (term.name == "context" || term.name == "allocator") continue;
      held.low += term.low_bytes;
      held.high += term.high_bytes;
      const auto at = std::find(passing.begin(), passing.end(), term.name);
      if (at == passing.end()) continue;
      double& most = cached[static_cast<std::size_t>(at - passing.begin())];
      most = std::max(most, term.high_bytes);
    }
    reserved.peak = {std::max(reserved.peak.low, held.low),
                     std::max(reserved.peak.high, held.high)};
  }
  reserved.most = (1 + allocator_waste) * reserved.peak.high +
                  std::accumulate(cached.begin(), cached.end(), 0.0);
  return reserved;
}

}  // namespace underkeel::doctor
