#pragma once
// Shows a plan: as a table, as bars, as JSON for other programs, as a trace for Perfetto.
// Not here: the listing (plan/listing.h), the page with pictures (report/).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/timeline.h"

namespace underkeel::render {

/// Bytes of a memory or of the disk: "device" of a rank, "host" of a node, "disk".
struct SpaceBytes {
  std::string space;
  std::int64_t size_bytes = 0;
};

/// A change that makes a plan fit, and what it then needs of all that was short.
struct Suggestion {
  std::string change;  // "per_device_train_batch_size=2 gradient_accumulation_steps=8"
  std::vector<SpaceBytes> needs;
  std::string effect;  // "step +4%"; may be empty
};

/// What is short.
struct Lack {
  SpaceBytes needed;
  std::int64_t allowed_bytes = 0;
  std::string reason;  // of what is allowed
};

/// Predicted times, where a simulation was made.
struct Times {
  double step_s = 0;
  double micro_step_s = 0;
  double update_s = 0;
  double save_s = 0;  // of a checkpoint
  double save_wait_s = 0;
};

/// Host memory of a node: the arenas of all its ranks that lie there, and what their processes have outside them.
struct NodeMemory {
  std::int64_t needed_bytes = 0;
  std::int64_t outside_bytes = 0;  // of `needed_bytes`: a bound from a table
  std::int64_t process_count = 1;
  std::optional<plan::Budget> budget;
};

/// What a run wants of the disk of its output folder at most.
struct DiskNeed {
  std::int64_t needed_bytes = 0;
  std::optional<std::int64_t> free_bytes;  // none: not known
  std::string source;                      // of `free_bytes`
  std::int64_t checkpoint_bytes = 0;       // of one
  std::int64_t checkpoint_count = 0;       // at once
  std::int64_t kept_count = 0;             // once the last one has been written
  std::int64_t export_bytes = 0;           // the final model
  bool is_least = false;  // all checkpoints are kept, and how many there are is not known
};

/// When a run writes state: under its steps and at the end, once at the end, never.
enum class Saves : std::uint8_t { on_the_way, at_the_end, never };

/// What is known about a plan besides the plan.
struct Outlook {
  bool fits = true;  // memory and disk
  std::array<std::optional<plan::Budget>, plan::memory_space_count> budgets;
  std::optional<NodeMemory> node;
  std::optional<DiskNeed> disk;
  Saves saves = Saves::on_the_way;
  std::vector<Lack> shortages;  // none: it fits
  std::vector<Suggestion> suggestions;
  std::optional<Times> times;
};

/// Where a space holds most: the first one of equals; nullptr when the plan has nothing there.
const plan::Peak* largest_peak(const plan::Plan& plan, plan::MemorySpace space);

/// The peak of a space by kind: the segment that needs most, its kinds, and under `overhead` the gaps
/// of the arena, so that the kinds add up to what is reserved.
struct SpacePeak {
  std::int64_t peak_bytes = 0;  // the arena
  plan::SegmentKind segment = plan::SegmentKind::load;
  std::array<std::int64_t, plan::buffer_kind_count> by_kind{};
};
/// None when the plan has nothing in that space.
std::optional<SpacePeak> peak_of(const plan::Plan& plan, plan::MemorySpace space);

/// Bytes that a phase of a run needs in a space: the largest peak of its segments. A save runs under
/// the following step, so it needs what that does too; one at the end of a run runs alone.
enum class Phase { load, first_step, step, update, evaluate, save, after_save, resume };
std::int64_t bytes_of_phase(const plan::Plan& plan, Phase phase, plan::MemorySpace space,
                            Saves saves = Saves::on_the_way);
/// The moment at which a phase holds most in a space; nullptr where the run has no such phase, or nothing there.
const plan::Peak* peak_of_phase(const plan::Plan& plan, Phase phase, plan::MemorySpace space,
                                Saves saves = Saves::on_the_way);

/// A phase of a run in one space, as it is shown.
struct PhaseRow {
  std::string_view name;                    // "during a save"; "final model" of one at the end
  const plan::Peak* peak = nullptr;         // where it holds most
  std::vector<plan::SegmentKind> segments;  // what runs in it and holds something
};
/// The phases of a run in the order of a run, those that the plan has; segments of no phase (generation) follow.
std::vector<PhaseRow> phase_rows(const plan::Plan& plan, plan::MemorySpace space,
                                 Saves saves = Saves::on_the_way);

/// One table a space, with the budget where there is one: a row a phase, what holds its peak by kind, and the
/// operation at which it is reached. A table has one unit, and its rows add up to their totals. Segments of no phase
/// (generation) follow.
std::string peak_table(const plan::Plan& plan, const Outlook& outlook);

struct BarLook {
  int columns = 80;      // of the terminal
  bool colored = false;  // else letters tell kinds apart
};
/// The same as bars, a row a phase, with the largest marked; one row where all phases hold the same.
std::string peak_bars(const plan::Plan& plan, const Outlook& outlook, const BarLook& look);

/// One JSON object: {fits, ranks, parameters, spaces, node, disk, phases, moments, times, program, decisions,
/// shortages, suggestions, overhead_bytes, plan_hash}.
std::string plan_json(const plan::Plan& plan, const Outlook& outlook);

/// Trace Event JSON: a row per lane; for each memory space a counter of its bytes and one by kind. `rank` is the process.
std::string trace_json(const plan::Plan& plan, const plan::Timeline& timeline, int rank = 0);

}  // namespace underkeel::render
