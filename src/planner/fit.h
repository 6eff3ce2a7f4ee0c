#pragma once
// Whether a plan fits the memory it may have, and if not, which changes of the run do.
// Every change that is named was read and planned again: it passes the check that it is an answer to.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "planner/planner.h"
#include "spec/hardware_spec.h"
#include "spec/model_spec.h"
#include "spec/run_config.h"

namespace underkeel::planner {

/// How ranks lie on machines.
struct Placement {
  std::int64_t world_size = 1;
  std::int64_t ranks_on_node = 1;
  bool ranks_are_processes = false;  // by a launcher; else threads of one process
};
/// Processes of ours on one node.
std::int64_t process_count(const Placement& placement);
/// Ranks spread evenly over the machine's nodes.
Placement spread_evenly(const spec::HardwareSpec& machine, std::int64_t world_size,
                        bool ranks_are_processes);

/// What a run may take. Host memory is shared by all ranks of a node; where the device is the CPU, its
/// arenas lie there too.
struct Room {
  std::array<std::optional<plan::Budget>, plan::memory_space_count> spaces;  // of one rank
  std::optional<plan::Budget> node;  // host memory of all ranks on one node and their processes
  Placement placement;
  bool device_is_host = true;
};
/// The tighter of the run's own budgets (underkeel.memory) and what the machine has. A machine with GPUs
/// holds device arenas there, less 1 GiB for the driver and its libraries.
Room room_of(const spec::RunConfig& run, const spec::HardwareSpec& machine,
             const Placement& placement);

/// Refuses a device budget that a GPU's driver takes whole.
/// Errors:  bad_config.
Result<void> check_budgets(const spec::RunConfig& run, const spec::HardwareSpec& machine);

/// Bytes of a process outside its arenas: code, libraries, threads and the kernels' workspace; on GPUs what their driver
/// and libraries take of the host.
std::int64_t process_overhead_bytes(const Placement& placement, int threads_per_rank, bool on_gpu);

/// Lists and orders of samples in one process; part of a plan's overhead.
std::int64_t samples_bytes(const spec::RunConfig& run, const Placement& placement);
/// Whether arenas of this space lie in the memory of the node.
bool is_on_node(plan::MemorySpace space, const Room& room);

/// A budget that a plan goes beyond.
struct Shortage {
  std::optional<plan::MemorySpace> space;  // none: the node's host memory
  std::int64_t needed_bytes = 0;
  std::int64_t allowed_bytes = 0;
  std::string reason;  // of the budget
};
/// All of them, the one that is furthest beyond first.
std::vector<Shortage> shortages_of(const plan::Plan& plan, const Room& room);
/// The first of them.
std::optional<Shortage> shortage_of(const plan::Plan& plan, const Room& room);
/// What is needed by what is allowed.
double ratio_of(const Shortage& shortage);
/// The largest such ratio of a plan's spaces; above 1 it does not fit. 0 where nobody set a budget.
double fullness_of(const plan::Plan& plan, const Room& room);

/// What a plan needs of a space, or of the node (nullopt).
std::int64_t needed_bytes(const plan::Plan& plan, const Room& room,
                          std::optional<plan::MemorySpace> space);
/// The budget of one rank in a space, what the node has left for it where the space has none of its own.
std::optional<plan::Budget> budget_of(const plan::Plan& plan, const Room& room,
                                      plan::MemorySpace space);

/// request_of(), with the overhead of the processes that the ranks live in.
Request request_on(const spec::HardwareSpec& machine, const Placement& placement,
                   const spec::ModelSpec& model, const spec::RunConfig& run);

/// A run on a machine. It can be read again with other words behind it (RunConfig::changes).
struct FitQuestion {
  const spec::ModelSpec& model;
  const spec::RunConfig& run;
  spec::HardwareSpec machine;
  Placement placement;
};

/// What one rank more on a node would add to the memory of its process, beside arenas.
std::int64_t further_rank_bytes(const FitQuestion& question);

/// The plan of request_on(). With `recompute: auto` the one that recomputes least among those that
/// fit, and a Decision that says so.
plan::Plan make_plan_on(const FitQuestion& question);

/// Words for the same command line, and what the plan then needs of what was short.
struct Change {
  std::string words;  // "per_device_train_batch_size=2 gradient_accumulation_steps=8"
  std::vector<std::int64_t> needed_bytes;  // of each shortage, in their order
};
/// What is still short with the change that comes closest.
struct Closest {
  std::string words;  // none: as it is
  std::vector<Shortage> shortages;
};
struct Advice {
  std::vector<Change> changes;      // that fit every budget; smallest first, at most four
  std::optional<Closest> smallest;  // nothing fits
  std::int64_t planned = 0;         // settings that were planned in full
};
/// Tries recompute levels, micro-batches with accumulation, stages, numbers of ranks (more; fewer too where host memory of
/// a node is short; none where a launcher has chosen) and evaluation batches, alone and together. The global batch and what is computed stay as they are. Most are estimated from plans of
/// few layers; what is named was planned in full.
Advice advise(const FitQuestion& question, const std::vector<Shortage>& shortages);

/// does_not_fit as the user sees it: of each space that is short peak and budget, the operation and the holders; changes
/// that fit all of them. There is one shortage at least.
Error does_not_fit(const plan::Plan& plan, const spec::RunConfig& run, const Room& room,
                   const std::vector<Shortage>& shortages, const Advice& advice);

/// `plan` is make_plan_on() of the same question.
/// Errors:  does_not_fit.
Result<void> check_fit(const plan::Plan& plan, const FitQuestion& question);

/// Before the data are known: refuses what would not fit even with the shortest samples, with the figures of the
/// cut-off.
/// Errors:  does_not_fit.
Result<void> check_shortest(const FitQuestion& question);

}  // namespace underkeel::planner
