#include "report/crowd.h"

#include <gtest/gtest.h>

namespace underkeel::report {
namespace {

TEST(Crowd, SendsTheLongestSilentOfAnAddressAwayThatHasMoreThanItsShare) {
  Crowd crowd({.of_address = 2, .of_all = 8});
  EXPECT_EQ(crowd.add(10, "a"), std::nullopt);
  EXPECT_EQ(crowd.add(11, "b"), std::nullopt);
  EXPECT_EQ(crowd.add(12, "a"), std::nullopt);

  crowd.has_asked(10);

  EXPECT_EQ(crowd.add(13, "a"), 12);
  EXPECT_EQ(crowd.add(14, "a"), 10) << "12 is on its way out and does not count";
  EXPECT_EQ(crowd.count(), 5u);
  crowd.remove(12);
  crowd.remove(10);
  EXPECT_EQ(crowd.count(), 3u);
}

TEST(Crowd, SendsTheLongestSilentOfAllAwayWhenThereAreTooMany) {
  Crowd crowd({.of_address = 2, .of_all = 3});
  crowd.add(10, "a");
  crowd.add(11, "b");
  crowd.add(12, "c");

  crowd.has_asked(10);

  EXPECT_EQ(crowd.add(13, "d"), 11);
  crowd.remove(11);
  EXPECT_EQ(crowd.add(11, "e"), 12) << "a socket's number comes again";
}

}  // namespace
}  // namespace underkeel::report
