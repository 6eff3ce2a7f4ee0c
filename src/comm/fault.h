#pragma once
// A test hook: delays, fails or kills one rank at a named point of a run, as the environment
// variable UNDERKEEL_FAULT asks.
//
//   UNDERKEEL_FAULT="rank=1 phase=save step=2 delay=600s"   sleep there, deaf to everything
//   UNDERKEEL_FAULT="rank=1 phase=save step=2 kill"         SIGKILL (ranks that are threads: all)
//   UNDERKEEL_FAULT="rank=0 phase=update fail"              return an error, code io
//   UNDERKEEL_FAULT="rank=0 phase=forward step=20 layer=1 doublings=20"
//                                       from step 20 on the layer's output is doubled so often
//
// `step` may be left out: then every step counts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace underkeel::comm {

struct Fault {
  enum class Action { delay, kill, fail, distort };

  int rank = 0;
  std::string phase;
  std::optional<std::int64_t> step;
  Action action = Action::fail;
  double delay_s = 0;
  int layer = -1;
  int doublings = 0;
};

/// What a forward pass is hurt by: the output of one layer doubled `doublings` times.
struct Distortion {
  int layer = -1;
  int doublings = 0;
};

Result<Fault> parse_fault(std::string_view text);

/// Where a run may be hurt: the loop calls it where it enters `phase`. Does nothing unless the
/// variable, read once, names this rank, phase and step.
/// Errors: io when the action is `fail`; bad_config when the variable cannot be read.
Result<void> fault_point(int rank, std::string_view phase, std::int64_t step);

/// The distortion that the variable asks of this rank's forward passes in `step`, if any.
Result<std::optional<Distortion>> forward_distortion(int rank, std::int64_t step);
std::optional<Distortion> distortion_of(const Fault& fault, int rank, std::int64_t step);

/// What fault_point() does with a fault that was already read.
Result<void> strike(const Fault& fault, int rank, std::string_view phase, std::int64_t step);

}  // namespace underkeel::comm
