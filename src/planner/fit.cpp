#include "planner/fit.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "kernels/facts/facts.h"
#include "plan/op_text.h"
#include "planner/few_layers.h"

namespace underkeel::planner {

namespace {

using plan::MemorySpace;

// A CUDA context takes 527 MiB; cuBLASLt and page-locking the rest.
constexpr std::int64_t gpu_reserve_bytes = gibibyte;
// Resident after start-up and the first step, without arenas: code and libraries (MPI's among them),
// heap of tokeniser and data.
constexpr std::int64_t bare_process_bytes = 64 * mebibyte;
// Resident with CUDA's driver and libraries, algorithms timed and 16,384 launches in graphs; with each further GPU of the
// process; with NCCL (bench/results/2026-11-gpu-graphs.md).
constexpr std::int64_t gpu_process_bytes = 608 * mebibyte;
constexpr std::int64_t further_gpu_bytes = 208 * mebibyte;
constexpr std::int64_t nccl_process_bytes = 384 * mebibyte;
constexpr std::int64_t lane_bytes = 512 * kibibyte;  // of a lane's thread: stack and heap

}  // namespace

bool is_on_node(MemorySpace space, const Room& room) {
  return space == MemorySpace::host || space == MemorySpace::pinned_host ||
         (space == MemorySpace::device && room.device_is_host);
}

std::int64_t process_count(const Placement& placement) {
  return placement.ranks_are_processes ? placement.ranks_on_node : 1;
}

Placement spread_evenly(const spec::HardwareSpec& machine, std::int64_t world_size,
                        bool ranks_are_processes) {
  return {.world_size = world_size,
          .ranks_on_node = ceil_div(world_size, std::min(machine.nodes, world_size)),
          .ranks_are_processes = ranks_are_processes};
}

namespace {

/// "--memory device", where a flag set the budget; else the key.
std::string budget_name(const spec::RunConfig& run, std::string_view space) {
  const std::string key = fmt::format("underkeel.memory.{}", space);
  const auto given = std::find_if(run.provenance.begin(), run.provenance.end(),
                                  [&](const spec::Provenance& entry) { return entry.key == key; });
  const bool is_by_flag = given != run.provenance.end() && given->source.starts_with("--");
  return is_by_flag ? fmt::format("{} {}", given->source, space) : key;
}

/// What a GPU's driver, and joining it to others, takes of it.
std::int64_t reserve_of(const spec::HardwareSpec& machine) {
  return machine.gpus_per_node == 0 ? 0 : gpu_reserve_bytes + machine.gpu_joining_bytes;
}

}  // namespace

Result<void> check_budgets(const spec::RunConfig& run, const spec::HardwareSpec& machine) {
  const std::int64_t reserve_bytes = reserve_of(machine);
  if (!run.device_budget_bytes || *run.device_budget_bytes > reserve_bytes) return {};
  return fail(ErrorCode::bad_config,
              fmt::format("a budget of {} leaves nothing of a GPU: its driver takes {}",
                          format_bytes(*run.device_budget_bytes), format_bytes(reserve_bytes)),
              budget_name(run, "device"), fmt::format("more than {}", format_bytes(reserve_bytes)));
}

Room room_of(const spec::RunConfig& run, const spec::HardwareSpec& machine,
             const Placement& placement) {
  Room room{.placement = placement, .device_is_host = machine.gpus_per_node == 0};
  auto& device = room.spaces[index(MemorySpace::device)];
  if (!room.device_is_host)
    device = {std::max<std::int64_t>(0, machine.gpu_mem_bytes - gpu_reserve_bytes),
              fmt::format("the GPU's {} less {} for its driver",
                          format_bytes(machine.gpu_mem_bytes), format_bytes(gpu_reserve_bytes))};
  if (run.device_budget_bytes) {
    // On a GPU the budget is for all that the run takes of the card, as the card's own memory is.
    const std::int64_t reserve_bytes = reserve_of(machine);
    const std::int64_t budget_bytes =
        std::max<std::int64_t>(0, *run.device_budget_bytes - reserve_bytes);
    if (!device || budget_bytes < device->size_bytes)
      device = {
          budget_bytes,
          reserve_bytes == 0
              ? budget_name(run, "device")
              : fmt::format("{}: {} less {} for the GPU's driver{}", budget_name(run, "device"),
                            format_bytes(*run.device_budget_bytes), format_bytes(reserve_bytes),
                            machine.gpu_joining_bytes > 0 ? " and its link to other GPUs" : "")};
  }
  if (machine.host_ram_bytes > 0) room.node = {machine.host_ram_bytes, "what the machine has"};
  if (run.host_budget_bytes && (!room.node || *run.host_budget_bytes < room.node->size_bytes))
    room.node = {*run.host_budget_bytes, budget_name(run, "host")};
  return room;
}

namespace {

std::int64_t ranks_in_process(const Placement& placement) {
  return placement.ranks_are_processes ? 1 : placement.ranks_on_node;
}

/// Host memory of the GPUs' driver and libraries in one process.
std::int64_t driver_host_bytes(const Placement& placement) {
  const bool has_nccl = placement.ranks_are_processes && placement.world_size > 1;
  return gpu_process_bytes + (ranks_in_process(placement) - 1) * further_gpu_bytes +
         (has_nccl ? nccl_process_bytes : 0);
}

}  // namespace

std::int64_t process_overhead_bytes(const Placement& placement, int threads_per_rank, bool on_gpu) {
  const std::int64_t ranks = ranks_in_process(placement);
  return bare_process_bytes + ranks * (plan::lanes::count + threads_per_rank) * lane_bytes +
         (on_gpu ? driver_host_bytes(placement)
                 : ranks * kernels::cpu_matmul_overhead_bytes(threads_per_rank));
}

namespace {

/// As the run asks, else a rank's part of the cores of a node.
int thread_count_of_rank(const spec::HardwareSpec& machine, const Placement& placement,
                         const spec::RunConfig& run) {
  return run.threads_per_rank > 0
             ? run.threads_per_rank
             : std::max(1, machine.cores / static_cast<int>(placement.ranks_on_node));
}

}  // namespace

std::int64_t samples_bytes(const spec::RunConfig& run, const Placement& placement) {
  if (!run.data.samples) return 0;
  return run.data.samples->list_bytes + ranks_in_process(placement) * run.data.samples->order_bytes;
}

namespace {

std::string machine_text(const spec::HardwareSpec& machine) {
  if (machine.gpus_per_node == 0) return "no GPU for every rank";
  return fmt::format("{} GPU{} with {} a node", machine.gpus_per_node,
                     machine.gpus_per_node == 1 ? "" : "s", format_bytes(machine.gpu_mem_bytes));
}

/// What a run leaves to the machine.
std::vector<plan::Decision> choices_on(const spec::HardwareSpec& machine,
                                       const Placement& placement, const spec::RunConfig& run,
                                       int threads_per_rank) {
  std::vector<plan::Decision> choices;
  const bool on_gpu = machine.gpus_per_node > 0;
  if (run.device == "auto")
    choices.push_back(
        {.subject = "device",
         .value = on_gpu ? "cuda" : "cpu",
         .reason = machine_text(machine),
         .alternatives = {
             on_gpu ? plan::Alternative{"cpu", fmt::format("arenas in the node's {}",
                                                           format_bytes(machine.host_ram_bytes))}
                    : plan::Alternative{
                          "cuda", fmt::format("needs {} GPU{} a node", placement.ranks_on_node,
                                              placement.ranks_on_node == 1 ? "" : "s")}}});
  if (on_gpu && run.matmul_timing_s > 0)
    choices.push_back(
        {.subject = "algorithms of products",
         .value = fmt::format("timed at the start, for up to {:.3g} s", run.matmul_timing_s),
         .reason = "which one is fastest depends on the card; a checkpoint keeps them",
         .alternatives = {{"the library's first proposals", "0 s (underkeel.matmul_timing=0)"}}});
  if (!on_gpu && run.threads_per_rank == 0)
    choices.push_back(
        {.subject = "threads",
         .value = fmt::format("{} a rank", threads_per_rank),
         .reason = fmt::format("{} core{} for {} rank{} of a node", machine.cores,
                               machine.cores == 1 ? "" : "s", placement.ranks_on_node,
                               placement.ranks_on_node == 1 ? "" : "s"),
         .alternatives = {{"one more a rank",
                           fmt::format("{} more for each rank, and shared cores",
                                       format_bytes(kernels::cpu_slot_bytes + lane_bytes))}}});
  // What a DeepSpeed config leaves open with "auto".
  for (const spec::Provenance& entry : run.provenance)
    if (entry.source.starts_with("derived: \"auto\""))
      choices.push_back({.subject = entry.key,
                         .value = entry.value,
                         .reason = entry.source.substr(std::string_view("derived: ").size()),
                         .alternatives = {{"left out", "the planner's own choice"}}});
  return choices;
}

}  // namespace

std::int64_t further_rank_bytes(const FitQuestion& question) {
  const int threads = thread_count_of_rank(question.machine, question.placement, question.run);
  const auto bytes = [&](std::int64_t further) {
    Placement placement = question.placement;
    placement.ranks_on_node += further;
    return process_overhead_bytes(placement, threads, question.machine.gpus_per_node > 0);
  };
  return bytes(1) - bytes(0);
}

Request request_on(const spec::HardwareSpec& machine, const Placement& placement,
                   const spec::ModelSpec& model, const spec::RunConfig& run) {
  Request request = request_of(model, run, placement.world_size);
  request.on_gpu = machine.gpus_per_node > 0;
  const int threads = thread_count_of_rank(machine, placement, run);
  request.overhead_bytes =
      process_overhead_bytes(placement, threads, request.on_gpu) + samples_bytes(run, placement);
  std::vector<plan::Decision> choices = choices_on(machine, placement, run, threads);
  request.decisions.insert(request.decisions.begin(), choices.begin(), choices.end());
  return request;
}

plan::Plan make_plan_on(const FitQuestion& question) {
  Request request = request_on(question.machine, question.placement, question.model, question.run);
  if (question.run.recompute != spec::Recompute::automatic) return make_plan(request);
  const Room room = room_of(question.run, question.machine, question.placement);
  struct Level {
    spec::Recompute level;
    std::string_view name;
  };
  constexpr Level levels[] = {{spec::Recompute::none, "none"},
                              {spec::Recompute::cheap, "cheap"},
                              {spec::Recompute::block, "block"}};
  plan::Decision decision{.subject = "recompute"};
  for (const Level& each : levels) {
    request.recompute = each.level;
    plan::Plan plan = make_plan(request);
    const bool fits = !shortage_of(plan, room);
    if (!fits && each.level != spec::Recompute::block) {
      decision.alternatives.push_back(
          {std::string(each.name),
           fmt::format("needs {} of {}",
                       format_bytes(needed_bytes(plan, room, MemorySpace::device)),
                       name_of(MemorySpace::device))});
      continue;
    }
    decision.value = each.name;
    decision.reason = fits ? "the least that fits" : "the most there is; it does not fit either";
    for (const Level* more = &each + 1; more != std::end(levels); ++more) {
      request.recompute = more->level;
      const auto bytes = FewLayers(question.model).of(request).size_bytes;
      decision.alternatives.push_back(
          {std::string(more->name), fmt::format("about {} of {}, and more to compute again",
                                                format_bytes(bytes[index(MemorySpace::device)]),
                                                name_of(MemorySpace::device))});
    }
    plan.decisions.insert(plan.decisions.begin(), std::move(decision));
    return plan;
  }
  UK_CHECK(false, "the last level is taken whether it fits or not");
}

std::int64_t needed_bytes(const plan::Plan& plan, const Room& room,
                          std::optional<MemorySpace> space) {
  if (space) return plan.layout.size_bytes[index(*space)];
  std::int64_t of_rank = 0;
  for (int s = 0; s < plan::memory_space_count; ++s)
    if (is_on_node(static_cast<MemorySpace>(s), room))
      of_rank += plan.layout.size_bytes[static_cast<std::size_t>(s)];
  return room.placement.ranks_on_node * of_rank +
         process_count(room.placement) * plan.overhead_bytes;
}

namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1));
}

