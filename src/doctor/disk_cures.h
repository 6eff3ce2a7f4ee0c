#pragma once
// What a run writes against the free disk, in words: what stands there, and changes with which it fits. Every change has its
// own need, and is only offered where that fits.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"
#include "doctor/inputs.h"
#include "io/checkpoint_space.h"

namespace underkeel::doctor {

/// The same run with a change of what it writes.
struct DiskChange {
  io::SpaceNeed need;
  std::string words;         // "save_only_model: true"
  bool leaves_state = true;  // else there is nothing to resume from
};

/// Without a save before the end.
DiskChange final_model_alone(io::SpaceNeed need);

/// Of the model that is exported in 16 bit after the run in question; 0 where no export is asked about, or where the disk
/// has not the room for it alone, which is told by itself.
std::int64_t exported_bytes(const Inputs& inputs);

/// A verdict on a disk, for either engine.
struct DiskAnswer {
  std::string id;
  Severity severity = Severity::info;
  std::vector<Slot> slots;
  bool fits = true;
};

/// Findings of the engine whose ids begin with `engine` ("underkeel", "deepspeed"): ENGINE-disk where nothing is known of
/// the disk, ENGINE-disk-fits, ENGINE-disk-does-not-fit; for either, disk-fails-by-export where only the export after the
/// run has no room, and final-folder... of a run that saves nothing. Of `changes` those are told with which it fits, the
/// first ones first.
DiskAnswer judge_disk(std::string_view engine, const io::SpaceNeed& need,
                      std::optional<std::int64_t> free_bytes,
                      const std::vector<DiskChange>& changes);

/// ", and the final folder of 13.5 GB": what is written after the last checkpoint, in words that a finding may hold; "" for
/// nothing.
std::string disk_tail(const io::SpaceNeed& need);

}  // namespace underkeel::doctor
