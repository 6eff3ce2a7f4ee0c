#include "comm/silence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace underkeel::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Silence::Clock::time_point at(double seconds) {
  return Silence::Clock::time_point{} + time_limit_of(1000 + seconds);
}

TEST(Silence, CountsFromTheBeginOfTheWaitForAPeerNeverHeardOf) {
  Silence early(at(4.9), at(0), time_limit_of(5));
  early.add_missing(1, {});
  EXPECT_THAT(early.overdue(), IsEmpty());
  EXPECT_EQ(early.look_again(), at(5));

  Silence late(at(5.25), at(0), time_limit_of(5));
  late.add_missing(1, {});
  EXPECT_THAT(late.overdue(), ElementsAre(1));
  EXPECT_EQ(late.overdue_s(), 5.25);
}

TEST(Silence, WaitsThreeLimitsForAPeerThatReportsAndOneMoreWhenItDies) {
  Silence reporting(at(15), at(0), time_limit_of(5));
  reporting.add_missing(0, at(14));
  EXPECT_THAT(reporting.overdue(), IsEmpty());
  EXPECT_EQ(reporting.look_again(), at(19));

  Silence dead(at(19), at(0), time_limit_of(5));
  dead.add_missing(0, at(14));
  EXPECT_THAT(dead.overdue(), ElementsAre(0));
  EXPECT_EQ(dead.overdue_s(), 5);
}

TEST(Silence, DoesNotHoldSignsFromBeforeTheWaitAgainstAPeer) {
  Silence silence(at(101), at(100), time_limit_of(5));
  silence.add_missing(2, at(3));

  EXPECT_THAT(silence.overdue(), IsEmpty());
}

TEST(Silence, NamesOnlyTheOverdueAmongTheMissing) {
  Silence silence(at(10), at(0), time_limit_of(5));
  silence.add_missing(0, at(1));
  silence.add_missing(1, at(8));
  silence.add_missing(3, at(4));

  EXPECT_THAT(silence.overdue(), ElementsAre(0, 3));
  EXPECT_EQ(silence.overdue_s(), 6);
}

TEST(Silence, TakesAnyTimeLimit) {
  Silence silence(at(10), at(0), time_limit_of(1e300));
  silence.add_missing(1, {});

  EXPECT_THAT(silence.overdue(), IsEmpty());
  EXPECT_EQ(time_limit_of(-1), Silence::Clock::duration::zero());
}

}  // namespace
}  // namespace underkeel::comm
