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

bool on_node(MemorySpace space, const Room& room) {
  return space == MemorySpace::host || space == MemorySpace::pinned_host ||
         (space == MemorySpace::device && room.device_is_host);
}

const plan::Peak* highest_peak(const plan::Plan& plan, MemorySpace space) {
  const plan::Peak* highest = nullptr;
  for (const plan::Peak& peak : plan.peaks)
    if (peak.space == space && (highest == nullptr || peak.size_bytes > highest->size_bytes))
      highest = &peak;
  return highest;
}

/// The space that tells most about a shortage of the whole node.
MemorySpace largest_on_node(const plan::Plan& plan, const Room& room) {
  MemorySpace largest = MemorySpace::host;
  for (int s = 0; s < plan::memory_space_count; ++s) {
    const auto space = static_cast<MemorySpace>(s);
    if (on_node(space, room) &&
        plan.layout.size_bytes[index(space)] > plan.layout.size_bytes[index(largest)])
      largest = space;
  }
  return largest;
}

std::string holders_text(const plan::Peak& peak) {
  std::vector<std::size_t> kinds;
  for (std::size_t kind = 0; kind < peak.by_kind.size(); ++kind)
    if (peak.by_kind[kind] * 100 >= peak.size_bytes) kinds.push_back(kind);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](std::size_t a, std::size_t b) { return peak.by_kind[a] > peak.by_kind[b]; });
  std::string text;
  for (const std::size_t kind : kinds)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ",
                    name_of(static_cast<plan::BufferKind>(kind)), format_bytes(peak.by_kind[kind]));
  return text;
}

std::string place_text(const plan::Plan& plan, const plan::Peak& peak) {
  const plan::Segment& segment = *plan.schedule.find(peak.segment);
  if (segment.ops.empty()) return fmt::format("segment {}", name_of(peak.segment));
  const plan::OpText text(plan.schedule);
  return fmt::format("segment {}, op {:04} {}\nholds: {}", name_of(peak.segment), index(peak.op),
                     text.name_of(segment.ops[index(peak.op)]), holders_text(peak));
}

std::string advice_text(const Advice& advice, const Placement& placement,
                        std::int64_t needed_bytes) {
  if (advice.changes.empty()) {
    const std::string tried =
        placement.ranks_are_processes
            ? fmt::format("micro-batch or stage fits on the launcher's {} rank{}",
                          placement.world_size, placement.world_size == 1 ? "" : "s")
            : std::string("micro-batch, stage or ranks on this machine fits");
    const std::string begin = fmt::format(
        "no change of recompute, {}; at this cutoff_len the smallest reachable peak is ", tried);
    if (!advice.smallest || advice.smallest->words.empty())
      return begin + fmt::format("{}, as it is", format_bytes(needed_bytes));
    return begin + fmt::format("{}, with {}", format_bytes(advice.smallest->needed_bytes),
                               advice.smallest->words);
  }
  std::size_t widest = 0;
  for (const Change& change : advice.changes) widest = std::max(widest, change.words.size());
  std::string text;
  for (const Change& change : advice.changes)
    text += fmt::format("{}{:{}}  -> {}", text.empty() ? "" : "\n       ", change.words, widest,
                        format_bytes(change.needed_bytes));
  return text;
}

}  // namespace

std::int64_t process_count(const Placement& placement) {
  return placement.ranks_are_processes ? placement.ranks_on_node : 1;
}

Placement spread_evenly(const spec::HardwareSpec& machine, std::int64_t world_size,
                        bool ranks_are_processes) {
  return {.world_size = world_size,
          .ranks_on_node = ceil_div(world_size, std::min(machine.nodes, world_size)),
          .ranks_are_processes = ranks_are_processes};
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
    const std::int64_t reserve_bytes =
        room.device_is_host ? 0 : gpu_reserve_bytes + machine.gpu_joining_bytes;
    const std::int64_t budget_bytes =
        std::max<std::int64_t>(0, *run.device_budget_bytes - reserve_bytes);
    if (!device || budget_bytes < device->size_bytes)
      device = {
          budget_bytes,
          reserve_bytes == 0
              ? std::string("underkeel.memory.device")
              : fmt::format("underkeel.memory.device: {} less {} for the GPU's driver{}",
                            format_bytes(*run.device_budget_bytes), format_bytes(reserve_bytes),
                            machine.gpu_joining_bytes > 0 ? " and its link to other GPUs" : "")};
  }
  if (machine.host_ram_bytes > 0) room.node = {machine.host_ram_bytes, "what the machine has"};
  if (run.host_budget_bytes && (!room.node || *run.host_budget_bytes < room.node->size_bytes))
    room.node = {*run.host_budget_bytes, "underkeel.memory.host"};
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

/// Lists and orders of samples in one process.
std::int64_t samples_bytes(const spec::RunConfig& run, const Placement& placement) {
  if (!run.data.samples) return 0;
  return run.data.samples->list_bytes + ranks_in_process(placement) * run.data.samples->order_bytes;
}

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

