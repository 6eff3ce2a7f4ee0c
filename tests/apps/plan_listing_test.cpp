#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "apps/command_line.h"
#include "support/case.h"
#include "support/places.h"

namespace underkeel {
namespace {

using test::Ran;
using test::run_underkeel;
using testing::HasSubstr;
using testing::Not;

std::ptrdiff_t line_count(const Ran& ran) {
  return std::count(ran.out.begin(), ran.out.end(), '\n');
}

TEST(PlanListing, IsFoldedUnlessAllIsAskedFor) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});
  const std::string words = "plan " + run.run_file.string() + " --ranks 2 --listing";

  const Ran ran = run_underkeel(words);
  const Ran all = run_underkeel(words + " --all");

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("micro.only"));
  EXPECT_THAT(ran.out, HasSubstr(": each like the one "));
  EXPECT_EQ(all.exit_code, 0) << all.error;
  EXPECT_THAT(all.out, Not(HasSubstr("like the one")));
  EXPECT_GT(line_count(all), 2 * line_count(ran));
}

TEST(PlanListing, OfTheTinyExampleFitsOnAFewScreens) {
  std::filesystem::current_path(test::in_source(""));

  const Ran ran = run_underkeel("plan examples/tiny/finetune.yaml --ranks 2 --listing");

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_LT(line_count(ran), 200);
}

TEST(PlanListing, IsPrintedOfAPlanThatDoesNotFitToo) {
  const auto run = test::complete_case("tied_head", {.with_weights = false});

  const Ran ran =
      run_underkeel("plan " + run.run_file.string() + " --listing --memory device=1MiB");

  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, HasSubstr("micro.only"));
}

}  // namespace
}  // namespace underkeel
