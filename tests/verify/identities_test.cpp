// Rules that one operation can break on its own, and those of the layout.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "plan/lifetimes.h"
#include "support/schedules.h"
#include "verify/verify.h"

namespace underkeel::verify {
namespace {

using plan::lanes::collective;
using plan::lanes::compute;
using test::BufferId;
using test::find_buffer;
using test::find_op;
using test::OpIndex;
using test::ScheduleBuilder;
using test::segment_of;
using test::SegmentKind;
using test::two_layer_zero3;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <class Checked>
std::vector<std::string> sentences(const Checked& checked) {
  std::vector<std::string> found;
  for (const Violation& violation : check(checked)) found.push_back(violation.what);
  return found;
}

plan::Op& micro_op(plan::Schedule& schedule, std::string_view label) {
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  return micro.ops[index(find_op(micro, label))];
}

// --- identities

TEST(VerifyIdentities, EdgesPointBackToOtherLanes) {
  plan::Schedule schedule = two_layer_zero3();
  micro_op(schedule, "feed tokens").after = {OpIndex{5}, OpIndex{4'000}};
  micro_op(schedule, "forward layers.0").after.push_back(OpIndex{5});

  EXPECT_THAT(sentences(schedule), ElementsAre("waits for op 5, which is not earlier",
                                               "waits for op 4000, which is not earlier",
                                               "waits for op 5 of its own lane"));
}

TEST(VerifyIdentities, EveryIdentityExists) {
  plan::Schedule schedule = two_layer_zero3();
  const BufferId no_such{77};
  schedule.units[0].moment2 = no_such;
  schedule.program.steps.push_back({SegmentKind::save, SegmentKind::generate});
  schedule.segments.push_back({.kind = SegmentKind::save});
  plan::Op& tokens = micro_op(schedule, "feed tokens");
  tokens.lane = test::LaneId{9};
  tokens.when = no_such;
  tokens.body = plan::Feed{plan::Input::tokens, no_such};
  tokens.entry = test::EntryId{8};
  tokens.after_entry = {test::EntryId{7}};
  std::get<plan::Gather>(micro_op(schedule, "gather layers.1").body).unit = test::UnitId{6};

  EXPECT_THAT(
      sentences(schedule),
      ElementsAre("layers.0: home 77 is not a buffer", "there are 2 segments save",
                  "the program goes from save to generate, but there is no generate",
                  "there is no unit 6", "there is no lane 9", "the flag is not a buffer: 77",
                  "where the input goes is not a buffer: 77",
                  "waits for entry 7, which there is not",
                  "belongs to entry 8, which there is not"));
}

TEST(VerifyIdentities, EveryBodyIsLookedAt) {
  const BufferId bad{99};
  const test::UnitId no_unit{99};
  const plan::StatePiece piece{no_unit, plan::StatePart::weights, 0, 1};
  const std::vector<plan::OpBody> bodies = {
      plan::Acquire{bad},
      plan::Release{bad},
      plan::Gather{no_unit, bad, bad},
      plan::ReduceScatter{no_unit, bad, bad},
      plan::AllReduce{no_unit, bad, bad},
      plan::GatherValues{bad, bad},
      plan::Compute{.operands = {{.buffer = bad}}},
      plan::Accumulate{.unit = no_unit, .from = bad, .into = bad},
      plan::SumSquares{no_unit, bad, bad},
      plan::Update{.unit = no_unit, .gradient = bad, .step_values = bad, .clip = bad},
      plan::Feed{plan::Input::tokens, bad},
      plan::Publish{plan::Output::totals, bad},
      plan::CopyOut{piece, bad, bad},
      plan::Save{piece, bad},
      plan::Load{piece, bad},
      plan::CopyIn{piece, bad, bad}};
  const std::vector<std::size_t> wrong_identities = {1, 1, 3, 3, 3, 2, 1, 3,
                                                     3, 4, 1, 1, 3, 2, 2, 3};
  ASSERT_EQ(bodies.size(), std::variant_size_v<plan::OpBody>);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    ScheduleBuilder s;
    s.segment(SegmentKind::update);
    s.add(compute, "op", bodies[i]);

    EXPECT_EQ(check(s.schedule).size(), wrong_identities[i]) << "body " << i;
  }
}

// --- sizes

TEST(VerifySizes, OperandsLieInsideTheirBuffers) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 8 * 16, true);
  s.segment(SegmentKind::micro_only, 8);
  const auto with = [&](std::int64_t begin, std::int64_t count, std::int64_t offset,
                        std::int64_t stride) {
    plan::Compute body;
    body.operands = {{.buffer = x,
                      .access = plan::Access::write,
                      .offset_bytes = offset,
                      .rows = {.of_batch = true, .begin = begin, .count = count},
                      .columns = 4,
                      .row_stride = stride}};
    s.add(compute, "op", body);
  };
  with(0, 8, 12 * 4, 16);       // the last columns
  with(4, 4, -4 * 16 * 4, 16);  // a chunk's own buffer
  EXPECT_THAT(sentences(s.schedule), IsEmpty());

