// Each rule on a schedule that keeps it but for one thing.

#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/schedules.h"

namespace underkeel::verify {
namespace {

using plan::lanes::collective;
using plan::lanes::compute;
using plan::lanes::save_copy;
using test::BufferId;
using test::drop_op;
using test::drop_wait;
using test::EntryId;
using test::find_buffer;
using test::find_op;
using test::OpIndex;
using test::ScheduleBuilder;
using test::segment_of;
using test::SegmentKind;
using test::two_layer_zero3;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> sentences(const std::vector<Violation>& violations) {
  std::vector<std::string> found;
  for (const Violation& violation : violations) found.push_back(violation.what);
  return found;
}
std::vector<std::string> sentences(const plan::Schedule& schedule) {
  return sentences(check(schedule));
}

/// One segment with a buffer that a compute operation writes and reads; tests add to it or break it.
struct Small : ScheduleBuilder {
  BufferId x = buffer("x", 4);
  BufferId y = buffer("y", 4, true);
  Small() { segment(SegmentKind::update); }
};

TEST(Verify, AcceptsASoundSchedule) {
  EXPECT_THAT(sentences(two_layer_zero3()), IsEmpty());
}

// --- order

TEST(Verify, NamesTheReadThatRacesItsGather) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  drop_wait(micro, "forward layers.1", "gather layers.1");

  const auto violations = check(schedule);

  ASSERT_EQ(sentences(violations),
            (std::vector<std::string>{"layers.1.full: read races its writer"}));
  EXPECT_EQ(violations[0].op, find_op(micro, "forward layers.1"));
  EXPECT_EQ(violations[0].buffer, find_buffer(schedule, "layers.1.full"));
  EXPECT_EQ(violations[0].segment, SegmentKind::micro_only);
}

TEST(Verify, ARaceNamesBothOperations) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "write x", {}, {s.x});
  const OpIndex reads = s.compute(collective, "read x", {s.x}, {}, {OpIndex{0}});
  s.release(compute, s.x, {reads});

  const auto violations = check(s.schedule);

  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(to_text(s.schedule, violations[0]),
            "update, op 2 `read x`: x: read races its writer (op 1 `write x`)");
}

TEST(Verify, AMissingEdgeIsToldOnce) {
  Small s;
  s.compute(compute, "write y", {}, {s.y});
  s.compute(collective, "read y", {s.y}, {});
  s.compute(collective, "read y again", {s.y}, {});

  EXPECT_THAT(sentences(s.schedule), ElementsAre("y: read races its writer"));
}

TEST(Verify, AWriteFollowsEarlierReadsAndWrites) {
  Small s;
  s.compute(compute, "write y", {}, {s.y});
  s.compute(collective, "write y too", {}, {s.y});
  s.compute(save_copy, "read y", {s.y}, {}, {OpIndex{1}});
  s.compute(compute, "write y again", {}, {s.y});

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("y: write races an earlier write", "y: write races an earlier write",
                          "y: write races an earlier read"));
}

TEST(Verify, OrderPassesThroughAThirdLane) {
  Small s;
  const OpIndex written = s.compute(compute, "write y", {}, {s.y});
  const OpIndex passed = s.compute(save_copy, "other", {}, {}, {written});
  s.compute(collective, "read y", {s.y}, {}, {passed});

  EXPECT_THAT(sentences(s.schedule), IsEmpty());
}

TEST(Verify, AnOperationDoesNotRaceItself) {
  Small s;
  plan::Compute body;
  body.operands = {s.whole(s.y, plan::Access::write), s.whole(s.y, plan::Access::read)};
  s.add(compute, "in place", body);

  EXPECT_THAT(sentences(s.schedule), IsEmpty());
}

TEST(Verify, TheFlagOfAnOperationIsRead) {
  Small s;
  s.compute(compute, "write y", {}, {s.y});
  s.compute(collective, "maybe", {}, {});
  s.last().when = s.y;

  EXPECT_THAT(sentences(s.schedule), ElementsAre("y: read races its writer"));
}

