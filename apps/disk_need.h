#pragma once
// What a run that has not begun will want of its disk; `plan` and `doctor` hold it against a described machine.

#include "base/result.h"
#include "io/checkpoint_space.h"
#include "plan/plan.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::apps {

/// Checkpoints and the final folder of a run in an empty output folder. Without max_steps at least one is written.
/// A run that saves nothing needs only its final folder.
Result<io::SpaceNeed> disk_need(const spec::ModelSpec& model, const spec::RunConfig& run,
                                const plan::Plan& plan);

}  // namespace underkeel::apps
