// Which rows of an answer stand beside which.

#include "planner/fitting_runs.h"

#include <gmock/gmock.h>

#include "base/units.h"

namespace underkeel::planner {
namespace {

using plan::MemorySpace;

FittingRun run_of(double step_s, std::int64_t device_bytes, double save_wait_s = 0) {
  FittingRun run;
  run.times = {.step_s = step_s, .save_s = save_wait_s, .save_wait_s = save_wait_s};
  run.peak_bytes[index(MemorySpace::device)] = device_bytes;
  run.node_bytes = gibibyte;
  return run;
}

std::vector<double> steps_of(const std::vector<FittingRun>& runs) {
  std::vector<FittingRun> rows;
  for (const FittingRun& run : runs) insert_run(run, rows);
  std::vector<double> steps;
  for (const FittingRun& row : rows) steps.push_back(row.times.step_s);
  return steps;
}

TEST(FittingRuns, ASlowerRunStandsForLessMemoryAlone) {
  const FittingRun first = run_of(4, 10 * gibibyte);

  EXPECT_THAT(steps_of({run_of(5, 8 * gibibyte), first}), testing::ElementsAre(4, 5));
  EXPECT_THAT(steps_of({run_of(5, 11 * gibibyte), first}), testing::ElementsAre(4));
}

TEST(FittingRuns, LessThanAHundredthOfAMemoryIsNoReason) {
  FittingRun little_less = run_of(5, 10 * gibibyte);
  little_less.node_bytes = gibibyte - 8 * mebibyte;

  EXPECT_THAT(steps_of({run_of(4, 10 * gibibyte), little_less}), testing::ElementsAre(4));
  EXPECT_THAT(steps_of({run_of(4, 10 * gibibyte), run_of(5, 10 * gibibyte - 16 * mebibyte)}),
              testing::ElementsAre(4));
}

TEST(FittingRuns, ShorterSavesCountAsOftenAsTheyAreMade) {
  FittingRun fast = run_of(4, gibibyte, 100), slow = run_of(5, gibibyte, 20);
  const auto with = [&](spec::Cadence strategy, std::int64_t steps) {
    for (FittingRun* run : {&fast, &slow}) {
      run->run.save.strategy = strategy;
      run->run.save.steps = steps;
    }
    return steps_of({fast, slow}).size();
  };

  EXPECT_EQ(with(spec::Cadence::no, 50), 1u);
  EXPECT_EQ(with(spec::Cadence::steps, 100), 1u);  // 5.0 s and 5.2 s of each step
  EXPECT_EQ(with(spec::Cadence::steps, 50), 2u);   // 6.0 s and 5.4 s
  EXPECT_EQ(with(spec::Cadence::epoch, 50), 2u);   // nobody knows how often
}

}  // namespace
}  // namespace underkeel::planner
