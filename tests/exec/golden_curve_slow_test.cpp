// Many AdamW steps with clipping, accumulation and a cosine schedule against transformers.

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

planner::Request request_of_curve(const CurveSettings& curve, const std::filesystem::path& folder,
                                  DType weight_type) {
  std::int64_t max_rows = 0;
  for (const FlatBatch& batch : curve.batches) max_rows = std::max(max_rows, batch.row_count());
  planner::Request request = request_for(value_of(spec::read_model_config(folder)), max_rows);
  request.weight_type = weight_type;
  request.accumulation_steps = curve.accumulation_steps;
  request.recompute = spec::Recompute::cheap;
  request.optimizer.learning_rate = curve.learning_rate;
  request.optimizer.beta1 = curve.beta1;
  request.optimizer.beta2 = curve.beta2;
  request.optimizer.epsilon = curve.epsilon;
  request.optimizer.weight_decay = curve.weight_decay;
  request.optimizer.max_grad_norm = curve.max_grad_norm;
  request.optimizer.schedule = spec::LearningRateSchedule::cosine;
  request.optimizer.warmup_steps = curve.warmup_steps;
  return request;
}

plan::SegmentKind kind_of(std::int64_t micro, std::int64_t count) {
  if (count == 1) return plan::SegmentKind::micro_only;
  if (micro == 0) return plan::SegmentKind::micro_first;
  return micro + 1 == count ? plan::SegmentKind::micro_last : plan::SegmentKind::micro_middle;
}

struct StepResult {
  double loss = 0;
  double norm = 0;
};

/// Runs every step of the curve; `after` sees the rank once they are done.
std::vector<StepResult> run_curve(const CurveSettings& curve, const std::filesystem::path& folder,
                                  DType weight_type, const std::function<void(Rank&)>& after) {
  const planner::Request request = request_of_curve(curve, folder, weight_type);
  const plan::Plan plan = planner::make_plan(request);
  EngineOptions options;
  options.kernels = &kernels::cpu_kernels();
  std::vector<StepResult> results;
  run_ranks(plan, options, [&](Rank& rank) {
    load_weights(rank, folder);
    std::size_t next = 0;
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
      results.push_back({.loss = outputs.totals[plan::total_loss] / static_cast<double>(targets),
                         .norm = outputs.clip[0]});
    }
    after(rank);
  });
  return results;
}

class GoldenCurveTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCurveTest, LossesAndFinalWeightsFollowTransformers) {
  const GoldenCurve curve = read_golden_curve(GetParam());

  const auto results = run_curve(curve, curve.folder, DType::f32, [&](Rank& rank) {
    for (const auto& [parameter, expected] : curve.final_weights)
      EXPECT_LT(relative_distance(whole_values(rank, parameter, &plan::Unit::weights),
                                  expected.as_f32(), 0),
                1e-5)
          << parameter;
  });

  ASSERT_EQ(results.size(), static_cast<std::size_t>(curve.steps));
  for (std::size_t step = 0; step < results.size(); ++step) {
    ASSERT_NEAR(results[step].loss, curve.losses[step], 1e-5 * curve.losses[step]) << step;
    ASSERT_NEAR(results[step].norm, curve.gradient_norms[step], 1e-4 * curve.gradient_norms[step])
        << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenCurveTest, testing::ValuesIn(golden_curve_names()));

// bf16 moves transformers' losses by up to `loss_spread`; ours may be moved by twice as much.
TEST(GoldenBf16Test, LossesStayWithinTwiceTheSpreadOfTransformers) {
  const GoldenBf16 golden = read_golden_bf16();
  ASSERT_EQ(golden.starts.size(), 5u);

  for (const GoldenBf16::Start& start : golden.starts) {
    SCOPED_TRACE(start.folder.string());
    const auto results = run_curve(golden, start.folder, DType::bf16, [](Rank&) {});

    double spread = 0;
    for (std::size_t step = 0; step < results.size(); ++step) {
      spread = std::max(spread, golden.loss_spread[step]);
      ASSERT_NEAR(results[step].loss, start.f32_losses[step], 2 * spread * start.f32_losses[step])
          << step;
    }
  }
}

}  // namespace
}  // namespace underkeel::test
