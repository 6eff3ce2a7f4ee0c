// A hundred AdamW steps with clipping, accumulation and a cosine schedule against transformers.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"
#include "train/learning_rate.h"

namespace underkeel::test {
namespace {

spec::OptimizerConfig optimizer_of(const GoldenCurve& curve) {
  spec::OptimizerConfig optimizer;
  optimizer.learning_rate = curve.learning_rate;
  optimizer.beta1 = curve.beta1;
  optimizer.beta2 = curve.beta2;
  optimizer.epsilon = curve.epsilon;
  optimizer.weight_decay = curve.weight_decay;
  optimizer.max_grad_norm = curve.max_grad_norm;
  optimizer.schedule = spec::LearningRateSchedule::cosine;
  optimizer.warmup_steps = curve.warmup_steps;
  return optimizer;
}

plan::SegmentKind kind_of(std::int64_t micro, std::int64_t count) {
  if (count == 1) return plan::SegmentKind::micro_only;
  if (micro == 0) return plan::SegmentKind::micro_first;
  return micro + 1 == count ? plan::SegmentKind::micro_last : plan::SegmentKind::micro_middle;
}

class GoldenCurveTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCurveTest, LossesAndFinalWeightsFollowTransformers) {
  const GoldenCurve curve = read_golden_curve(GetParam());
  std::int64_t max_rows = 0;
  for (const FlatBatch& batch : curve.batches) max_rows = std::max(max_rows, batch.row_count());
  planner::Request request = request_for(value_of(spec::read_model_config(curve.folder)), max_rows);
  request.accumulation_steps = curve.accumulation_steps;
  request.optimizer = optimizer_of(curve);
  request.recompute = spec::Recompute::cheap;
  const plan::Plan plan = planner::make_plan(request);
  EngineOptions options;
  options.kernels = &kernels::cpu_kernels();

  run_ranks(plan, options, [&](Rank& rank) {
    load_weights(rank, curve.folder);
    std::size_t next = 0;
    double spread = 0;
    for (std::int64_t step = 0; step < curve.steps; ++step) {
      std::vector<const FlatBatch*> window;
      std::int64_t targets = 0;
      for (std::int64_t i = 0; i < curve.accumulation_steps; ++i) {
        window.push_back(&curve.batches[next++ % curve.batches.size()]);
        targets += window.back()->trained_count();
      }
      for (std::int64_t i = 0; i < curve.accumulation_steps; ++i)
        value_of(rank.executor.run(kind_of(i, curve.accumulation_steps),
                                   inputs_of(*window[static_cast<std::size_t>(i)], targets)));
      exec::Inputs update;
      update.step_values = train::step_values(request.optimizer, step, curve.steps);
      const exec::Outputs outputs = value_of(rank.executor.run(plan::SegmentKind::update, update));

      const auto at = static_cast<std::size_t>(step);
      const double loss = outputs.totals[plan::total_loss] / static_cast<double>(targets);
      // Within 1e-5, or within what transformers' own attention variants have differed by so far.
      spread = std::max(spread, curve.loss_spread[at]);
      const double bound = std::max(1e-5, spread);
      ASSERT_NEAR(loss, curve.losses[at], bound * curve.losses[at]) << "step " << step;
      ASSERT_NEAR(outputs.clip[0], curve.gradient_norms[at], 1e-3 * curve.gradient_norms[at])
          << "step " << step;
    }
    for (const auto& [parameter, expected] : curve.final_weights)
      EXPECT_LT(relative_distance(whole_values(rank, parameter, &plan::Unit::weights),
                                  expected.as_f32(), 0),
                1e-4)
          << parameter;
  });
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenCurveTest, testing::ValuesIn(golden_curve_names()));

}  // namespace
}  // namespace underkeel::test
