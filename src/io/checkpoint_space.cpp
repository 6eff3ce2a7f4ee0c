#include "io/checkpoint_space.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::io {

namespace {

std::string size_text(std::int64_t size_bytes) {
  return fmt::format("{} bytes ({})", format_count(size_bytes), format_bytes(size_bytes));
}

}  // namespace

std::int64_t checkpoints_at_once(const SpaceNeed& need) {
  const std::int64_t all = need.standing_count + need.save_count;
  if (need.save_total_limit <= 0 || need.save_count == 0) return all;
  // More may stand there now than the limit allows; they go after the first save.
  return std::min(all, std::max(need.standing_count, need.save_total_limit) + 1);
}

std::int64_t needed_bytes(const SpaceNeed& need) {
  return (checkpoints_at_once(need) - need.standing_count) * need.checkpoint_bytes +
         need.export_bytes;
}

std::int64_t largest_limit_that_fits(SpaceNeed need, std::int64_t free_bytes) {
  const std::int64_t at_once = checkpoints_at_once(need);
  for (need.save_total_limit = at_once - 1; need.save_total_limit > 0; --need.save_total_limit)
    if (needed_bytes(need) <= free_bytes) return need.save_total_limit;
  return 0;
}

Result<void> check_space(const SpaceNeed& need, std::int64_t free_bytes,
                         const std::string& output) {
  const std::int64_t needed = needed_bytes(need);
  if (needed <= free_bytes) return {};
  const std::int64_t at_once = checkpoints_at_once(need);
  const std::int64_t limit = largest_limit_that_fits(need, free_bytes);
  std::string fix =
      fmt::format("free {}, save less often, or save weights only", size_text(needed - free_bytes));
  if (limit > 0) {
    SpaceNeed smaller = need;
    smaller.save_total_limit = limit;
    fix = fmt::format("save_total_limit: {} -> {}", limit, size_text(needed_bytes(smaller)));
  }
  return fail(
      ErrorCode::does_not_fit,
      fmt::format(
          "the checkpoints do not fit the disk: {} needed, {} free; {} checkpoints of {} "
          "stand there at once{}{}",
          size_text(needed), size_text(free_bytes), at_once, size_text(need.checkpoint_bytes),
          need.save_total_limit > 0
              ? fmt::format(" (save_total_limit {} and the one being written)",
                            need.save_total_limit)
              : " (no save_total_limit)",
          need.standing_count > 0 ? fmt::format(", {} of them now", need.standing_count) : ""),
      output, fix);
}

}  // namespace underkeel::io
