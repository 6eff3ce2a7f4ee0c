#pragma once
// What a run wants of its disk, as `train` asks for it before step 1: for `plan` and `doctor`.

#include <optional>

#include "io/checkpoint_space.h"
#include "run_length.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::apps {

/// Checkpoints and the final folder of a run in an empty output folder. A run that saves nothing needs only its final
/// folder. Where the number of saves is not known as many are counted as stand there at once, at least one.
Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const std::optional<RunLength>& length);

}  // namespace underkeel::apps
