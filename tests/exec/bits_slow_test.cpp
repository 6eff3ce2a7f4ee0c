// Same bits whatever the stage, the recompute level, the threads, the prefetch bounds, and however lanes are
// delayed; a plan without a needed edge fails.

#include <gtest/gtest.h>

#include "exec/short_run.h"

namespace underkeel::test {
namespace {

class BitMatrix : public testing::TestWithParam<std::tuple<int, DType>> {
 protected:
  planner::Request request() const {
    planner::Request made = base_request(std::get<0>(GetParam()));
    made.weight_type = std::get<1>(GetParam());
    return made;
  }
};

TEST_P(BitMatrix, AreEqualAtEveryStageAndRecomputeLevel) {
  const Trace expected = run(planner::make_plan(request()), {});
  ASSERT_EQ(expected.losses.size(), 3u);
  ASSERT_LT(expected.losses[2], expected.losses[0]);
  for (int stage = 0; stage <= 3; ++stage)
    for (const auto level :
         {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
      SCOPED_TRACE(testing::Message()
                   << "stage " << stage << " recompute " << static_cast<int>(level));
      planner::Request changed = request();
      changed.stage = stage;
      changed.recompute = level;
      expect_equal(run(planner::make_plan(changed), {}), expected);
    }
}

TEST_P(BitMatrix, AreEqualForAnyBoundsThreadsLanesAndSaves) {
  const Trace expected = run(planner::make_plan(request()), {});
  planner::Request sharded = request();
  sharded.stage = 3;
  sharded.bounds.param_persistence_elements = 0;
  const plan::Plan plan = planner::make_plan(sharded);
  EngineOptions two_threads;
  two_threads.executor.thread_count = 2;
  EngineOptions serial;
  serial.executor.serial = true;
  EngineOptions delayed;
  delayed.executor.delay_seed = 7;
  expect_equal(run(plan, two_threads), expected);
  expect_equal(run(plan, serial), expected);
  expect_equal(run(plan, delayed), expected);
  expect_equal(run(plan, {}, true), expected);
  sharded.bounds.prefetch_bucket_elements = 1'000'000'000;
  sharded.bounds.max_reuse_distance_elements = 1'000'000'000;
  sharded.bounds.reduce_bucket_elements = 1'000;
  expect_equal(run(planner::make_plan(sharded), delayed, true), expected);
  sharded.bounds.overlap_comm = false;
  sharded.bounds.prefetch_bucket_elements = 0;
  sharded.bounds.max_live_elements = 1;
  expect_equal(run(planner::make_plan(sharded), {}), expected);
}

// The counter-test: lanes that do not wait for a gather compute something else once lanes are delayed.
TEST(Bits, DifferWhenANeededEdgeIsRemoved) {
  planner::Request request = base_request(2);
  request.stage = 3;
  request.bounds.param_persistence_elements = 0;
  plan::Plan plan = planner::make_plan(request);
  EngineOptions delayed;
  delayed.executor.delay_seed = 3;
  const Trace expected = run(plan, delayed);
  for (plan::Segment& segment : plan.schedule.segments)
    for (plan::Op& op : segment.ops)
      std::erase_if(op.after, [&](plan::OpIndex after) {
        return std::holds_alternative<plan::Gather>(segment.ops[index(after)].body);
      });

  const Trace broken = run(plan, delayed);

  EXPECT_NE(broken.losses, expected.losses);
}

// Without masters: what rounds at random is a function of update and element, not of who holds it.
TEST(BitsWithoutMasters, AreEqualAtEveryStageOnEveryNumberOfThreads) {
  for (const std::int64_t world : {1, 3}) {
    planner::Request request = base_request(world);
    request.weight_type = DType::bf16;
    request.accumulate_type = DType::bf16;
    request.keeps_masters = false;
    request.seed = 42;
    const Trace expected = run(planner::make_plan(request), {});
    ASSERT_LT(expected.losses[2], expected.losses[0]);
    for (const auto& [name, values] : expected.weights)
      EXPECT_EQ(name.find(".master"), std::string::npos) << name;
    EngineOptions two_threads;
    two_threads.executor.thread_count = 2;
    two_threads.executor.delay_seed = 7;
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(testing::Message() << world << " ranks, stage " << stage);
      request.stage = stage;
      request.bounds.param_persistence_elements = 0;
      expect_equal(run(planner::make_plan(request), two_threads, true), expected);
    }
    request.seed = 43;
    EXPECT_NE(run(planner::make_plan(request), {}).weights, expected.weights);
  }
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, BitMatrix,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(DType::f32, DType::bf16, DType::f16)));

}  // namespace
}  // namespace underkeel::test
