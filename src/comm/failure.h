#pragma once
// The errors that every transport reports, in one wording.

#include <span>
#include <string_view>

#include "base/error.h"

namespace underkeel::comm {

struct MissingPeers {
  std::span<const int> ranks;  // who did not come, ascending
  int rank = 0;                // who waited
  int world_size = 1;
  std::string_view phase;
  std::string_view call;  // "all_gather", ...
  double waited_s = 0;    // since the last sign of the missing
};

/// peer_lost: "rank 1 did not arrive within 20.0 s".
Error did_not_arrive(const MissingPeers& missing);
/// peer_lost: "rank 1 has left the group".
Error has_left(const MissingPeers& missing);
/// What the others see when `rank` aborts with `reason`.
Error gave_up(int rank, const Error& reason);

}  // namespace underkeel::comm
