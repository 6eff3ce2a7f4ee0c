#include "comm/failure.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace underkeel::comm {

namespace {

std::string names_of(std::span<const int> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

Error peer_lost(const MissingPeers& missing, std::string what) {
  const std::string_view phase = missing.phase.empty() ? "start-up" : missing.phase;
  return {.code = ErrorCode::peer_lost,
          .what = std::move(what),
          .where = fmt::format("{}, {} of rank {} of {}", phase, missing.call, missing.rank,
                               missing.world_size),
          .fix = fmt::format("look for the first error of {}; if it is only slow, raise the time "
                             "limit (ddp_timeout)",
                             names_of(missing.ranks))};
}

}  // namespace

Error did_not_arrive(const MissingPeers& missing) {
  return peer_lost(missing, fmt::format("{} did not arrive within {:.1f} s",
                                        names_of(missing.ranks), missing.waited_s));
}

Error has_left(const MissingPeers& missing) {
  return peer_lost(missing, fmt::format("{} {} left the group", names_of(missing.ranks),
                                        missing.ranks.size() == 1 ? "has" : "have"));
}

Error gave_up(int rank, const Error& reason) {
  Error error = reason;
  error.what = fmt::format("rank {} gave up: {}", rank, reason.what);
  return error;
}

}  // namespace underkeel::comm
