#pragma once
// The fastest settings of a run that fit its budgets: a grid of recompute levels, micro-batches with accumulation, ZeRO
// stages and gathers ahead, at the same ranks and global batch. Most of the grid is estimated; what is named was
// read and planned as the user will (docs/decisions/0024).

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/fit.h"
#include "planner/settings.h"

namespace underkeel::planner {

struct StepTimes {
  double step_s = 0;              // of a window and its update
  double save_s = 0;              // until a save is on disk
  double save_wait_s = 0;         // by how much the following window is longer for it
  double evaluation_batch_s = 0;  // of a batch of an evaluation; 0: there is none
};
/// How long a plan's step takes. (A reader of plans answers that; this layer knows none.)
using PredictTimes = std::function<StepTimes(const plan::Plan&)>;

/// What a run wants of the disk of its output folder, and what is free there.
struct DiskUse {
  std::int64_t needed_bytes = 0;
  std::int64_t free_bytes = 0;

  bool fits() const { return needed_bytes <= free_bytes; }
};
/// None where the free space is not known. (What a run writes is, like its times, not known to this layer.)
using AskDisk = std::function<std::optional<DiskUse>(const spec::RunConfig&)>;

/// Settings that were read and planned.
struct FittingRun {
  Settings settings;
  std::vector<std::string> words;  // for the same command line; none: as it is
  spec::RunConfig run;             // with them
  std::array<std::int64_t, plan::memory_space_count> peak_bytes{};  // of a rank
  std::int64_t node_bytes = 0;  // of host memory, all ranks of a node and their processes
  StepTimes times;
  std::optional<DiskUse> disk;
  /// Of each knob, what the others would do. Times are of plans in full; beside the first row all that may fit has one.
  std::vector<plan::Decision> choices;
};

struct BestFit {
  /// Fastest first; each needs less of some memory than all that are faster, or has shorter saves or evaluations. Of the
  /// same times and bytes the one with
  /// the fewest words stands alone.
  std::vector<FittingRun> rows;
  std::optional<FittingRun> smallest;  // where nothing fits: the one that comes closest
  std::vector<Shortage> shortages;     // of that one; none: it is short of disk alone
  std::int64_t searched = 0;           // settings of the grid
  std::int64_t planned = 0;            // of them in full
};

/// The most rows of an answer.
constexpr std::size_t most_fitting_runs = 6;

/// `run` must have been read from a file. Both functions are called from several threads at once.
BestFit find_best_fit(const FitQuestion& question, const PredictTimes& predict,
                      const AskDisk& ask_disk = {});

}  // namespace underkeel::planner
