#pragma once
// A diagnosis that also asks whether a run's checkpoints fit the disk of a described machine. How a run saves is not
// doctor's to know: whoever asks brings it.

#include <functional>

#include "base/result.h"
#include "doctor/doctor.h"
#include "io/checkpoint_space.h"
#include "spec/run_config.h"

namespace underkeel::doctor {

/// What a run of ours that has not begun wants of its disk.
using DiskNeed =
    std::function<Result<io::SpaceNeed>(const spec::ModelSpec&, const spec::RunConfig&)>;

Diagnosis diagnose(const Question& question, const DiskNeed& disk_need);
/// For who has gathered already: `findings` are those of gather().
Diagnosis diagnose(const Question& question, Inputs inputs, std::vector<Finding> findings,
                   const DiskNeed& disk_need);

}  // namespace underkeel::doctor