Request request_on(const spec::HardwareSpec& machine, const Placement& placement,
                   const spec::ModelSpec& model, const spec::RunConfig& run) {
  Request request = request_of(model, run, placement.world_size);
  request.on_gpu = machine.gpus_per_node > 0;
  const int threads_per_rank =
      run.threads_per_rank > 0
          ? run.threads_per_rank
          : std::max(1, machine.cores / static_cast<int>(placement.ranks_on_node));
  request.overhead_bytes = process_overhead_bytes(placement, threads_per_rank, request.on_gpu) +
                           samples_bytes(run, placement);
  std::vector<plan::Decision> choices = choices_on(machine, placement, run, threads_per_rank);
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
    if (on_node(static_cast<MemorySpace>(s), room))
      of_rank += plan.layout.size_bytes[static_cast<std::size_t>(s)];
  return room.placement.ranks_on_node * of_rank +
         process_count(room.placement) * plan.overhead_bytes;
}

std::optional<Shortage> shortage_of(const plan::Plan& plan, const Room& room) {
  std::optional<Shortage> worst;
  const auto look = [&](std::optional<MemorySpace> space,
                        const std::optional<plan::Budget>& budget) {
    if (!budget) return;
    const std::int64_t needed = needed_bytes(plan, room, space);
    if (needed <= budget->size_bytes) return;
    const auto ratio = [](std::int64_t part, std::int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1));
    };
    if (worst &&
        ratio(needed, budget->size_bytes) <= ratio(worst->needed_bytes, worst->allowed_bytes))
      return;
    worst = Shortage{space, needed, budget->size_bytes, budget->reason};
  };
  for (int s = 0; s < plan::memory_space_count; ++s)
    look(static_cast<MemorySpace>(s), room.spaces[static_cast<std::size_t>(s)]);
  look(std::nullopt, room.node);
  return worst;
}

std::optional<plan::Budget> budget_of(const plan::Plan& plan, const Room& room, MemorySpace space) {
  std::optional<plan::Budget> budget = room.spaces[index(space)];
  if (!on_node(space, room) || !room.node) return budget;
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

namespace {

/// What the memory of a node holds: a line behind what a rank's peak does.
std::string node_text(const plan::Plan& plan, const spec::RunConfig& run, const Room& room) {
  const std::int64_t processes = process_count(room.placement);
  const std::int64_t samples = processes * samples_bytes(run, room.placement);
  const std::int64_t outside = processes * plan.overhead_bytes;
  const std::int64_t arenas = needed_bytes(plan, room, std::nullopt) - outside;
  std::string text = fmt::format("\nnode:  arenas {} ({} {} of {})", format_bytes(arenas),
                                 room.placement.ranks_on_node,
                                 room.placement.ranks_on_node == 1 ? "rank" : "ranks",
                                 format_bytes(arenas / room.placement.ranks_on_node));
  if (samples > 0) text += fmt::format(", lists of samples {}", format_bytes(samples));
  return text +
         fmt::format(", code, libraries, threads and heap {}", format_bytes(outside - samples));
}

}  // namespace

Error does_not_fit(const plan::Plan& plan, const spec::RunConfig& run, const Room& room,
                   const Shortage& shortage, const Advice& advice) {
  const MemorySpace space = shortage.space.value_or(largest_on_node(plan, room));
  Error error{.code = ErrorCode::does_not_fit};
  // Where rounded figures would read the same, the bytes tell.
  const bool is_close = format_bytes(shortage.needed_bytes) == format_bytes(shortage.allowed_bytes);
  const auto size = [&](std::int64_t bytes) {
    return is_close ? format_count(bytes) + " bytes" : format_bytes(bytes);
  };
  if (shortage.space) {
    error.what =
        fmt::format("the plan does not fit: {} peak {}, allowed {} ({})", name_of(space),
                    size(shortage.needed_bytes), size(shortage.allowed_bytes), shortage.reason);
  } else {
    error.what = fmt::format(
        "the plan does not fit: host memory of a node with {} {}: peak {}, allowed {} ({})",
        room.placement.ranks_on_node, room.placement.ranks_on_node == 1 ? "rank" : "ranks",
        size(shortage.needed_bytes), size(shortage.allowed_bytes), shortage.reason);
  }
  if (const plan::Peak* peak = highest_peak(plan, space)) error.where = place_text(plan, *peak);
  error.fix = advice_text(advice, room.placement, shortage.needed_bytes);
  if (!shortage.space) error.where += node_text(plan, run, room);
  const std::int64_t samples = process_count(room.placement) * samples_bytes(run, room.placement);
  if (!shortage.space && samples > shortage.needed_bytes / 10)
    error.fix += fmt::format("; {} of it are lists of samples: lower max_samples or num_samples",
                             format_bytes(samples));
  return error;
}

Result<void> check_fit(const plan::Plan& plan, const FitQuestion& question) {
  const Room room = room_of(question.run, question.machine, question.placement);
  const auto shortage = shortage_of(plan, room);
  if (!shortage) return {};
  return tl::unexpected(
      does_not_fit(plan, question.run, room, *shortage, advise(question, *shortage)));
}

Result<void> check_shortest(const FitQuestion& question) {
  const plan::Plan plan = make_plan_on(question);
  const Result<void> fits = check_fit(plan, question);
  if (fits) return {};
  spec::RunConfig shortest = question.run;
  shortest.data.samples = spec::SampleSizes();  // of one token each
  const FitQuestion smaller{question.model, shortest, question.machine, question.placement};
  const Room room = room_of(shortest, question.machine, question.placement);
  if (!shortage_of(make_plan_on(smaller), room)) return {};
  return fits;
}

}  // namespace underkeel::planner