  with(0, 8, 13 * 4, 16);
  with(0, 8, -4, 16);
  with(4, 5, 0, 4);
  with(0, 8, 0, 3);
  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("x: an operand spans bytes 52 to 516 of 512",
                          "x: an operand spans bytes -4 to 460 of 512",
                          "x: rows up to 9 of a micro-batch of at most 8",
                          "x: an operand has a negative size, or rows that overlap"));
}

TEST(VerifySizes, ExtraRowsCount) {
  ScheduleBuilder s;
  const BufferId starts = s.buffer("sequence_starts", 8, true);
  s.segment(SegmentKind::micro_only, 8);
  plan::Compute body;
  body.operands = {{.buffer = starts,
                    .access = plan::Access::write,
                    .rows = {.of_batch = true, .count = 8, .extra = 1},
                    .columns = 1,
                    .row_stride = 1}};
  s.add(compute, "op", body);

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("sequence_starts: an operand spans bytes 0 to 36 of 32"));
}

TEST(VerifySizes, OperandsHaveTheTypeOfTheirBuffer) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 8, true);
  const BufferId scratch = s.buffer("scratch", 8, true, plan::BufferKind::workspace);
  s.segment(SegmentKind::update);
  plan::Compute body;
  body.operands = {s.whole(x, plan::Access::write), s.whole(scratch, plan::Access::write)};
  for (plan::Operand& operand : body.operands) operand.type = DType::bf16;
  s.add(compute, "op", body);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: holds f32, used as bf16"));
}

TEST(VerifySizes, WhatAddsReadsItsOutput) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 8, true);
  s.segment(SegmentKind::update);
  plan::Compute body{.operands = {s.whole(x, plan::Access::write)}, .accumulate = true};
  s.add(compute, "op", body);

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("adds to an output, but no operand is both read and written"));
}

TEST(VerifySizes, CollectivesFitTheirUnit) {
  plan::Schedule schedule = two_layer_zero3();
  schedule.buffers[index(find_buffer(schedule, "layers.0.full"))].size_bytes -= 4;
  std::get<plan::Gather>(micro_op(schedule, "gather layers.1").body).type = DType::bf16;
  auto& reduce = std::get<plan::ReduceScatter>(micro_op(schedule, "reduce layers.1").body);
  reduce.staging = reduce.full;

  std::vector<std::string> found;
  for (const std::string& what : sentences(schedule))
    if (what.find("operand") == std::string::npos) found.push_back(what);
  EXPECT_THAT(found, ElementsAre("layers.0.full: holds 1,020 bytes, this needs 1,024",
                                 "layers.1.full: holds f32, used as bf16",
                                 "layers.1.weights: holds f32, used as bf16",
                                 "layers.0.full: holds 1,020 bytes, this needs 1,024",
                                 "layers.1.micro_gradient: is its own staging buffer"));
}

TEST(VerifySizes, StateComesFromItsHome) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& save = segment_of(schedule, SegmentKind::save);
  auto& first = std::get<plan::CopyOut>(save.ops[0].body);
  first.state = schedule.units[0].moment1;
  first.piece.end = 129;
  std::get<plan::Save>(save.ops[1].body).piece.part = plan::StatePart::master;
  plan::Segment& update = segment_of(schedule, SegmentKind::update);
  std::get<plan::Update>(update.ops[1].body).gradient = schedule.units[1].gradient;

  EXPECT_THAT(sentences(schedule),
              ElementsAre("layers.1.gradient: is not the home of the gradient of layers.0",
                          "elements 0 to 129 of a shard of 128 elements of layers.0",
                          "save ring: holds 512 bytes, this needs 516",
                          "layers.0.exp_avg: is not the home of the weights of layers.0",
                          "layers.0 has no master"));
}

TEST(VerifySizes, AComputationReadsWeightsAndTouchesNoOtherHome) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& update = segment_of(schedule, SegmentKind::update);
  const plan::Unit& unit = schedule.units[0];
  for (const BufferId home : {unit.weights, unit.moment1, unit.gradient}) {
    plan::Compute body;
    body.operands = {{.buffer = home}};
    test::append(update, compute, body);
  }
  plan::Compute body;
  body.operands = {{.buffer = unit.weights, .access = plan::Access::write}};
  test::append(update, compute, body);
  body.operands[0].buffer = unit.gradient;
  body.kernel = plan::Kernel::fill;
  test::append(update, compute, body);

  EXPECT_THAT(sentences(schedule),
              ElementsAre("layers.0.exp_avg: is a home that a computation may not touch so",
                          "layers.0.gradient: is a home that a computation may not touch so",
                          "layers.0.weights: is a home that a computation may not touch so"));
}

