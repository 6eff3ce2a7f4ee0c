// The listings of a two-layer model at every stage: a change of the planner is reviewed as their
// difference. UNDERKEEL_UPDATE_GOLDENS=1 writes them anew.

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plan/listing.h"
#include "support/places.h"
#include "support/planned.h"

namespace underkeel::planner {
namespace {

/// Line number and both lines where two texts part.
std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected);
  std::istringstream b(actual);
  std::string a_line;
  std::string b_line;
  for (int line = 1;; ++line) {
    const bool a_ended = !std::getline(a, a_line);
    const bool b_ended = !std::getline(b, b_line);
    if (a_ended && b_ended) return "the same lines";
    if (a_ended != b_ended || a_line != b_line)
      return "line " + std::to_string(line) + "\n  was " + (a_ended ? "the end" : a_line) +
             "\n  is  " + (b_ended ? "the end" : b_line);
  }
}

class ListingGolden : public testing::TestWithParam<int> {};

TEST_P(ListingGolden, IsTheOneThatWasReviewed) {
  Request request = test::two_layer_request(GetParam());
  request.recompute = spec::Recompute::cheap;
  request.accumulation_steps = 1;
  request.max_evaluation_rows = 0;
  request.max_generation_rows = 0;
  const std::string file =
      test::in_source("tests/planner/listings/stage") + std::to_string(GetParam()) + ".txt";

  const std::string listing = plan::listing(make_plan(request));

  if (std::getenv("UNDERKEEL_UPDATE_GOLDENS") != nullptr) std::ofstream(file) << listing;
  std::ostringstream golden;
  golden << std::ifstream(file).rdbuf();
  EXPECT_TRUE(listing == golden.str())
      << file << ", " << first_difference(golden.str(), listing)
      << "\nIf the change is meant: UNDERKEEL_UPDATE_GOLDENS=1, and review the difference.";
}

INSTANTIATE_TEST_SUITE_P(Stages, ListingGolden, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace underkeel::planner
