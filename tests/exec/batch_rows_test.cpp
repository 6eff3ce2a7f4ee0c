// A batch beyond what was planned ends the process by name: nothing is written outside its buffers.

#include <gmock/gmock.h>

#include "exec/bind.h"
#include "exec/warm_up.h"
#include "support/engine.h"
#include "support/planned.h"

namespace underkeel::exec {
namespace {

/// Evaluation batches are smaller than the largest shape class.
plan::Plan small_plan() {
  planner::Request request = test::two_layer_request(0, 1);
  request.weight_type = DType::f32;
  request.accumulate_type = DType::f32;
  request.accumulation_steps = 1;
  request.max_rows = 64;
  request.max_evaluation_rows = 20;
  return planner::make_plan(request);
}

test::FlatBatch batch_of_rows(std::int64_t rows) {
  test::FlatBatch batch;
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(1);
    batch.targets.push_back(2);
    batch.positions.push_back(static_cast<std::int32_t>(row));
  }
  batch.sequence_starts = {0, static_cast<std::int32_t>(rows)};
  return batch;
}

TEST(ClassOfABatch, IsCutAtTheLargestBatchOfItsSegment) {
  const plan::Plan plan = small_plan();
  const plan::Segment& evaluate = *plan.schedule.find(plan::SegmentKind::evaluate);

  EXPECT_EQ(class_of(plan.schedule, evaluate, 0), 0);
  EXPECT_EQ(class_of(plan.schedule, evaluate, 16), 16);
  EXPECT_EQ(class_of(plan.schedule, evaluate, 17), 20);
  EXPECT_EQ(class_of(plan.schedule, evaluate, 20), 20);
}

TEST(ClassOfABatchDeathTest, EndsTheProcessBeyondTheLargestOfItsSegment) {
  const plan::Plan plan = small_plan();
  const plan::Segment& evaluate = *plan.schedule.find(plan::SegmentKind::evaluate);
  const plan::Segment& micro = *plan.schedule.find(plan::SegmentKind::micro_only);

  // It would still fit a shape class, that of training.
  EXPECT_DEATH(class_of(plan.schedule, evaluate, 21),
               "a micro-batch of 21 rows: segment evaluate is planned for 20 at most");
  EXPECT_DEATH(class_of(plan.schedule, micro, 65),
               "a micro-batch of 65 rows: segment micro.only is planned for 64 at most");
}

TEST(ExecutorDeathTest, RunsNoBatchBeyondThePlan) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](std::int64_t rows) {
    test::run_ranks(small_plan(), {}, [&](test::Rank& rank) {
      const test::FlatBatch batch = batch_of_rows(rows);
      (void)rank.executor.run(plan::SegmentKind::evaluate, test::inputs_of(batch, rows));
    });
  };

  run(20);
  EXPECT_DEATH(run(21), "a micro-batch of 21 rows: segment evaluate is planned for 20 at most");
}

TEST(ClassesToTime, BeginWithThoseThatAreRunMost) {
  plan::Schedule schedule;
  schedule.shape_classes = {128, 256, 384, 512};
  schedule.segments = {{.kind = plan::SegmentKind::load},
                       {.kind = plan::SegmentKind::micro_only, .max_rows = 512}};
  const auto unknown = classes_to_time(schedule);

  schedule.segments[1].mean_rows = 200;
  const auto known = classes_to_time(schedule);

  EXPECT_THAT(unknown, testing::ElementsAre(512, 384, 256, 128));
  EXPECT_THAT(known, testing::ElementsAre(256, 384, 128, 512));
}

}  // namespace
}  // namespace underkeel::exec