TEST(VerifySizes, HomesHoldTheirUnit) {
  plan::Schedule schedule = two_layer_zero3();
  schedule.units[1].optimizer_sharded = false;
  schedule.buffers[index(schedule.units[0].moment1)].persistent = false;

  const auto found = sentences(schedule);

  EXPECT_THAT(found,
              ::testing::IsSupersetOf(
                  {"layers.0.exp_avg: is a home and not persistent",
                   "layers.1.exp_avg: holds 512 bytes, 256 elements of layers.1 need 1,024"}));
}

TEST(VerifySizes, SumsHaveASlotForEveryShard) {
  ScheduleBuilder s;
  const BufferId gradient = s.buffer("gradient", 8, true);
  const BufferId sums = s.buffer("sums", 2, true, plan::BufferKind::staging, DType::f64);
  s.schedule.units.push_back({.name = "u", .element_count = 8, .shard_elements = 8});
  s.schedule.units[0].gradient = gradient;
  s.segment(SegmentKind::update);
  s.compute(compute, "fill", {}, {gradient});
  std::get<plan::Compute>(s.last().body).kernel = plan::Kernel::fill;
  s.add(compute, "square", plan::SumSquares{test::UnitId{0}, gradient, sums, 1});
  s.add(compute, "gather", plan::GatherValues{sums, sums, 2});
  EXPECT_THAT(sentences(s.schedule), IsEmpty());

  s.add(compute, "square", plan::SumSquares{test::UnitId{0}, gradient, sums, 2});
  s.add(compute, "gather", plan::GatherValues{sums, sums, 3});
  EXPECT_THAT(sentences(s.schedule), ElementsAre("sums: holds 16 bytes, this needs 24",
                                                 "sums: holds 16 bytes, this needs 24",
                                                 "sums: holds 16 bytes, this needs 24"));
}

TEST(VerifySizes, GradientsAndValuesHaveTheirHomesAndTypes) {
  ScheduleBuilder s;
  const BufferId gradient = s.buffer("gradient", 8, true);
  const BufferId other = s.buffer("other", 8, true);
  const BufferId small = s.buffer("small", 7, true);
  const BufferId floats = s.buffer("floats", 8, true, plan::BufferKind::staging);
  s.schedule.units.push_back({.name = "u", .element_count = 8, .shard_elements = 8});
  s.schedule.units[0].gradient = gradient;
  const test::UnitId unit{0};
  s.segment(SegmentKind::update);
  s.add(compute, "add", plan::Accumulate{.unit = unit, .from = small, .into = other});
  s.add(compute, "square", plan::SumSquares{unit, other, floats, 0});
  s.add(compute, "no slot", plan::SumSquares{unit, gradient, floats, -1});
  s.add(compute, "gather values", plan::GatherValues{floats, other, 1});
  s.add(compute, "gather", plan::Gather{unit, small, other, DType::f32});

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("small: holds 28 bytes, this needs 32",
                          "other: is not the home of the gradient of u",
                          "other: is not the home of the gradient of u",
                          "floats: holds f32, used as f64", "floats: holds f32, used as f64",
                          "floats: a negative slot", "floats: holds f32, used as f64",
                          "other: holds f32, used as f64", "small: holds 28 bytes, this needs 32"));
}

TEST(VerifySizes, ShapeClassesAscend) {
  plan::Schedule schedule = two_layer_zero3();
  schedule.shape_classes = {4, 4, 8};

  EXPECT_THAT(sentences(schedule),
              ElementsAre("shape class 1 has 4 rows, no more than the one before"));
}

// --- layout

plan::Plan two_layer_plan() {
  plan::Plan plan;
  plan.schedule = two_layer_zero3();
  plan.layout = test::apart(plan.schedule);
  plan.world_size = 2;
  return plan;
}

void put_over(plan::Plan& plan, std::string_view moved, std::string_view onto) {
  plan.layout.offset_bytes[index(find_buffer(plan.schedule, moved))] =
      plan.layout.offset_bytes[index(find_buffer(plan.schedule, onto))];
}

TEST(VerifyLayout, AcceptsBuffersApart) {
  EXPECT_THAT(sentences(two_layer_plan()), IsEmpty());
}

TEST(VerifyLayout, OffsetsAreAlignedAndInsideTheBlock) {
  plan::Plan plan = two_layer_plan();
  plan.layout.offset_bytes[index(find_buffer(plan.schedule, "layers.1.output"))] += 4;

  EXPECT_THAT(sentences(plan),
              ElementsAre("layers.1.output: offset 11,460 is no multiple of 64",
                          "layers.1.output: bytes 11,460 to 11,972 are outside the device block of "
                          "11,968"));
}