// --- lives

TEST(Verify, AReadNeedsAWrite) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "read x", {s.x}, {});
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is read and nothing has written it"));
}

TEST(Verify, ADroppedGatherIsAReadOfNothing) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  const OpIndex acquired = find_op(micro, "acquire layers.1.full");
  micro.ops[index(find_op(micro, "forward layers.1"))].after.push_back(acquired);
  drop_op(micro, find_op(micro, "gather layers.1"));

  EXPECT_THAT(sentences(schedule),
              ElementsAre("layers.1.full: is read and nothing has written it"));
}

TEST(Verify, AConditionalWriteIsNotEnoughForEveryReader) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "maybe write x", {}, {s.x});
  s.last().when = s.y;
  s.compute(compute, "maybe read x", {s.x}, {});
  s.last().when = s.y;
  s.compute(compute, "read x", {s.x}, {});
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is read where its write may be left out"));
}

TEST(Verify, ARankAloneDoesNotWriteForTheOthers) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "write x on rank 0", {}, {s.x});
  s.last().on = {0};
  s.compute(compute, "read x", {s.x}, {});
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is read where its write may be left out"));
}

TEST(Verify, AUseLiesBetweenAcquireAndRelease) {
  Small s;
  s.compute(compute, "early", {}, {s.x});
  s.acquire(compute, s.x);
  s.release(compute, s.x);
  s.compute(compute, "late", {}, {s.x});

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("x: is used without being acquired", "x: is used after its release"));
}

TEST(Verify, AUseIsOrderedAfterItsAcquire) {
  Small s;
  s.acquire(compute, s.x);
  const OpIndex written = s.compute(collective, "write x", {}, {s.x});
  s.release(compute, s.x, {written});

  const auto violations = check(s.schedule);

  ASSERT_THAT(sentences(violations), ElementsAre("x: use races its acquire"));
  EXPECT_EQ(violations[0].op, written);
}

TEST(Verify, AReleaseFollowsItsAcquireAndEveryUse) {
  Small s;
  const OpIndex acquired = s.acquire(compute, s.x);
  const OpIndex written = s.compute(collective, "write x", {}, {s.x}, {acquired});
  s.compute(save_copy, "read x", {s.x}, {}, {written});
  s.release(compute, s.x);
  const BufferId unused = s.buffer("unused", 4);
  s.acquire(compute, unused);
  s.release(collective, unused);

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("x: release races a write", "x: release races a read",
                          "unused: use races its acquire"));
}

TEST(Verify, WhatIsAcquiredIsReleasedInItsSegment) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  drop_op(micro, find_op(micro, "release layers.1.output"));

  const auto violations = check(schedule);

  EXPECT_THAT(sentences(violations), ElementsAre("layers.1.output: is never released"));
  EXPECT_EQ(violations[0].op, find_op(micro, "acquire layers.1.output"));
}

TEST(Verify, NothingIsAcquiredOrReleasedTwice) {
  Small s;
  s.release(compute, s.x);
  s.acquire(compute, s.x);
  s.acquire(compute, s.x);
  s.release(compute, s.x);
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is released without being acquired",
                                                 "x: is acquired twice", "x: is released twice"));
}

TEST(Verify, ASecondLifeFollowsTheFirst) {
  Small s;
  const OpIndex acquired = s.acquire(compute, s.x);
  s.release(collective, s.x, {acquired});
  s.acquire(compute, s.x);
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is acquired again before its release"));
}

TEST(Verify, ASecondLifeStartsEmpty) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "write x", {}, {s.x});
  s.release(compute, s.x);
  s.acquire(compute, s.x);
  s.compute(compute, "read x", {s.x}, {});
  s.release(compute, s.x);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is read and nothing has written it"));
}

TEST(Verify, PersistentBuffersHaveNoLife) {
  Small s;
  s.acquire(compute, s.y);
  s.release(compute, s.y);

  EXPECT_THAT(sentences(s.schedule), ElementsAre("y: is persistent and cannot be acquired",
                                                 "y: is persistent and cannot be released"));
}

