#pragma once
// The disk of the output folder, as `train` asks for it before step 1: what is free there, what a run wants of it, and
// what helps where both memory and disk are short.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint_space.h"
#include "planned.h"
#include "planner/fit.h"

namespace underkeel::apps {

/// What is free where a question's run writes, and how far it has come there.
struct OutputDisk {
  std::optional<std::int64_t> free_bytes;  // none: not known
  std::string source;                      // of that figure
  std::int64_t standing_count = 0;         // checkpoints of a run that goes on
  std::int64_t done_steps = 0;             // of that run
};

/// Of a described machine what its file says; else what is free here now, beside what stands in the output folder.
Result<OutputDisk> output_disk(const PlanWords& words, Asked& asked);

/// What `run`, one of the question's with other settings, wants of it.
Result<io::SpaceNeed> need_on(const OutputDisk& disk, const Asked& asked,
                              const spec::RunConfig& run);

/// Changes of `advice`, each with what the disk asks for besides; none of those to which it has no answer. What is named was
/// read again.
std::vector<render::Suggestion> cures_of_both(const Asked& asked, const OutputDisk& disk,
                                              const std::vector<planner::Shortage>& shortages,
                                              const planner::Advice& advice);

/// One refusal of two: of the plan for its memory, and of its disk. `cures` are those of both; without any, each has its own.
Error refuse_both(Error memory, const Error& disk, const std::vector<render::Suggestion>& cures);

}  // namespace underkeel::apps
