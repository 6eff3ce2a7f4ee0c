// What a folded listing says of a plan before its operations.

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/fold.h"
#include "plan/listing_parts.h"

namespace underkeel::plan::parts {

namespace {

/// The layer that a unit is; -1 for the others.
std::int64_t layer_of(const Unit& unit) {
  const FoldLine line = fold_line(0, 1, unit.name);
  return line.numbers.size() == 1 ? line.numbers[0].value : -1;
}

/// Where the run of units that are like `first` but one layer further each ends, as `is_like` says of two neighbours.
template <class IsLike>
std::size_t end_of_run(const Schedule& schedule, std::size_t first, IsLike&& is_like) {
  std::size_t end = first + 1;
  while (end < schedule.units.size() && layer_of(schedule.units[end - 1]) >= 0 &&
         layer_of(schedule.units[end]) == layer_of(schedule.units[end - 1]) + 1 &&
         is_like(end - 1, end))
    ++end;
  return end;
}

/// "layers.0..3"
std::string run_name(const Schedule& schedule, std::size_t first, std::size_t end) {
  const std::string& name = schedule.units[first].name;
  return end - first == 1 ? name : fmt::format("{}..{}", name, layer_of(schedule.units[end - 1]));
}

std::vector<BufferId> homes_of(const Unit& unit) {
  std::vector<BufferId> homes;
  for (const BufferId id : {unit.weights, unit.master, unit.moment1, unit.moment2, unit.gradient})
    if (id != no_buffer) homes.push_back(id);
  return homes;
}

/// "weights bf16 192 KiB", and its space where that is not the device.
std::string home_row(const Schedule& schedule, const Unit& unit, BufferId id) {
  const Buffer& buffer = schedule.buffer(id);
  const std::string part = buffer.name.starts_with(unit.name + ".")
                               ? buffer.name.substr(unit.name.size() + 1)
                               : buffer.name;
  std::string text =
      fmt::format("{} {} {}", part, name_of(buffer.type), format_bytes(buffer.size_bytes));
  if (buffer.space != MemorySpace::device) text += fmt::format(" of {}", name_of(buffer.space));
  return text;
}

std::string at_text(const Plan& plan, BufferId id) {
  if (index(id) >= plan.layout.offset_bytes.size()) return "";
  return fmt::format(" at {}", format_count(plan.layout.offset_bytes[index(id)]));
}

/// How far every home of unit `b` lies behind that of unit `a`; none where they are not alike.
std::optional<std::int64_t> distance_between(const Plan& plan, std::size_t a, std::size_t b) {
  const Schedule& schedule = plan.schedule;
  const std::vector<BufferId> from = homes_of(schedule.units[a]);
  const std::vector<BufferId> to = homes_of(schedule.units[b]);
  if (from.size() != to.size() || plan.layout.offset_bytes.size() != schedule.buffers.size())
    return std::nullopt;
  std::optional<std::int64_t> distance;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t own =
        plan.layout.offset_bytes[index(to[i])] - plan.layout.offset_bytes[index(from[i])];
    if (distance.value_or(own) != own || home_row(schedule, schedule.units[a], from[i]) !=
                                             home_row(schedule, schedule.units[b], to[i]))
      return std::nullopt;
    distance = own;
  }
  return distance;
}

}  // namespace

void write_folded_units(Out out, const Schedule& schedule) {
  fmt::format_to(out, "\n{}\n", units_title());
  const auto row = [&](std::size_t i) { return unit_row(schedule, schedule.units[i]); };
  for (std::size_t i = 0; i < schedule.units.size();) {
    const std::size_t end =
        end_of_run(schedule, i, [&](std::size_t a, std::size_t b) { return row(a) == row(b); });
    fmt::format_to(out, "  {:20}{}{}\n", run_name(schedule, i, end), row(i),
                   end - i == 1 ? "" : " each");
    i = end;
  }
}

