#pragma once
// Whether the checkpoints of a run fit the disk, asked before step 1. Arithmetic only, so that a
// plan for another machine can ask too.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace underkeel::io {

struct SpaceNeed {
  std::int64_t checkpoint_bytes = 0;
  std::int64_t save_count = 0;        // saves still to come
  std::int64_t save_total_limit = 0;  // 0: all are kept
  std::int64_t spared_count = 0;      // kept beside the newest whatever the limit: the best one
  std::int64_t standing_count = 0;    // complete checkpoints on the disk now
  std::int64_t export_bytes = 0;      // the final folder, beside the checkpoints that are kept
  std::int64_t afterwards_bytes = 0;  // what is exported once the run has ended, beside all that
  bool is_least = false;              // more saves may come, and all are kept
};

/// Checkpoints that the limit, the best one and the one being written come to; without a limit one.
std::int64_t most_at_once(const SpaceNeed& need);

/// Checkpoints on the disk when most are: the old ones go only after the new one is complete.
std::int64_t checkpoints_at_once(const SpaceNeed& need);
/// Checkpoints that are left once the last one has been written, when the final folder comes.
std::int64_t checkpoints_at_end(const SpaceNeed& need);
/// Bytes that must be free now: for the checkpoints of the fullest save, or for those that are left and the folders that
/// come after them, whichever is more. The two never stand there together.
std::int64_t needed_bytes(const SpaceNeed& need);

/// The largest save_total_limit below the present one that fits; 0 when not even 1 does.
std::int64_t largest_limit_that_fits(SpaceNeed need, std::int64_t free_bytes);

/// Words of the run file with which a need fits.
struct SpaceChange {
  std::vector<std::string> words;  // "save_total_limit=2"
  std::string remark;              // "nothing to resume from"; may be empty
  SpaceNeed need;
};
/// For a need that does not fit: the largest save_total_limit; weights only, with a limit where it takes one; no saves. Only
/// what fits.
std::vector<SpaceChange> changes_that_fit(const SpaceNeed& need, std::int64_t free_bytes);

/// Errors: does_not_fit, with needed and free bytes and the keys that make it fit, each with what is then needed: the
/// largest save_total_limit; weights only, with a limit where it takes one; no saves; or how much to free.
Result<void> check_space(const SpaceNeed& need, std::int64_t free_bytes, const std::string& output);

}  // namespace underkeel::io