// --- collectives

TEST(Verify, CollectivesHaveOneOrderOnAllRanks) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  plan::Op& moved = micro.ops[index(find_op(micro, "gather layers.1"))];
  moved.lane = save_copy;
  moved.after = {find_op(micro, "acquire layers.1.full")};

  const auto violations = check(schedule);

  ASSERT_THAT(sentences(violations),
              ElementsAre("ranks may meet this collective and an earlier one in different orders"));
  EXPECT_EQ(violations[0].op, find_op(micro, "gather layers.0 again"));
}

TEST(Verify, ACollectiveIsForAllRanks) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  micro.ops[index(find_op(micro, "reduce layers.0"))].on = {0, 1};

  // The reduced gradient is then also missing elsewhere only if nothing else wrote it; backward did.
  EXPECT_THAT(sentences(schedule), ElementsAre("a collective that not every rank runs"));
}

// --- what is in flight between segments

TEST(Verify, AnUpdateWaitsForTheSaveOfItsWeights) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& update = segment_of(schedule, SegmentKind::update);
  update.ops[index(find_op(update, "update layers.1"))].after_entry.clear();

  // Not a legal neighbour of the save: the micro-step lies between, and does not wait.
  EXPECT_THAT(
      sentences(schedule),
      ElementsAre("layers.1.weights: write races `save layers.1`, in flight from an earlier "
                  "segment"));
}

TEST(Verify, ReadsMayRunWithReadsInFlight) {
  plan::Schedule schedule = two_layer_zero3();
  const plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);

  for (const plan::Op& op : micro.ops) EXPECT_TRUE(op.after_entry.empty());
  EXPECT_THAT(sentences(schedule), IsEmpty());
}

TEST(Verify, AnEntryMayMeetItselfRoundALoop) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& save = segment_of(schedule, SegmentKind::save);
  save.ops[0].after_entry.clear();
  schedule.program.steps.push_back({SegmentKind::save, SegmentKind::save});

  // The update waits for both saves on the other ways; on this one the ring is still being read.
  EXPECT_THAT(
      sentences(schedule),
      ElementsAre("save ring: write races `save layers.0`, in flight from an earlier segment",
                  "save ring: write races `save layers.1`, in flight from an earlier "
                  "segment"));
}

TEST(Verify, AWaitByAJoinedOperationEndsAnEntryForLaterSegments) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& update = segment_of(schedule, SegmentKind::update);
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  for (plan::Op& op : update.ops) op.after_entry.clear();
  micro.ops[0].after_entry = {EntryId{0}, EntryId{1}};

  EXPECT_THAT(sentences(schedule), IsEmpty());
}

TEST(Verify, AWaitPassesAlongEdges) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& update = segment_of(schedule, SegmentKind::update);
  for (plan::Op& op : update.ops) op.after_entry.clear();
  update.ops[0].lane = collective;
  update.ops[0].after_entry = {EntryId{0}, EntryId{1}};
  update.ops[1].after = {OpIndex{0}};

  EXPECT_THAT(sentences(schedule), IsEmpty());
}

TEST(Verify, LanesStayInOrderAcrossSegments) {
  ScheduleBuilder s;
  const BufferId y = s.buffer("y", 4, true);
  const EntryId late = s.entry("late write");
  s.segment(SegmentKind::update);
  s.compute(collective, "write y", {}, {y});
  s.last().entry = late;
  s.segment(SegmentKind::evaluate);
  s.compute(collective, "read y", {y}, {});
  s.schedule.program.steps = {{SegmentKind::update, SegmentKind::evaluate}};

  EXPECT_THAT(sentences(s.schedule), IsEmpty());

  s.last().lane = compute;
  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("y: read races `late write`, in flight from an earlier segment"));
}

