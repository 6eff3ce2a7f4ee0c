#include "report/request.h"

#include <gtest/gtest.h>

namespace underkeel::report {
namespace {

TEST(Request, IsForOneOfTwoPathsUnderANameOfThisMachine) {
  EXPECT_EQ(wanted_of({"GET", "/", "localhost:80"}, "10.0.0.1", true), Wanted::page);
  EXPECT_EQ(wanted_of({"HEAD", "/report.json", "[::1]:80"}, "::1", true), Wanted::figures);
  EXPECT_EQ(wanted_of({"GET", "/", "[fe80::1]"}, "fe80::1", true), Wanted::page);
  EXPECT_EQ(wanted_of({"GET", "/", "10.0.0.1:1"}, "10.0.0.1", true), Wanted::page);
  EXPECT_EQ(wanted_of({"GET", "//", "localhost"}, "::1", true), Wanted::unknown_path);
  EXPECT_EQ(wanted_of({"get", "/", "localhost"}, "::1", true), Wanted::other_method);
  EXPECT_EQ(wanted_of({"GET", "/", "evil.example"}, "::1", true), Wanted::other_name);
  EXPECT_EQ(wanted_of({"GET", "/", "[::1].evil"}, "::1", true), Wanted::other_name);
  EXPECT_EQ(wanted_of({"GET", "/", std::nullopt}, "::1", true), Wanted::other_name);
  EXPECT_EQ(wanted_of({"GET", "/", std::nullopt}, "0.0.0.0", false), Wanted::page);
}

}  // namespace
}  // namespace underkeel::report