void write_folded_persistent(Out out, const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  std::set<BufferId> written;
  fmt::format_to(out,
                 "\nlives for the whole run; master, exp_avg and exp_avg_sq are the optimizer's\n");
  for (std::size_t i = 0; i < schedule.units.size();) {
    const Unit& unit = schedule.units[i];
    std::vector<std::string> homes;
    for (const BufferId id : homes_of(unit))
      homes.push_back(home_row(schedule, unit, id) + at_text(plan, id));
    fmt::format_to(out, "  {:17} {}\n", unit.name, fmt::join(homes, ", "));
    const auto distance =
        i + 1 < schedule.units.size() ? distance_between(plan, i, i + 1) : std::nullopt;
    const std::size_t end =
        !distance ? i + 1 : end_of_run(schedule, i, [&](std::size_t a, std::size_t b) {
          return distance_between(plan, a, b) == distance;
        });
    if (end - i > 1)
      fmt::format_to(out, "  {:17} the same, {} bytes further each\n",
                     run_name(schedule, i + 1, end), format_count(*distance));
    for (; i < end; ++i)
      for (const BufferId id : homes_of(schedule.units[i])) written.insert(id);
  }
  // Those of the same look stand in one line.
  struct Alike {
    std::string look;
    std::vector<std::string> names, offsets;
  };
  std::vector<Alike> others;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const BufferId id{static_cast<std::uint32_t>(i)};
    const Buffer& buffer = schedule.buffers[i];
    if (!buffer.persistent || written.contains(id)) continue;
    const std::string look =
        fmt::format("{} of {} {} {}", name_of(buffer.kind), name_of(buffer.space),
                    name_of(buffer.type), format_bytes(buffer.size_bytes));
    auto at = std::find_if(others.begin(), others.end(),
                           [&](const Alike& one) { return one.look == look; });
    if (at == others.end()) at = others.insert(at, {.look = look, .names = {}, .offsets = {}});
    at->names.push_back(buffer.name);
    if (i < plan.layout.offset_bytes.size())
      at->offsets.push_back(format_count(plan.layout.offset_bytes[i]));
  }
  for (const Alike& one : others)
    fmt::format_to(out, "  {}: {}{}{}{}\n", fmt::join(one.names, ", "), one.look,
                   one.names.size() == 1 ? "" : " each", one.offsets.empty() ? "" : " at ",
                   fmt::join(one.offsets, " and "));
}

void write_folded_peaks(Out out, const Plan& plan, const OpText& text) {
  if (plan.peaks.empty()) return;
  fmt::format_to(out, "\npeaks\n");
  const auto is_from_start = [](const Peak& peak) { return index(peak.op) == 0; };
  std::vector<bool> is_written(plan.peaks.size(), false);
  for (std::size_t i = 0; i < plan.peaks.size(); ++i) {
    if (is_written[i]) continue;
    const Peak& peak = plan.peaks[i];
    std::vector<std::string_view> segments;
    for (std::size_t other = i; other < plan.peaks.size(); ++other) {
      const Peak& like = plan.peaks[other];
      if (other != i && (like.space != peak.space || like.by_kind != peak.by_kind ||
                         !is_from_start(like) || !is_from_start(peak)))
        continue;
      segments.push_back(name_of(like.segment));
      is_written[other] = true;
    }
    fmt::format_to(out, "  {:11} {:>10} in {}{}{}\n", name_of(peak.space),
                   format_bytes(peak.size_bytes), fmt::join(segments, ", "),
                   segments.size() == 1 ? peak_moment(plan, peak, text) : " from the start",
                   kinds_text(peak));
  }
}

void write_folded_program(Out out, const Program& program) {
  if (program.steps.empty()) return;
  std::vector<std::pair<SegmentKind, std::vector<SegmentKind>>> followers;
  for (const Program::Step& step : program.steps) {
    if (followers.empty() || followers.back().first != step.from)
      followers.push_back({step.from, {}});
    followers.back().second.push_back(step.to);
  }
  const auto names = [](const std::vector<SegmentKind>& kinds) {
    std::vector<std::string_view> said;
    for (const SegmentKind kind : kinds) said.push_back(name_of(kind));
    return fmt::format("{}", fmt::join(said, ", "));
  };
  for (auto& [from, to] : followers) std::sort(to.begin(), to.end());
  fmt::format_to(out, "\nprogram\n");
  std::vector<bool> is_written(followers.size(), false);
  for (std::size_t i = 0; i < followers.size(); ++i) {
    if (is_written[i]) continue;
    std::vector<SegmentKind> from;
    for (std::size_t other = i; other < followers.size(); ++other) {
      if (followers[other].second != followers[i].second) continue;
      from.push_back(followers[other].first);
      is_written[other] = true;
    }
    fmt::format_to(out, "  {} -> {}\n", names(from), names(followers[i].second));
  }
}

}  // namespace underkeel::plan::parts
