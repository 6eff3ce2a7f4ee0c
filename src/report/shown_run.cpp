#include "report/shown_run.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "simulate/simulate.h"

namespace underkeel::report {

namespace {

using plan::SegmentKind;

/// The window, without as many of its middle micro-steps as it takes to stay below `most_spans`.
std::vector<SegmentKind> shortened_window(const plan::Plan& plan, std::size_t most_spans) {
  std::vector<SegmentKind> window = simulate::window_of(plan);
  std::size_t spans = 0;
  for (const SegmentKind kind : window) spans += plan.schedule.find(kind)->ops.size();
  const plan::Segment* middle = plan.schedule.find(SegmentKind::micro_middle);
  if (spans <= most_spans || middle == nullptr || middle->ops.empty()) return window;
  constexpr std::size_t fewest_kept = 4;  // first, one middle, last, update
  if (window.size() <= fewest_kept) return window;
  const std::size_t too_many = (spans - most_spans + middle->ops.size() - 1) / middle->ops.size();
  const std::size_t left_out = std::min(too_many, window.size() - fewest_kept);
  window.erase(window.begin() + 1, window.begin() + 1 + static_cast<std::ptrdiff_t>(left_out));
  return window;
}

class Builder {
 public:
  Builder(const plan::Plan& plan, const spec::HardwareSpec& machine)
      : plan_(plan), run_(plan, simulate::rates_of(machine, plan.world_size)) {}

  void add(SegmentKind kind, const std::string& part, std::string name) {
    ShownSegment segment{.kind = kind,
                         .part = part,
                         .name = std::move(name),
                         .first_span = shown_.timeline.spans.size()};
    run_.add(kind, 0, &shown_.timeline);
    segment.span_count = shown_.timeline.spans.size() - segment.first_span;
    segment.begin_s = std::numeric_limits<double>::infinity();
    for (std::size_t i = segment.first_span; i < shown_.timeline.spans.size(); ++i) {
      segment.begin_s = std::min(segment.begin_s, shown_.timeline.spans[i].begin_s);
      segment.end_s = std::max(segment.end_s, shown_.timeline.spans[i].end_s);
    }
    if (segment.span_count > 0) shown_.segments.push_back(std::move(segment));
  }

  /// What shortened_window() left out lies behind the first micro-step.
  void add_window(const std::vector<SegmentKind>& window, const std::string& part) {
    const auto all = static_cast<std::size_t>(plan_.accumulation_steps);
    for (std::size_t i = 0; i < window.size(); ++i)
      add(window[i], part,
          window[i] == SegmentKind::update
              ? "update"
              : fmt::format("micro-step {} of {}", i == 0 ? 1 : i + all - window.size() + 2, all));
  }

  ShownRun& shown() { return shown_; }
  bool has(SegmentKind kind) const { return plan_.schedule.find(kind) != nullptr; }

 private:
  const plan::Plan& plan_;
  simulate::SimulatedRun run_;
  ShownRun shown_;
};

}  // namespace

ShownRun shown_run(const plan::Plan& plan, const spec::HardwareSpec& machine,
                   std::size_t most_spans) {
  Builder builder(plan, machine);
  const std::vector<SegmentKind> window = shortened_window(plan, most_spans / 2);
  builder.shown().micro_steps = window.empty() ? 0 : plan.accumulation_steps;
  builder.shown().shown_micro_steps =
      window.empty() ? 0 : static_cast<std::int64_t>(window.size()) - 1;
  if (builder.has(SegmentKind::load)) builder.add(SegmentKind::load, "load", "load");
  builder.add_window(window, "a step");
  if (!window.empty() && builder.has(SegmentKind::save)) {
    const std::string part = "a step while a save is written";
    builder.add(SegmentKind::save, part, "save");
    builder.add_window(window, part);
  }
  for (const SegmentKind kind : {SegmentKind::evaluate, SegmentKind::evaluate_end})
    if (builder.has(kind)) builder.add(kind, "evaluation", std::string(name_of(kind)));
  return std::move(builder.shown());
}

}  // namespace underkeel::report
