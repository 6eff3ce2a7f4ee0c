#pragma once
// What a run wants of its disk, as `train` asks for it before step 1: for `plan` and `doctor`.

#include <optional>

#include "io/checkpoint_space.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"
#include "train/run_length.h"

namespace underkeel::apps {

/// Checkpoints and the final folder of a run, as train::space_need() counts them, beside so many checkpoints that stand in
/// its output folder and go as new ones come.
Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const std::optional<train::RunLength>& length,
                                std::int64_t standing_count = 0);

}  // namespace underkeel::apps
