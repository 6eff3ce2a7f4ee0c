#pragma once
// Whether what our own engine writes fits the disk of a described machine, as `plan` and `train` ask.

#include <optional>
#include <string>
#include <vector>

#include "doctor/disk.h"
#include "doctor/forecast.h"

namespace underkeel::doctor {

/// What a run of ours writes, and the words with which it fits the free disk.
struct OwnDisk {
  std::int64_t needed_bytes = 0;  // with the words
  std::int64_t free_bytes = 0;
  std::vector<std::string> words;  // none: it fits as it is, or nothing does
  std::int64_t save_total_limit = 0;
  Saving saving = Saving::as_it_is;

  bool fits() const { return needed_bytes <= free_bytes; }
};
/// None where the free disk or what is written is not known.
std::optional<OwnDisk> own_disk(const Inputs& inputs, const spec::RunConfig& run,
                                const DiskNeed& disk_need);

/// What is written does not depend on what a row changes: where it is too much, each row cures that too, or fails.
void take_disk(const OwnDisk& disk, Alternative& row);

/// Tells what checkpoints, the final folder and an export after the run take, and fails the verdict where the free disk is
/// known and too small. `file` is where the run's settings stand.
void tell_own_disk(const Inputs& inputs, const spec::RunConfig& run, const std::string& file,
                   const DiskNeed& disk_need, Diagnosis& diagnosis);

}  // namespace underkeel::doctor
