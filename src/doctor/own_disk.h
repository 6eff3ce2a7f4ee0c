#pragma once
// Whether what our own engine writes fits the disk of a described machine, as `plan` and `train` ask.

#include "doctor/disk.h"

namespace underkeel::doctor {

/// Tells what checkpoints, the final folder and an export after the run take, and fails the verdict where the free disk is
/// known and too small. `file` is where the run's settings stand.
void tell_own_disk(const Inputs& inputs, const spec::RunConfig& run, const std::string& file,
                   const DiskNeed& disk_need, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
