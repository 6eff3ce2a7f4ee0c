#include "simulate/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"

namespace underkeel::simulate {

namespace {

using plan::SegmentKind;

double row_fraction_of(const plan::Segment& segment, std::int64_t rows) {
  if (rows == 0) rows = segment.mean_rows;
  if (segment.max_rows == 0 || rows == 0) return 1;
  return static_cast<double>(std::min(rows, segment.max_rows)) /
         static_cast<double>(segment.max_rows);
}

/// Runs a window; returns when it is joined.
double add_window(SimulatedRun& run, const std::vector<SegmentKind>& window) {
  double joined_s = 0;
  for (const SegmentKind kind : window) joined_s = run.add(kind);
  return joined_s;
}

void time_segments(const plan::Plan& plan, const Rates& rates, Simulation& simulation) {
  for (const plan::Segment& segment : plan.schedule.segments) {
    std::vector<std::int64_t> classes = {0};
    if (segment.max_rows > 0) {
      classes.clear();
      for (const std::int64_t rows : plan.schedule.shape_classes)
        if (rows < segment.max_rows) classes.push_back(rows);
      classes.push_back(segment.max_rows);
    }
    for (const std::int64_t rows : classes) {
      SimulatedRun run(plan, rates);
      run.add(segment.kind, rows);
      SegmentTime time{.segment = segment.kind, .rows = rows, .elapsed_s = run.end_s()};
      time.busy_s.assign(plan.schedule.lanes.size(), 0);
      for (const plan::Op& op : segment.ops)
        time.busy_s[index(op.lane)] += seconds_of(op, rates, row_fraction_of(segment, rows));
      simulation.segments.push_back(std::move(time));
    }
  }
}

void time_evaluation(const plan::Plan& plan, const Rates& rates, Simulation& simulation) {
  if (plan.schedule.find(SegmentKind::evaluate) == nullptr) return;
  SimulatedRun run(plan, rates);
  const double first_s = run.add(SegmentKind::evaluate);
  simulation.evaluation_batch_s = run.add(SegmentKind::evaluate) - first_s;
}

void time_step(const plan::Plan& plan, const Rates& rates, Simulation& simulation) {
  // Long windows repeat their middle: two of them show what one costs.
  constexpr std::int64_t shown_steps = 4;
  std::vector<SegmentKind> window = window_of(plan);
  if (window.empty()) return;
  const std::int64_t steps = static_cast<std::int64_t>(window.size()) - 1;
  const std::int64_t left_out = std::max<std::int64_t>(steps - shown_steps, 0);
  window.erase(window.begin() + 1, window.begin() + 1 + left_out);

  SimulatedRun run(plan, rates);
  const double first_s = add_window(run, window);
  double before_s = first_s;
  double middle_s = 0;
  double joined_s = first_s;
  for (const SegmentKind kind : window) {
    before_s = joined_s;
    joined_s = run.add(kind);
    if (kind == SegmentKind::micro_middle) middle_s = joined_s - before_s;
  }
  simulation.update_s = joined_s - before_s;
  simulation.step_s = joined_s - first_s + static_cast<double>(left_out) * middle_s;
  simulation.micro_step_s = (simulation.step_s - simulation.update_s) / static_cast<double>(steps);

  if (plan.schedule.find(SegmentKind::save) == nullptr) return;
  plan::Timeline timeline;
  run.add(SegmentKind::save, 0, &timeline);
  for (const plan::Span& span : timeline.spans)
    simulation.save_s = std::max(simulation.save_s, span.end_s - joined_s);
  // The steps that were left out run before the update, which alone waits for a save.
  const double left_out_s = static_cast<double>(left_out) * middle_s;
  const double longer_s = add_window(run, window) - joined_s - (simulation.step_s - left_out_s);
  simulation.save_wait_s = std::max(0.0, longer_s - left_out_s);
}

}  // namespace

Rates rates_of(const spec::HardwareSpec& hardware, std::int64_t world_size) {
  const std::int64_t nodes = std::max<std::int64_t>(hardware.nodes, 1);
  const auto ranks_on_node =
      static_cast<double>(std::max<std::int64_t>(ceil_div(world_size, nodes), 1));
  const double compute_share = hardware.gpus_per_node > 0 ? 1.0 : ranks_on_node;
  const auto others = static_cast<double>(std::max<std::int64_t>(world_size - 1, 1));
  const double elsewhere = std::max(static_cast<double>(world_size) - ranks_on_node, 0.0);
  return {.matmul_flops_per_s = hardware.matmul_flops_per_s / compute_share,
          .memory_bytes_per_s = hardware.memory_bytes_per_s / compute_share,
          .link_bytes_per_s = hardware.link_bytes_per_s,
          .link_latency_s = hardware.link_latency_s,
          .disk_bytes_per_s = hardware.disk_bytes_per_s / ranks_on_node,
          .network_bytes_per_s = hardware.network_bytes_per_s,
          .network_latency_s = hardware.network_latency_s,
          .network_share = elsewhere / others,
          .other_nodes = static_cast<double>(std::clamp<std::int64_t>(world_size, 1, nodes) - 1),
          .ranks_on_node = ranks_on_node};
}

double seconds_of(const plan::Op& op, const Rates& rates, double row_fraction) {
  const double scale = op.cost.per_row ? row_fraction : 1.0;
  double seconds = std::max(op.cost.flops * scale / rates.matmul_flops_per_s,
                            op.cost.memory_bytes * scale / rates.memory_bytes_per_s);
  if (op.cost.link_bytes > 0) {
    const bool is_exchange = std::holds_alternative<plan::ReduceScatter>(op.body);
    const bool is_gather = std::holds_alternative<plan::Gather>(op.body);
    const double ways = is_gather ? rates.ranks_on_node : 1.0;
    double link_s = op.cost.link_bytes / rates.link_bytes_per_s;
    if (rates.network_share > 0)
      link_s = std::max(
          link_s, op.cost.link_bytes * rates.network_share / (ways * rates.network_bytes_per_s));
    const double hops = is_exchange ? std::min(rates.other_nodes, 1.0) : rates.other_nodes;
    seconds = std::max(seconds, rates.link_latency_s + hops * rates.network_latency_s + link_s);
  }
  if (op.cost.disk_bytes > 0)
    seconds = std::max(seconds, op.cost.disk_bytes / rates.disk_bytes_per_s);
  return seconds;
}

SimulatedRun::SimulatedRun(const plan::Plan& plan, const Rates& rates)
    : plan_(plan),
      rates_(rates),
      lane_free_s_(plan.schedule.lanes.size()),
      entry_end_s_(plan.schedule.entries.size()) {}

double SimulatedRun::add(SegmentKind kind, std::int64_t rows, plan::Timeline* timeline) {
  const plan::Segment* segment = plan_.schedule.find(kind);
  UK_CHECK(segment != nullptr, fmt::format("the plan has no segment {}", name_of(kind)));
  const double row_fraction = row_fraction_of(*segment, rows);
  const double start_s = joined_s_;
  // Entries begun here are waited for by later segments only.
  std::vector<double> entry_end_s = entry_end_s_;
  end_s_.resize(segment->ops.size());
  for (std::size_t i = 0; i < segment->ops.size(); ++i) {
    const plan::Op& op = segment->ops[i];
    double& lane_free_s = lane_free_s_[index(op.lane)];
    double begin_s = std::max(start_s, lane_free_s);
    for (const plan::OpIndex before : op.after) begin_s = std::max(begin_s, end_s_[index(before)]);
    for (const plan::EntryId entry : op.after_entry)
      begin_s = std::max(begin_s, entry_end_s_[index(entry)]);
    const double end_s = begin_s + seconds_of(op, rates_, row_fraction);
    lane_free_s = end_s_[i] = end_s;
    if (op.entry == plan::no_entry) {
      joined_s_ = std::max(joined_s_, end_s);
    } else {
      entry_end_s[index(op.entry)] = std::max(entry_end_s[index(op.entry)], end_s);
    }
    if (timeline != nullptr)
      timeline->spans.push_back({.segment = kind,
                                 .op = plan::OpIndex{static_cast<std::uint32_t>(i)},
                                 .lane = op.lane,
                                 .begin_s = begin_s,
                                 .end_s = end_s});
  }
  entry_end_s_ = std::move(entry_end_s);
  return joined_s_;
}

double SimulatedRun::end_s() const {
  double end_s = joined_s_;
  for (const double entry_end_s : entry_end_s_) end_s = std::max(end_s, entry_end_s);
  return end_s;
}

std::vector<SegmentKind> window_of(const plan::Plan& plan) {
  if (plan.schedule.find(SegmentKind::update) == nullptr) return {};
  std::vector<SegmentKind> window;
  if (plan.accumulation_steps == 1) {
    window = {SegmentKind::micro_only};
  } else {
    window.assign(static_cast<std::size_t>(plan.accumulation_steps), SegmentKind::micro_middle);
    window.front() = SegmentKind::micro_first;
    window.back() = SegmentKind::micro_last;
  }
  window.push_back(SegmentKind::update);
  return window;
}

Simulation simulate(const plan::Plan& plan, const spec::HardwareSpec& hardware) {
  Simulation simulation = simulate_step(plan, hardware);
  time_segments(plan, rates_of(hardware, plan.world_size), simulation);
  return simulation;
}

Simulation simulate_step(const plan::Plan& plan, const spec::HardwareSpec& hardware) {
  Simulation simulation;
  const Rates rates = rates_of(hardware, plan.world_size);
  time_step(plan, rates, simulation);
  time_evaluation(plan, rates, simulation);
  return simulation;
}

}  // namespace underkeel::simulate
