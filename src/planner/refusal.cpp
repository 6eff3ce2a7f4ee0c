// A plan that does not fit, as the user sees it: what is short and of how much, what holds it, and changes that fit.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "plan/op_text.h"
#include "planner/fit.h"

namespace underkeel::planner {

namespace {

using plan::MemorySpace;

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
    if (is_on_node(space, room) &&
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

/// "device", "host memory of a node".
std::string_view name_of_short(std::optional<MemorySpace> space) {
  return space ? plan::name_of(*space) : std::string_view("host memory of a node");
}

/// What a change then needs of all that was short; the space is named where there are several.
std::string needs_text(const Change& change, const std::vector<Shortage>& shortages) {
  if (shortages.size() == 1) return format_bytes(change.needed_bytes.front());
  std::vector<std::string> needs;
  for (std::size_t i = 0; i < shortages.size(); ++i)
    needs.push_back(fmt::format("{} {}", name_of_short(shortages[i].space),
                                format_bytes(change.needed_bytes[i])));
  return fmt::format("{}", fmt::join(needs, ", "));
}

/// How near the closest change comes.
std::string closest_text(const std::vector<Shortage>& shortages, const Closest& closest) {
  const bool is_same_space = shortages.size() == 1 && closest.shortages.size() == 1 &&
                             shortages.front().space == closest.shortages.front().space;
  std::string text;
  if (is_same_space) {
    text = fmt::format("the smallest reachable peak is {}",
                       format_bytes(closest.shortages.front().needed_bytes));
  } else {
    std::vector<std::string> needs;
    for (const Shortage& shortage : closest.shortages)
      needs.push_back(fmt::format("{} of {}, allowed {}", format_bytes(shortage.needed_bytes),
                                  name_of_short(shortage.space),
                                  format_bytes(shortage.allowed_bytes)));
    text = fmt::format("what comes closest needs {}", fmt::join(needs, " and "));
  }
  return text + (closest.words.empty() ? ", as it is" : ", with " + closest.words);
}

std::string advice_text(const Advice& advice, const Placement& placement,
                        const std::vector<Shortage>& shortages) {
  if (advice.changes.empty()) {
    const std::string tried =
        placement.ranks_are_processes
            ? fmt::format("micro-batch or stage fits on the launcher's {} rank{}",
                          placement.world_size, placement.world_size == 1 ? "" : "s")
            : std::string("micro-batch, stage or ranks on this machine fits");
    const Closest as_it_is{.words = {}, .shortages = shortages};
    return fmt::format("no change of recompute, {}; at this cutoff_len {}", tried,
                       closest_text(shortages, advice.smallest.value_or(as_it_is)));
  }
  std::size_t widest = 0;
  for (const Change& change : advice.changes) widest = std::max(widest, change.words.size());
  std::string text;
  for (const Change& change : advice.changes)
    text += fmt::format("{}{:{}}  -> {}", text.empty() ? "" : "\n       ", change.words, widest,
                        needs_text(change, shortages));
  return text;
}

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

/// "device peak 5.6 MiB, allowed 4.0 MiB (underkeel.memory.device)"
std::string shortage_text(const Shortage& shortage, const Placement& placement) {
  // Where rounded figures would read the same, the bytes tell.
  const bool is_close = format_bytes(shortage.needed_bytes) == format_bytes(shortage.allowed_bytes);
  const auto size = [&](std::int64_t bytes) {
    return is_close ? format_count(bytes) + " bytes" : format_bytes(bytes);
  };
  const std::string where =
      shortage.space
          ? fmt::format("{} peak", plan::name_of(*shortage.space))
          : fmt::format("host memory of a node with {} {}: peak", placement.ranks_on_node,
                        placement.ranks_on_node == 1 ? "rank" : "ranks");
  return fmt::format("{} {}, allowed {} ({})", where, size(shortage.needed_bytes),
                     size(shortage.allowed_bytes), shortage.reason);
}

/// The peaks behind all that is short, each space once; they are named where there are several.
std::string places_text(const plan::Plan& plan, const Room& room,
                        const std::vector<Shortage>& shortages) {
  std::vector<MemorySpace> spaces;
  for (const Shortage& shortage : shortages) {
    const MemorySpace space = shortage.space.value_or(largest_on_node(plan, room));
    if (std::find(spaces.begin(), spaces.end(), space) == spaces.end()) spaces.push_back(space);
  }
  std::string text;
  for (const MemorySpace space : spaces) {
    const plan::Peak* peak = highest_peak(plan, space);
    if (peak == nullptr) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : "\n",
                        spaces.size() > 1 ? fmt::format("{}: ", plan::name_of(space)) : "",
                        place_text(plan, *peak));
  }
  return text;
}

}  // namespace

Error does_not_fit(const plan::Plan& plan, const spec::RunConfig& run, const Room& room,
                   const std::vector<Shortage>& shortages, const Advice& advice) {
  std::vector<std::string> said;
  for (const Shortage& shortage : shortages)
    said.push_back(shortage_text(shortage, room.placement));
  Error error{.code = ErrorCode::does_not_fit,
              .what = fmt::format("the plan does not fit: {}", fmt::join(said, "; ")),
              .where = places_text(plan, room, shortages),
              .fix = advice_text(advice, room.placement, shortages)};
  const auto of_node = std::find_if(shortages.begin(), shortages.end(),
                                    [](const Shortage& shortage) { return !shortage.space; });
  if (of_node == shortages.end()) return error;
  error.where += node_text(plan, run, room);
  const std::int64_t samples = process_count(room.placement) * samples_bytes(run, room.placement);
  if (samples > of_node->needed_bytes / 10)
    error.fix += fmt::format("; {} of it are lists of samples: lower max_samples or num_samples",
                             format_bytes(samples));
  return error;
}

Result<void> check_fit(const plan::Plan& plan, const FitQuestion& question) {
  const Room room = room_of(question.run, question.machine, question.placement);
  const std::vector<Shortage> shortages = shortages_of(plan, room);
  if (shortages.empty()) return {};
  return tl::unexpected(
      does_not_fit(plan, question.run, room, shortages, advise(question, shortages)));
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
