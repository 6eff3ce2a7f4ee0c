#include "simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/planned.h"
#include "support/schedules.h"

namespace underkeel::simulate {
namespace {

using plan::SegmentKind;
using plan::lanes::collective;
using plan::lanes::compute;
using plan::lanes::save_disk;
using test::BufferId;
using test::OpIndex;
using test::ScheduleBuilder;
using ::testing::DoubleEq;
using ::testing::ElementsAre;

// Simple numbers: a flop, a byte of memory, of the link and of the disk each take a second.
constexpr Rates unit_rates = {.matmul_flops_per_s = 1,
                              .memory_bytes_per_s = 1,
                              .link_bytes_per_s = 1,
                              .link_latency_s = 0.5,
                              .disk_bytes_per_s = 1};

/// Adds operations that take `seconds`.
struct Timed : ScheduleBuilder {
  OpIndex op(plan::LaneId lane, double seconds, std::vector<OpIndex> after = {},
             bool per_row = false) {
    const OpIndex at = compute_nothing(lane, std::move(after));
    last().cost = {.flops = seconds, .per_row = per_row};
    return at;
  }
  OpIndex compute_nothing(plan::LaneId lane, std::vector<OpIndex> after) {
    return compute(lane, "op", {}, {}, std::move(after));
  }
  plan::Plan plan() const {
    plan::Plan made;
    made.schedule = schedule;
    return made;
  }
};

std::vector<std::pair<double, double>> spans_of(const plan::Timeline& timeline) {
  std::vector<std::pair<double, double>> found;
  for (const plan::Span& span : timeline.spans) found.emplace_back(span.begin_s, span.end_s);
  return found;
}

TEST(Simulate, AnOperationTakesItsSlowestPart) {
  plan::Op op;
  op.cost = {.flops = 8, .memory_bytes = 4};
  const Rates rates{.matmul_flops_per_s = 4,
                    .memory_bytes_per_s = 1,
                    .link_bytes_per_s = 2,
                    .link_latency_s = 0.5,
                    .disk_bytes_per_s = 5};
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 4);
  op.cost.flops = 20;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 5);
  op.cost.link_bytes = 10;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 5.5);
  op.cost.disk_bytes = 30;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 6);

  op.cost.disk_bytes = op.cost.link_bytes = 0;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 0.5), 5) << "does not depend on the rows";
  op.cost.per_row = true;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 0.5), 2.5);
}

TEST(Simulate, CpuRanksShareTheirNode) {
  spec::HardwareSpec hardware;
  hardware.nodes = 2;
  hardware.matmul_flops_per_s = 12;
  hardware.memory_bytes_per_s = 24;
  hardware.disk_bytes_per_s = 36;
  hardware.link_bytes_per_s = 7;

  const Rates cpu = rates_of(hardware, 8);
  EXPECT_DOUBLE_EQ(cpu.matmul_flops_per_s, 3);
  EXPECT_DOUBLE_EQ(cpu.memory_bytes_per_s, 6);
  EXPECT_DOUBLE_EQ(cpu.disk_bytes_per_s, 9);
  EXPECT_DOUBLE_EQ(cpu.link_bytes_per_s, 7);

  hardware.gpus_per_node = 4;
  const Rates gpu = rates_of(hardware, 8);
  EXPECT_DOUBLE_EQ(gpu.matmul_flops_per_s, 12);
  EXPECT_DOUBLE_EQ(gpu.disk_bytes_per_s, 9);
}

TEST(Simulate, AGatherSharesTheNetworksOfANodeAndASumHasItsOwn) {
  spec::HardwareSpec hardware;
  hardware.nodes = 3;
  hardware.gpus_per_node = 4;
  hardware.matmul_flops_per_s = hardware.memory_bytes_per_s = 1e9;
  hardware.link_bytes_per_s = 10;
  hardware.link_latency_s = 0;
  hardware.network_bytes_per_s = 1;
  hardware.network_latency_s = 0;
  plan::Op op;
  op.cost.link_bytes = 110;  // from 11 other ranks, 8 of which are on other nodes

  const Rates rates = rates_of(hardware, 12);
  op.body = plan::Gather{};
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 80 / 4.0);
  op.body = plan::ReduceScatter{};
  EXPECT_DOUBLE_EQ(seconds_of(op, rates, 1), 80);
  EXPECT_DOUBLE_EQ(seconds_of(op, rates_of(hardware, 3), 1), 110) << "one rank a node";
  hardware.nodes = 1;
  EXPECT_DOUBLE_EQ(seconds_of(op, rates_of(hardware, 4), 1), 11);
}