/// Calls `look` with every budget that there is: space (none: the node), what the plan needs of it, the budget.
template <class Look>
void for_each_budget(const plan::Plan& plan, const Room& room, const Look& look) {
  const auto ask = [&](std::optional<MemorySpace> space,
                       const std::optional<plan::Budget>& budget) {
    if (budget) look(space, needed_bytes(plan, room, space), *budget);
  };
  for (int s = 0; s < plan::memory_space_count; ++s)
    ask(static_cast<MemorySpace>(s), room.spaces[static_cast<std::size_t>(s)]);
  ask(std::nullopt, room.node);
}

}  // namespace

std::vector<Shortage> shortages_of(const plan::Plan& plan, const Room& room) {
  std::vector<Shortage> shortages;
  for_each_budget(
      plan, room,
      [&](std::optional<MemorySpace> space, std::int64_t needed, const plan::Budget& budget) {
        if (needed > budget.size_bytes)
          shortages.push_back({space, needed, budget.size_bytes, budget.reason});
      });
  std::stable_sort(shortages.begin(), shortages.end(),
                   [](const Shortage& a, const Shortage& b) { return ratio_of(a) > ratio_of(b); });
  return shortages;
}

std::optional<Shortage> shortage_of(const plan::Plan& plan, const Room& room) {
  std::vector<Shortage> shortages = shortages_of(plan, room);
  if (shortages.empty()) return std::nullopt;
  return std::move(shortages.front());
}