TEST(Verify, ALaneFinishesOnlyItsOwnPartOfAnEntry) {
  ScheduleBuilder s;
  const BufferId y = s.buffer("y", 4, true);
  const EntryId both = s.entry("on two lanes");
  s.segment(SegmentKind::update);
  s.compute(compute, "fill y", {}, {y});
  const OpIndex first = s.compute(collective, "write y", {}, {y}, {OpIndex{0}});
  s.last().entry = both;
  s.compute(save_copy, "read y", {y}, {}, {first});
  s.last().entry = both;
  s.segment(SegmentKind::evaluate);
  s.compute(collective, "write y again", {}, {y});
  s.schedule.program.steps = {{SegmentKind::update, SegmentKind::evaluate}};

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("y: write races `on two lanes`, in flight from an earlier segment"));
}

TEST(Verify, CollectivesInFlightKeepTheirOrderToo) {
  plan::Schedule schedule = two_layer_zero3();
  ScheduleBuilder s{schedule};
  const EntryId ahead = s.entry("gather ahead");
  const BufferId full = s.buffer("ahead.full", 256, true, plan::BufferKind::gathered);
  s.schedule.segments.insert(s.schedule.segments.begin(), {.kind = SegmentKind::evaluate});
  std::swap(s.schedule.segments.front(), s.schedule.segments.back());
  s.add(save_copy, "gather ahead",
        plan::Gather{test::UnitId{0}, s.schedule.units[0].weights, full, DType::f32});
  s.last().entry = ahead;
  s.schedule.program.steps.push_back({SegmentKind::load, SegmentKind::evaluate});
  s.schedule.program.steps.push_back({SegmentKind::evaluate, SegmentKind::micro_only});

  const auto found = sentences(s.schedule);

  EXPECT_THAT(found, ::testing::Contains("ranks may meet this collective and those of `gather "
                                         "ahead`, in flight from an earlier segment, in different "
                                         "orders"));
}

TEST(Verify, AnEntryTouchesOnlyPersistentBuffers) {
  Small s;
  const EntryId entry = s.entry("late");
  s.acquire(compute, s.x);
  s.compute(compute, "write x", {}, {s.x});
  s.last().entry = entry;
  s.release(compute, s.x);
  s.last().entry = entry;

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("x: may be in flight when the segment ends, but is not persistent",
                          "x: may be in flight when the segment ends, but is not persistent"));
}

TEST(Verify, EntriesAreTheTailOfTheirLane) {
  Small s;
  s.compute(compute, "late", {}, {s.y});
  s.last().entry = s.entry("late");
  s.compute(compute, "joined", {}, {});

  EXPECT_THAT(sentences(s.schedule),
              ElementsAre("follows an entry on its lane without belonging to one"));
}

// --- what earlier segments have written

TEST(Verify, APersistentBufferIsWrittenOnEveryWayToItsReader) {
  plan::Schedule schedule = two_layer_zero3();
  schedule.segments.push_back({.kind = SegmentKind::resume});
  schedule.program.steps.push_back({SegmentKind::resume, SegmentKind::micro_only});

  EXPECT_THAT(sentences(schedule),
              ::testing::Contains("layers.0.weights: is read and nothing has written it"));
}

TEST(Verify, WithoutAProgramNobodySaysWhatCameBefore) {
  plan::Schedule schedule = two_layer_zero3();
  schedule.program.steps.clear();

  EXPECT_THAT(sentences(schedule), IsEmpty());
}

TEST(Verify, WhatIsChangedInPlaceWasNotReadBefore) {
  Small s;
  s.acquire(compute, s.x);
  s.compute(compute, "write x", {}, {s.x});
  plan::Compute change;
  change.operands = {s.whole(s.x, plan::Access::read_write)};
  s.add(compute, "turn x", change);
  s.compute(compute, "read x", {s.x}, {});
  change.accumulate = true;
  s.add(compute, "add to x", change);
  s.compute(compute, "read x again", {s.x}, {});
  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is never released"));

  change.accumulate = false;
  s.add(compute, "turn x again", change);
  s.release(compute, s.x);
  EXPECT_THAT(sentences(s.schedule), ElementsAre("x: is changed in place after it was read"));
}