TEST(Simulate, EachFurtherNodeAddsItsLatencyToAGatherAndAllOfThemOnceToASum) {
  spec::HardwareSpec hardware;
  hardware.gpus_per_node = 4;
  hardware.matmul_flops_per_s = hardware.memory_bytes_per_s = 1e9;
  hardware.link_bytes_per_s = hardware.network_bytes_per_s = 1e9;
  hardware.link_latency_s = 0.5;
  hardware.network_latency_s = 2;
  plan::Op op;
  op.cost.link_bytes = 1e-9;  // next to nothing

  for (const auto& [nodes, seconds] :
       {std::pair<std::int64_t, double>{1, 0.5}, {2, 2.5}, {5, 8.5}}) {
    hardware.nodes = nodes;
    op.body = plan::Gather{};
    EXPECT_NEAR(seconds_of(op, rates_of(hardware, 4 * nodes), 1), seconds, 1e-9) << nodes;
    op.body = plan::ReduceScatter{};
    EXPECT_NEAR(seconds_of(op, rates_of(hardware, 4 * nodes), 1), nodes > 1 ? 2.5 : 0.5, 1e-9);
  }
  EXPECT_NEAR(seconds_of(op, rates_of(hardware, 1), 1), 0.5, 1e-9) << "all ranks on one node";
}

TEST(Simulate, LanesRunSideBySideAndWaitWhereEdgesSay) {
  Timed s;
  s.segment(SegmentKind::update);
  const OpIndex first = s.op(compute, 2);
  const OpIndex gathered = s.op(collective, 3);
  s.op(compute, 1, {gathered});
  s.op(collective, 4, {first});
  const plan::Plan plan = s.plan();
  SimulatedRun run(plan, unit_rates);
  plan::Timeline timeline;

  EXPECT_DOUBLE_EQ(run.add(SegmentKind::update, 0, &timeline), 7);

  using P = std::pair<double, double>;
  EXPECT_THAT(spans_of(timeline), ElementsAre(P{0, 2}, P{0, 3}, P{3, 4}, P{3, 7}));
  EXPECT_EQ(timeline.spans[3].lane, collective);
  EXPECT_EQ(timeline.spans[3].op, OpIndex{3});
}

TEST(Simulate, ASegmentStartsWhenTheOneBeforeIsJoined) {
  Timed s;
  s.schedule.entries = {{"late"}};
  s.segment(SegmentKind::save);
  s.op(compute, 1);
  s.op(save_disk, 10);
  s.last().entry = plan::EntryId{0};
  s.segment(SegmentKind::update);
  s.op(compute, 2);  // does not wait for the entry
  s.op(collective, 1);
  s.last().after_entry = {plan::EntryId{0}};  // does
  s.op(save_disk, 1);                         // its lane stays in order
  const plan::Plan plan = s.plan();
  SimulatedRun run(plan, unit_rates);

  EXPECT_DOUBLE_EQ(run.add(SegmentKind::save), 1);
  EXPECT_DOUBLE_EQ(run.end_s(), 10);
  plan::Timeline timeline;
  EXPECT_DOUBLE_EQ(run.add(SegmentKind::update, 0, &timeline), 11);

  using P = std::pair<double, double>;
  EXPECT_THAT(spans_of(timeline), ElementsAre(P{1, 3}, P{10, 11}, P{10, 11}));
}

TEST(Simulate, AWaitMeansTheEntryOfAnEarlierSegment) {
  Timed s;
  s.schedule.entries = {{"late"}};
  s.segment(SegmentKind::update);
  s.op(save_disk, 10);
  s.last().entry = plan::EntryId{0};
  s.op(compute, 1);
  s.last().after_entry = {plan::EntryId{0}};
  const plan::Plan plan = s.plan();
  SimulatedRun run(plan, unit_rates);

  EXPECT_DOUBLE_EQ(run.add(SegmentKind::update), 1);
  EXPECT_DOUBLE_EQ(run.add(SegmentKind::update), 11);
}

/// first 3 s, middle 2 s, last 4 s, update 1 s.
Timed windowed() {
  Timed s;
  for (const auto& [kind, seconds] :
       {std::pair(SegmentKind::micro_first, 3.0), std::pair(SegmentKind::micro_middle, 2.0),
        std::pair(SegmentKind::micro_last, 4.0)}) {
    s.segment(kind, 8);
    s.op(compute, seconds, {}, true);
  }
  s.segment(SegmentKind::update);
  s.op(compute, 1);
  s.schedule.shape_classes = {2, 4, 8};
  return s;
}

spec::HardwareSpec unit_hardware() {
  spec::HardwareSpec hardware;
  hardware.matmul_flops_per_s = 1;
  return hardware;
}

TEST(Simulate, AStepIsAWindowAndItsUpdate) {
  plan::Plan plan = windowed().plan();
  for (const std::int64_t steps : {2, 3, 4, 5, 100}) {
    plan.accumulation_steps = steps;

    const Simulation simulation = simulate(plan, unit_hardware());

    const double micro_s = 3 + 4 + 2.0 * static_cast<double>(steps - 2);
    EXPECT_DOUBLE_EQ(simulation.step_s, micro_s + 1) << steps;
    EXPECT_DOUBLE_EQ(simulation.update_s, 1) << steps;
    EXPECT_DOUBLE_EQ(simulation.micro_step_s, micro_s / static_cast<double>(steps)) << steps;
  }
}

