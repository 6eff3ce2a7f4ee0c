#pragma once
// What our own engine makes of the files: its reader's refusals and notes, and its plan.

#include "doctor/disk.h"

namespace underkeel::doctor {

/// Adds findings and fills in Diagnosis::underkeel.
void look_at_own_engine(const Question& question, const Inputs& inputs, const DiskNeed& disk_need,
                        Diagnosis& diagnosis);

}  // namespace underkeel::doctor
