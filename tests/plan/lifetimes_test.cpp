#include "plan/lifetimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/uses.h"
#include "support/schedules.h"

namespace underkeel::plan {
namespace {

using test::ScheduleBuilder;
using ::testing::ElementsAre;

TEST(Lifetimes, RunFromAcquireToReleaseEachTime) {
  ScheduleBuilder s;
  const BufferId x = s.buffer("x", 4);
  const BufferId y = s.buffer("y", 4);
  s.segment(SegmentKind::update);
  s.acquire(lanes::compute, x);
  s.acquire(lanes::compute, y);
  s.release(lanes::compute, x);
  s.acquire(lanes::compute, x);
  s.release(lanes::compute, x);

  const auto lifetimes = lifetimes_of(s.schedule.segments[0]);

  ASSERT_EQ(lifetimes.size(), 3u);
  EXPECT_EQ(lifetimes[0].end, 2u);
  EXPECT_EQ(lifetimes[1].buffer, y);
  EXPECT_EQ(lifetimes[1].end, 5u) << "never released: to the end of the segment";
  EXPECT_EQ(lifetimes[2].begin, 3u);
}

TEST(Lifetimes, LiveBytesCountOneSpace) {
  ScheduleBuilder s;
  s.buffer("home", 100, true);
  const BufferId x = s.buffer("x", 10);
  const BufferId on_host = s.buffer("on host", 1000);
  s.schedule.buffers.back().space = MemorySpace::host;
  s.segment(SegmentKind::update);
  s.acquire(lanes::compute, x);
  s.acquire(lanes::compute, on_host);
  s.release(lanes::compute, x);

  const Segment& segment = s.schedule.segments[0];
  EXPECT_THAT(live_bytes(s.schedule, segment, MemorySpace::device), ElementsAre(440, 440, 400));
  EXPECT_THAT(live_bytes(s.schedule, segment, MemorySpace::host), ElementsAre(0, 4000, 4000));
  EXPECT_EQ(persistent_bytes(s.schedule, MemorySpace::device), 400);
}

TEST(Uses, AnUpdateChangesTheHomesOfItsUnit) {
  const Schedule schedule = test::two_layer_zero3();
  Op op;
  op.body = Update{.unit = UnitId{1}, .gradient = BufferId{1}, .step_values = BufferId{2}};
  op.when = BufferId{3};
  const Unit& unit = schedule.units[1];

  std::vector<std::pair<BufferId, Access>> found;
  for (const Use& use : uses(schedule, op)) found.emplace_back(use.buffer, use.access);

  EXPECT_THAT(
      found,
      ElementsAre(std::pair(BufferId{3}, Access::read), std::pair(BufferId{1}, Access::read),
                  std::pair(BufferId{2}, Access::read), std::pair(unit.moment1, Access::read_write),
                  std::pair(unit.moment2, Access::read_write),
                  std::pair(unit.weights, Access::read_write)));
}

}  // namespace
}  // namespace underkeel::plan