TEST(Simulate, AStepTakesTheTimeOfMeanMicroBatchesWhereTheyAreKnown) {
  plan::Plan plan = windowed().plan();
  plan.accumulation_steps = 3;
  for (plan::Segment& segment : plan.schedule.segments)
    if (segment.max_rows > 0) segment.mean_rows = 2;  // of 8

  const Simulation simulation = simulate(plan, unit_hardware());

  EXPECT_DOUBLE_EQ(simulation.step_s, (3 + 2 + 4) / 4.0 + 1);
  EXPECT_DOUBLE_EQ(simulation.segments[2].elapsed_s, 3) << "the largest class stays what it is";
}

TEST(Simulate, SegmentsAreTimedAtEveryShapeClass) {
  plan::Plan plan = windowed().plan();
  plan.accumulation_steps = 3;

  const Simulation simulation = simulate(plan, unit_hardware());

  ASSERT_EQ(simulation.segments.size(), 10u);
  EXPECT_EQ(simulation.segments[0].rows, 2);
  EXPECT_DOUBLE_EQ(simulation.segments[0].elapsed_s, 0.75);
  EXPECT_DOUBLE_EQ(simulation.segments[2].elapsed_s, 3);
  EXPECT_EQ(simulation.segments[9].rows, 0);
  EXPECT_THAT(simulation.segments[2].busy_s,
              ElementsAre(DoubleEq(3), DoubleEq(0), DoubleEq(0), DoubleEq(0)));
}

/// A save of `disk_s` seconds that the update waits for.
plan::Plan saved(double disk_s) {
  Timed s = windowed();
  s.schedule.entries = {{"save"}};
  s.last().after_entry = {plan::EntryId{0}};
  s.segment(SegmentKind::save);
  s.op(save_disk, disk_s);
  s.last().entry = plan::EntryId{0};
  return s.plan();
}

TEST(Simulate, ASaveRunsUnderTheNextWindowUntilTheUpdateWaits) {
  for (const double disk_s : {4.0, 30.0}) {
    plan::Plan plan = saved(disk_s);
    plan.accumulation_steps = 3;

    const Simulation simulation = simulate(plan, unit_hardware());

    EXPECT_DOUBLE_EQ(simulation.step_s, 10);
    EXPECT_DOUBLE_EQ(simulation.save_s, disk_s);
    EXPECT_DOUBLE_EQ(simulation.save_wait_s, disk_s > 9 ? disk_s - 9 : 0);
  }
}

TEST(Simulate, AllMicroStepsOfALongWindowRunUnderASave) {
  for (const double disk_s : {20.0, 150.0, 500.0}) {
    plan::Plan plan = saved(disk_s);
    plan.accumulation_steps = 100;  // 3 + 98 * 2 + 4 s before the update

    const Simulation simulation = simulate(plan, unit_hardware());

    EXPECT_DOUBLE_EQ(simulation.save_s, disk_s);
    EXPECT_DOUBLE_EQ(simulation.save_wait_s, disk_s > 203 ? disk_s - 203 : 0) << disk_s;
  }
}

TEST(Simulate, BytesOverTimeFollowAcquireAndRelease) {
  Timed s;
  s.buffer("home", 25, true);
  const BufferId x = s.buffer("x", 10);
  const BufferId y = s.buffer("y", 5);
  s.segment(SegmentKind::update);
  s.acquire(compute, x);
  s.op(compute, 2);
  s.acquire(collective, y);
  const OpIndex gathered = s.op(collective, 3);
  s.release(compute, x);
  s.op(compute, 2, {gathered});
  s.release(compute, y);
  const plan::Plan plan = s.plan();
  SimulatedRun run(plan, unit_rates);
  plan::Timeline timeline;
  run.add(SegmentKind::update, 0, &timeline);

  std::vector<std::pair<double, std::int64_t>> curve;
  for (const plan::Moment& moment :
       plan::bytes_over_time(plan.schedule, timeline, plan::MemorySpace::device)) {
    curve.emplace_back(moment.time_s, moment.size_bytes);
    EXPECT_EQ(moment.by_kind[index(plan::BufferKind::activations)], moment.size_bytes);
  }

  using P = std::pair<double, std::int64_t>;
  EXPECT_THAT(curve, ElementsAre(P{0, 160}, P{2, 120}, P{5, 100}));
}

// The bounds of a run must show: on a slow link a gather that is issued earlier shortens the step.
TEST(Simulate, AnEarlierGatherShortensTheStepOnASlowLink) {
  planner::Request request = test::two_layer_request(3);
  spec::HardwareSpec hardware;
  hardware.matmul_flops_per_s = 1e9;
  hardware.link_bytes_per_s = 1e7;
  request.bounds.prefetch_bucket_elements = 0;
  const plan::Plan late = planner::make_plan(request);
  request.bounds.prefetch_bucket_elements = 200'000;
  const plan::Plan early = planner::make_plan(request);

  EXPECT_LT(simulate(early, hardware).step_s, 0.9 * simulate(late, hardware).step_s);
}

}  // namespace
}  // namespace underkeel::simulate
