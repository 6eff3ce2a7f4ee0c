// A plan without load, resume and save tells of a step what the whole plan tells.

#include "planner/steps_alone.h"

#include <gtest/gtest.h>

#include "simulate/simulate.h"
#include "support/planned.h"

namespace underkeel::planner {
namespace {

void expect_same_steps(const Request& request) {
  const plan::Plan whole = make_plan(request);
  const plan::Plan steps = make_plan_of_steps(request);

  EXPECT_EQ(steps.layout.size_bytes, whole.layout.size_bytes);
  EXPECT_EQ(steps.schedule.find(plan::SegmentKind::load), nullptr);
  EXPECT_EQ(steps.schedule.find(plan::SegmentKind::save), nullptr);
  const simulate::Simulation of_whole = simulate::simulate_step(whole, {});
  const simulate::Simulation of_steps = simulate::simulate_step(steps, {});
  EXPECT_DOUBLE_EQ(of_steps.step_s, of_whole.step_s);
  EXPECT_DOUBLE_EQ(of_steps.evaluation_batch_s, of_whole.evaluation_batch_s);
  EXPECT_GT(of_steps.evaluation_batch_s, 0);
}

TEST(StepsAlone, HaveTheSizesAndTimesOfTheWholePlan) {
  for (const bool on_gpu : {false, true})
    for (const int stage : {0, 1, 2, 3})
      for (const std::int64_t accumulation : {1, 4}) {
        SCOPED_TRACE(testing::Message() << "GPU " << on_gpu << ", stage " << stage
                                        << ", accumulation " << accumulation);
        Request request = test::two_layer_request(stage);
        request.on_gpu = on_gpu;
        request.weight_type = DType::bf16;
        request.accumulation_steps = accumulation;
        request.max_evaluation_rows = request.max_rows;
        expect_same_steps(request);
      }
}

}  // namespace
}  // namespace underkeel::planner
