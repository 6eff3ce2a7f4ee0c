#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/units.h"
#include "render/render.h"

namespace underkeel::render {

namespace {

using plan::SegmentKind;

bool is_in(Phase phase, SegmentKind segment) {
  const bool is_micro = segment == SegmentKind::micro_first ||
                        segment == SegmentKind::micro_middle ||
                        segment == SegmentKind::micro_last || segment == SegmentKind::micro_only;
  const bool is_step = is_micro || segment == SegmentKind::update;
  switch (phase) {
    case Phase::load:
      return segment == SegmentKind::load;
    case Phase::resume:
      return segment == SegmentKind::resume;
    case Phase::first_step:
    case Phase::step:
    case Phase::after_save:
      return is_step;
    case Phase::update:
      return segment == SegmentKind::update;
    case Phase::evaluate:
      return segment == SegmentKind::evaluate || segment == SegmentKind::evaluate_end;
    case Phase::save:
      return is_step || segment == SegmentKind::save;
  }
  return false;
}

}  // namespace

const plan::Peak* largest_peak(const plan::Plan& plan, plan::MemorySpace space) {
  const plan::Peak* largest = nullptr;
  for (const plan::Peak& peak : plan.peaks)
    if (peak.space == space && (largest == nullptr || peak.size_bytes > largest->size_bytes))
      largest = &peak;
  return largest;
}

std::optional<SpacePeak> peak_of(const plan::Plan& plan, plan::MemorySpace space) {
  const plan::Peak* largest = largest_peak(plan, space);
  if (largest == nullptr) return std::nullopt;
  SpacePeak peak{.peak_bytes = plan.layout.size_bytes[index(space)],
                 .segment = largest->segment,
                 .by_kind = largest->by_kind};
  peak.by_kind[index(plan::BufferKind::overhead)] += peak.peak_bytes - largest->size_bytes;
  return peak;
}

std::int64_t bytes_of_phase(const plan::Plan& plan, Phase phase, plan::MemorySpace space) {
  std::int64_t most = 0;
  for (const plan::Peak& peak : plan.peaks)
    if (peak.space == space && is_in(phase, peak.segment)) most = std::max(most, peak.size_bytes);
  return most;
}

std::string peak_table(const plan::Plan& plan, const Outlook& outlook) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (int s = 0; s < plan::memory_space_count; ++s) {
    const auto space = static_cast<plan::MemorySpace>(s);
    const std::optional<SpacePeak> peak = peak_of(plan, space);
    if (!peak) continue;
    // Kinds that are nowhere in this space have no column.
    std::vector<std::size_t> kinds;
    for (std::size_t kind = 0; kind < peak->by_kind.size(); ++kind)
      if (std::any_of(plan.peaks.begin(), plan.peaks.end(), [&](const plan::Peak& one) {
            return one.space == space && one.by_kind[kind] > 0;
          }))
        kinds.push_back(kind);
    fmt::format_to(out, "{}{}: {}", text.empty() ? "" : "\n", name_of(space),
                   format_bytes(peak->peak_bytes));
    if (const auto& budget = outlook.budgets[index(space)])
      fmt::format_to(out, " of {} ({})", format_bytes(budget->size_bytes), budget->reason);
    fmt::format_to(out, "\n  {:13}{:>11}", "", "total");
    for (const std::size_t kind : kinds)
      fmt::format_to(out, "{:>13}", name_of(static_cast<plan::BufferKind>(kind)));
    fmt::format_to(out, "\n");
    for (const plan::Peak& one : plan.peaks) {
      if (one.space != space) continue;
      fmt::format_to(out, "  {:13}{:>11}", name_of(one.segment), format_bytes(one.size_bytes));
      for (const std::size_t kind : kinds)
        fmt::format_to(out, "{:>13}",
                       one.by_kind[kind] == 0 ? "-" : format_bytes(one.by_kind[kind]));
      fmt::format_to(out, "\n");
    }
  }
  return text;
}

}  // namespace underkeel::render
