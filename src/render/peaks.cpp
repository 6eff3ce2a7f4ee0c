#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/op_text.h"
#include "render/render.h"

namespace underkeel::render {

namespace {

using plan::SegmentKind;

bool is_in(Phase phase, SegmentKind segment, Saves saves) {
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
      return is_step;
    case Phase::after_save:
      return is_step && saves == Saves::on_the_way;
    case Phase::update:
      return segment == SegmentKind::update;
    case Phase::evaluate:
      return segment == SegmentKind::evaluate || segment == SegmentKind::evaluate_end;
    case Phase::save:
      return (is_step && saves == Saves::on_the_way) ||
             (segment == SegmentKind::save && saves != Saves::never);
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

const plan::Peak* peak_of_phase(const plan::Plan& plan, Phase phase, plan::MemorySpace space,
                                Saves saves) {
  // A run that saves nothing has no save to be in or behind.
  if ((phase == Phase::save || phase == Phase::after_save) &&
      plan.schedule.find(SegmentKind::save) == nullptr)
    return nullptr;
  const plan::Peak* largest = nullptr;
  for (const plan::Peak& peak : plan.peaks)
    if (peak.space == space && is_in(phase, peak.segment, saves) &&
        (largest == nullptr || peak.size_bytes > largest->size_bytes))
      largest = &peak;
  return largest;
}

std::int64_t bytes_of_phase(const plan::Plan& plan, Phase phase, plan::MemorySpace space,
                            Saves saves) {
  const plan::Peak* peak = peak_of_phase(plan, phase, space, saves);
  return peak == nullptr ? 0 : peak->size_bytes;
}

namespace {

constexpr std::pair<Phase, std::string_view> phases[] = {{Phase::load, "load"},
                                                         {Phase::resume, "resume"},
                                                         {Phase::first_step, "first step"},
                                                         {Phase::step, "later steps"},
                                                         {Phase::update, "update"},
                                                         {Phase::evaluate, "evaluation"},
                                                         {Phase::save, "during a save"},
                                                         {Phase::after_save, "after a save"}};

/// "micro.only, 0174 acquire head.dlogits"; the segment alone where it never holds more than at its start.
std::string moment_text(const plan::Plan& plan, const plan::OpText& text, const plan::Peak& peak) {
  const plan::Segment& segment = *plan.schedule.find(peak.segment);
  if (index(peak.op) == 0 || segment.ops.empty())
    return fmt::format("{}, all through", name_of(peak.segment));
  return fmt::format("{}, {:04} {}", name_of(peak.segment), index(peak.op),
                     text.name_of(segment.ops[index(peak.op)]));
}

/// One unit for all figures of a table, and the digits behind the point.
struct Scale {
  std::string_view unit = "B";
  double unit_bytes = 1;
  int digits = 0;

  double tick_bytes() const { return unit_bytes / std::pow(10.0, digits); }
  std::int64_t ticks(std::int64_t size_bytes) const {
    return std::llround(static_cast<double>(size_bytes) / tick_bytes());
  }
  std::string text(std::int64_t tick_count) const {
    return fmt::format("{:.{}f}", static_cast<double>(tick_count) / std::pow(10.0, digits), digits);
  }
};

Scale scale_for(std::int64_t largest_bytes) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  Scale scale;
  for (const std::string_view unit : units) {
    if (static_cast<double>(largest_bytes) < scale.unit_bytes * 1023.5) break;
    scale = {.unit = unit, .unit_bytes = scale.unit_bytes * 1024, .digits = 2};
  }
  if (scale.digits > 0 && static_cast<double>(largest_bytes) >= 99.995 * scale.unit_bytes)
    scale.digits = 1;
  return scale;
}

/// What holds a peak, by kind, rounded so that it adds up to the rounded peak: those that rounding down takes most from
/// are rounded up.
std::array<std::int64_t, plan::buffer_kind_count> parts_in_ticks(const Scale& scale,
                                                                 const plan::Peak& peak) {
  std::array<std::int64_t, plan::buffer_kind_count> ticks{};
  std::array<double, plan::buffer_kind_count> lost{};
  std::int64_t missing = scale.ticks(peak.size_bytes);
  for (std::size_t kind = 0; kind < ticks.size(); ++kind) {
    const double exact = static_cast<double>(peak.by_kind[kind]) / scale.tick_bytes();
    ticks[kind] = static_cast<std::int64_t>(exact);
    lost[kind] = exact - static_cast<double>(ticks[kind]);
    missing -= ticks[kind];
  }
  for (; missing > 0; --missing) {
    const auto most = std::max_element(lost.begin(), lost.end());
    ++ticks[static_cast<std::size_t>(most - lost.begin())];
    *most = 0;
  }
  return ticks;
}

}  // namespace

std::vector<PhaseRow> phase_rows(const plan::Plan& plan, plan::MemorySpace space, Saves saves) {
  std::vector<PhaseRow> rows;
  for (const auto& [phase, name] : phases) {
    const plan::Peak* largest = peak_of_phase(plan, phase, space, saves);
    if (largest == nullptr) continue;
    const bool is_last = phase == Phase::save && saves == Saves::at_the_end;
    PhaseRow row{.name = is_last ? "final model" : name, .peak = largest};
    for (const plan::Peak& peak : plan.peaks)
      if (peak.space == space && is_in(phase, peak.segment, saves))
        row.segments.push_back(peak.segment);
    rows.push_back(std::move(row));
  }
  for (const plan::Peak& peak : plan.peaks)
    if (peak.space == space &&
        std::none_of(std::begin(phases), std::end(phases), [&](const auto& entry) {
          return is_in(entry.first, peak.segment, Saves::on_the_way);
        }))
      rows.push_back({.name = name_of(peak.segment), .peak = &peak, .segments = {peak.segment}});
  return rows;
}

std::string peak_table(const plan::Plan& plan, const Outlook& outlook) {
  std::string text;
  const auto out = std::back_inserter(text);
  const plan::OpText ops(plan.schedule);
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
    // The rows below are of buffers alone.
    const std::int64_t held = largest_peak(plan, space)->size_bytes;
    if (format_bytes(held) != format_bytes(peak->peak_bytes))
      fmt::format_to(out, " ({} of buffers and {} of gaps between them)", format_bytes(held),
                     format_bytes(peak->peak_bytes - held));
    if (const auto& budget = outlook.budgets[index(space)])
      fmt::format_to(out, " of {} ({})", format_bytes(budget->size_bytes), budget->reason);
    const Scale scale = scale_for(held);
    fmt::format_to(out, "\n  {:13}{:>9}", fmt::format("in {}", scale.unit), "total");
    for (const std::size_t kind : kinds)
      fmt::format_to(out, "{:>13}", name_of(static_cast<plan::BufferKind>(kind)));
    fmt::format_to(out, "  most is held at\n");
    for (const PhaseRow& row : phase_rows(plan, space, outlook.saves)) {
      fmt::format_to(out, "  {:13}{:>9}", row.name, scale.text(scale.ticks(row.peak->size_bytes)));
      const auto ticks = parts_in_ticks(scale, *row.peak);
      for (const std::size_t kind : kinds)
        fmt::format_to(out, "{:>13}", row.peak->by_kind[kind] == 0 ? "-" : scale.text(ticks[kind]));
      fmt::format_to(out, "  {}\n", moment_text(plan, ops, *row.peak));
    }
  }
  return text;
}

}  // namespace underkeel::render