double ratio_of(const Shortage& shortage) {
  return ratio(shortage.needed_bytes, shortage.allowed_bytes);
}

double fullness_of(const plan::Plan& plan, const Room& room) {
  double fullness = 0;
  for_each_budget(plan, room,
                  [&](std::optional<MemorySpace>, std::int64_t needed, const plan::Budget& budget) {
                    fullness = std::max(fullness, ratio(needed, budget.size_bytes));
                  });
  return fullness;
}

std::optional<plan::Budget> budget_of(const plan::Plan& plan, const Room& room, MemorySpace space) {
  std::optional<plan::Budget> budget = room.spaces[index(space)];
  if (!is_on_node(space, room) || !room.node) return budget;
  const Placement& placement = room.placement;
  // What the node has for this space once everything else has its part.
  const std::int64_t others = needed_bytes(plan, room, std::nullopt) -
                              placement.ranks_on_node * plan.layout.size_bytes[index(space)];
  const std::int64_t left =
      std::max<std::int64_t>(0, (room.node->size_bytes - others) / placement.ranks_on_node);
  if (budget && budget->size_bytes <= left) return budget;
  return plan::Budget{
      left,
      placement.ranks_on_node == 1
          ? fmt::format("left of {}, {}", format_bytes(room.node->size_bytes), room.node->reason)
          : fmt::format("a rank's share of {}, {}", format_bytes(room.node->size_bytes),
                        room.node->reason)};
}

}  // namespace underkeel::planner