TEST(VerifyLayout, EveryBufferHasAnOffset) {
  plan::Plan plan = two_layer_plan();
  plan.layout.offset_bytes.pop_back();

  EXPECT_THAT(sentences(plan),
              ElementsAre("the layout has 19 offsets for 20 buffers, aligned to 64"));
}

TEST(VerifyLayout, PersistentBuffersShareNothing) {
  plan::Plan plan = two_layer_plan();
  put_over(plan, "layers.1.gradient", "layers.0.exp_avg");
  put_over(plan, "layers.1.output", "layers.1.exp_avg");

  EXPECT_THAT(sentences(plan),
              ElementsAre("layers.1.gradient: shares bytes with layers.0.exp_avg",
                          "layers.1.output: shares bytes with the persistent layers.1.exp_avg"));
}

TEST(VerifyLayout, LivingBuffersShareNothing) {
  plan::Plan plan = two_layer_plan();
  put_over(plan, "layers.1.full", "layers.0.full");

  EXPECT_THAT(sentences(plan),
              ::testing::Contains("layers.1.full: acquires bytes that layers.0.full still holds"));
}

TEST(VerifyLayout, ATenantFollowsTheReleaseOfTheOneBefore) {
  plan::Plan plan = two_layer_plan();
  put_over(plan, "layers.0.micro_gradient", "layers.1.micro_gradient");
  EXPECT_THAT(sentences(plan), IsEmpty());

  // The staging of the reduction is released on the other lane.
  put_over(plan, "layers.0.micro_gradient", "layers.1.reduce_staging");
  plan::Segment& micro = segment_of(plan.schedule, SegmentKind::micro_only);
  EXPECT_THAT(sentences(plan),
              ElementsAre("layers.0.micro_gradient: acquires bytes before the release of "
                          "layers.1.reduce_staging"));
  micro.ops[index(find_op(micro, "acquire layers.0.micro_gradient"))].after = {
      find_op(micro, "release layers.1.reduce_staging")};
  EXPECT_THAT(sentences(plan), IsEmpty());
}

TEST(VerifyLayout, EveryPieceOfATenantsBytesIsFollowed) {
  ScheduleBuilder s;
  const BufferId wide = s.buffer("wide", 64);
  const BufferId middle = s.buffer("middle", 16);
  const BufferId right = s.buffer("right", 16);
  s.segment(SegmentKind::update);
  const OpIndex acquired = s.acquire(compute, wide);
  const OpIndex released = s.release(collective, wide, {acquired});
  s.acquire(collective, middle);
  s.release(collective, middle);
  s.acquire(compute, right);
  s.release(compute, right);
  plan::Plan plan;
  plan.schedule = s.schedule;
  plan.layout = {.offset_bytes = {0, 64, 128}, .size_bytes = {256}};

  EXPECT_THAT(sentences(plan), ElementsAre("right: acquires bytes before the release of wide"));

  plan.schedule.segments[0].ops[4].after = {released};
  EXPECT_THAT(sentences(plan), IsEmpty());
}

TEST(VerifyLayout, PeaksAreThoseOfTheLists) {
  plan::Plan plan = two_layer_plan();
  const auto live = plan::live_bytes(plan.schedule, *plan.schedule.find(SegmentKind::micro_only),
                                     plan::MemorySpace::device);
  const std::int64_t most = *std::max_element(live.begin(), live.end());
  plan.peaks = {{.segment = SegmentKind::micro_only, .size_bytes = most, .by_kind = {most}}};
  EXPECT_THAT(sentences(plan), IsEmpty());

  plan.peaks[0].size_bytes = 1;
  EXPECT_THAT(sentences(plan),
              ElementsAre("device peaks at " + format_count(most) + " bytes, the plan says 1",
                          "the kinds of the device peak add up to " + format_count(most) +
                              " bytes, not 1"));
}

TEST(VerifyLayout, RanksExist) {
  plan::Plan plan = two_layer_plan();
  micro_op(plan.schedule, "zero totals").on = {2};
  EXPECT_THAT(sentences(plan), ::testing::Contains("runs on rank 2 of 2"));

  micro_op(plan.schedule, "zero totals").on = {0, 1};
  const BufferId totals = find_buffer(plan.schedule, "totals");
  test::append(segment_of(plan.schedule, SegmentKind::load), plan::lanes::compute,
               plan::GatherValues{totals, totals, 2});
  EXPECT_THAT(sentences(plan), ::testing::Contains("totals: holds 16 bytes, this needs 32"));
}

}  // namespace
}  // namespace underkeel::verify