// --- what ranks hold of it

/// The two layers with whole weights and sharded state: after an update each rank has only its own
/// part of the new weights, until they are gathered in place.
plan::Schedule two_layer_zero1() {
  plan::Schedule schedule = two_layer_zero3();
  for (plan::Unit& unit : schedule.units) {
    unit.weights_sharded = false;
    schedule.buffers[index(unit.weights)].size_bytes *= 2;
  }
  for (const SegmentKind kind : {SegmentKind::load, SegmentKind::update})
    for (std::uint32_t l = 0; l < 2; ++l) {
      const BufferId weights = schedule.units[l].weights;
      test::append(segment_of(schedule, kind), compute,
                   plan::Gather{test::UnitId{l}, weights, weights, DType::f32});
      segment_of(schedule, kind).ops.back().label = "gather whole";
    }
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  plan::Compute& forward =
      std::get<plan::Compute>(micro.ops[index(find_op(micro, "forward layers.1"))].body);
  forward.operands.push_back({.buffer = schedule.units[1].weights});
  return schedule;
}

TEST(Verify, WhatIsUpToDateInPartIsGatheredBeforeItIsReadWhole) {
  EXPECT_THAT(sentences(two_layer_zero1()), IsEmpty());

  for (const SegmentKind kind : {SegmentKind::load, SegmentKind::update}) {
    plan::Schedule schedule = two_layer_zero1();
    segment_of(schedule, kind).ops.pop_back();

    EXPECT_THAT(
        sentences(schedule),
        ElementsAre("layers.1.weights: is read whole where only the rank's own part is up to date"))
        << name_of(kind);
  }
}

TEST(Verify, OneRankAloneIsAlwaysUpToDate) {
  plan::Plan plan;
  plan.schedule = two_layer_zero1();
  plan.layout = test::apart(plan.schedule);
  segment_of(plan.schedule, SegmentKind::update).ops.pop_back();
  plan.world_size = 2;
  EXPECT_EQ(check(plan).size(), 1u);

  plan.world_size = 1;
  EXPECT_THAT(sentences(check(plan)), IsEmpty());
}

TEST(Verify, GradientsAreSummedOverRanksOnceBeforeTheyAreAdded) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  plan::Op& reduce = micro.ops[index(find_op(micro, "reduce layers.1"))];
  const plan::Op original = reduce;
  reduce.body = plan::Publish{plan::Output::totals, find_buffer(schedule, "totals")};
  EXPECT_THAT(
      sentences(schedule),
      ::testing::Contains("layers.1.micro_gradient: is added before it is summed over ranks"));

  reduce = original;
  micro.ops[index(find_op(micro, "reduce layers.0"))].body = original.body;
  EXPECT_THAT(
      sentences(schedule),
      ::testing::Contains("layers.0.micro_gradient: is added before it is summed over ranks"));
}

TEST(Verify, ASecondSumIsTold) {
  plan::Schedule schedule = two_layer_zero3();
  plan::Segment& micro = segment_of(schedule, SegmentKind::micro_only);
  const std::size_t at = index(find_op(micro, "reduce layers.0"));
  plan::Op again = micro.ops[at];
  again.after.clear();
  micro.ops.insert(micro.ops.begin() + static_cast<std::ptrdiff_t>(at) + 1, again);
  for (std::size_t i = at + 2; i < micro.ops.size(); ++i)
    for (OpIndex& before : micro.ops[i].after)
      if (index(before) >= at) before = OpIndex{static_cast<std::uint32_t>(index(before) + 1)};

  EXPECT_THAT(
      sentences(schedule),
      ElementsAre("layers.0.micro_gradient: is read whole where only the rank's own part is "
                  "up to date",
                  "layers.0.micro_gradient: is summed over ranks twice"));
}

}  // namespace
}  // namespace underkeel::verify
