#include "doctor/disk_cures.h"

#include <fmt/format.h>

#include "doctor/finding.h"

namespace underkeel::doctor {
namespace {

std::string taken(const io::SpaceNeed& need) {
  return amount(static_cast<double>(io::needed_bytes(need)));
}

}  // namespace

std::string disk_cures(const io::SpaceNeed& need, std::int64_t free_bytes,
                       const std::optional<WeightsOnly>& weights_only) {
  std::string cures;
  io::SpaceNeed fewer = need;
  fewer.save_total_limit = io::largest_limit_that_fits(need, free_bytes);
  if (fewer.save_total_limit > 0)
    cures = fmt::format("save_total_limit: {} ({})", fewer.save_total_limit, taken(fewer));
  if (weights_only && weights_only->need.checkpoint_bytes < need.checkpoint_bytes) {
    io::SpaceNeed narrow = weights_only->need;
    std::string words = weights_only->words;
    bool fits = io::needed_bytes(narrow) <= free_bytes;
    if (!fits) {
      narrow.save_total_limit = io::largest_limit_that_fits(narrow, free_bytes);
      fits = narrow.save_total_limit > 0;
      words += fmt::format(", save_total_limit: {}", narrow.save_total_limit);
    }
    if (fits)
      cures += fmt::format("{}{} ({}, @[disk.nothing-to-resume])", cures.empty() ? "" : "; ", words,
                           taken(narrow));
  }
  return cures.empty() ? "@disk.no-limit" : cures;
}

}  // namespace underkeel::doctor
