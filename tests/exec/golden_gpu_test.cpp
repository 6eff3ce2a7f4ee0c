// Plans on the GPU: losses, gradients and curves against transformers, equal bits from run to run and at
// every level of recomputation, and not a byte taken after the seal. Skipped where there is no GPU.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "device/gpu.h"
#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"
#include "train/learning_rate.h"

namespace underkeel::test {
namespace {

/// The GPU of this machine, opened once; null without one.
device::Gpu* gpu() {
  static const auto opened = device::open_gpu(0);
  return opened ? opened->get() : nullptr;
}

#define SKIP_WITHOUT_GPU() \
  if (gpu() == nullptr) GTEST_SKIP() << device::open_gpu(0).error().what

EngineOptions on_gpu() {
  EngineOptions options;
  options.kernels = &kernels::cuda_kernels();
  options.executor.gpu = gpu();
  return options;
}

class GoldenStepOnGpu : public testing::TestWithParam<std::tuple<std::string, spec::Recompute>> {};

TEST_P(GoldenStepOnGpu, LossAndGradientsEqualTransformers) {
  SKIP_WITHOUT_GPU();
  const auto& [name, level] = GetParam();
  const Golden golden = read_golden(name);
  planner::Request request =
      request_for(value_of(spec::read_model_config(golden.folder)), golden.batch.row_count());
  request.recompute = level;
  request.on_gpu = true;
  const plan::Plan plan = planner::make_plan(request);

  run_ranks(plan, on_gpu(), [&](Rank& rank) {
    load_weights(rank, golden.folder);
    const std::int64_t targets = golden.batch.trained_count();
    value_of(rank.executor.run(plan::SegmentKind::micro_only, inputs_of(golden.batch, targets)));
    const exec::Outputs outputs = value_of(rank.executor.run(plan::SegmentKind::update, {}));

    const double loss = outputs.totals[plan::total_loss] / static_cast<double>(targets);
    EXPECT_NEAR(loss, golden.loss, 1e-6 * golden.loss);
    EXPECT_NEAR(outputs.clip[0], golden.gradient_norm, 1e-5 * golden.gradient_norm);
    for (const auto& [parameter, expected] : golden.gradients) {
      const double distance =
          relative_distance(whole_values(rank, parameter, &plan::Unit::gradient), expected.as_f32(),
                            1e-4 * golden.gradient_norm);
      EXPECT_LT(distance, std::max(1e-5, 2 * golden.gradient_spread)) << parameter;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenStepOnGpu,
                         testing::Combine(testing::ValuesIn(golden_names()),
                                          testing::Values(spec::Recompute::none,
                                                          spec::Recompute::block)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) +
                                  (std::get<1>(instance.param) == spec::Recompute::none ? "_none"
                                                                                        : "_block");
                         });

planner::Request request_of_curve(const CurveSettings& curve, const std::filesystem::path& folder,
                                  DType weight_type, spec::Recompute level) {
  std::int64_t max_rows = 0;
  for (const FlatBatch& batch : curve.batches) max_rows = std::max(max_rows, batch.row_count());
  planner::Request request = request_for(value_of(spec::read_model_config(folder)), max_rows);
  request.on_gpu = true;
  request.weight_type = weight_type;
  request.accumulation_steps = curve.accumulation_steps;
  request.max_evaluation_rows = max_rows;
  request.recompute = level;
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

/// Takes a save's bytes and keeps none.
struct NoSink final : exec::StateSink {
  std::int64_t element_count = 0;
  Result<void> write(const plan::UnitTensor&, plan::StatePart, std::int64_t begin, std::int64_t end,
                     DType, const void*) override {
    element_count += end - begin;
    return {};
  }
};

struct CurveResult {
  std::vector<double> losses;
  std::vector<double> norms;
  double evaluation_loss = 0;
  std::vector<std::vector<std::byte>> weights;  // by unit
  std::size_t graph_count = 0;
  std::vector<std::int64_t> free_bytes;  // after the seal, each step, evaluation and save
};

CurveResult run_curve(const CurveSettings& curve, const std::filesystem::path& folder,
                      DType weight_type, spec::Recompute level = spec::Recompute::cheap,
                      const std::function<void(Rank&)>& after = {},
                      const exec::ExecutorOptions& how = {}) {
  const planner::Request request = request_of_curve(curve, folder, weight_type, level);
  const plan::Plan plan = planner::make_plan(request);
  CurveResult result;
  EngineOptions options = on_gpu();
  options.executor.graphs = how.graphs;
  run_ranks(plan, options, [&](Rank& rank) {
    result.graph_count = rank.executor.graph_count();
    const auto look = [&] { result.free_bytes.push_back(value_of(gpu()->free_bytes())); };
    look();
    load_weights(rank, folder);
    std::size_t next = 0;
    for (std::int64_t step = 0; step < curve.steps; ++step) {
      std::vector<const FlatBatch*> window;
      std::int64_t targets = 0;
      for (std::int64_t i = 0; i < curve.accumulation_steps; ++i) {
        window.push_back(&curve.batches[next++ % curve.batches.size()]);
        targets += window.back()->trained_count();
      }
      const std::int64_t count = curve.accumulation_steps;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto kind = count == 1       ? plan::SegmentKind::micro_only
                          : i == 0         ? plan::SegmentKind::micro_first
                          : i + 1 == count ? plan::SegmentKind::micro_last
                                           : plan::SegmentKind::micro_middle;
        value_of(rank.executor.run(kind, inputs_of(*window[static_cast<std::size_t>(i)], targets)));
      }
      exec::Inputs update;
      update.step_values = train::step_values(request.optimizer, step, curve.steps);
      const exec::Outputs outputs = value_of(rank.executor.run(plan::SegmentKind::update, update));
      result.losses.push_back(outputs.totals[plan::total_loss] / static_cast<double>(targets));
      result.norms.push_back(outputs.clip[0]);
      look();
      if (step + 1 != curve.steps) continue;
      const FlatBatch& batch = curve.batches.front();
      value_of(
          rank.executor.run(plan::SegmentKind::evaluate, inputs_of(batch, batch.trained_count())));
      result.evaluation_loss =
          value_of(rank.executor.run(plan::SegmentKind::evaluate_end, {})).totals[0];
      look();
      NoSink sink;
      exec::Inputs save;
      save.sink = &sink;
      value_of(rank.executor.run(plan::SegmentKind::save, save));
      value_of(rank.executor.drain());
      EXPECT_EQ(sink.element_count, plan.parameter_count * (weight_type == DType::f32 ? 3 : 4));
      look();
    }
    for (const plan::Unit& unit : plan.schedule.units)
      result.weights.push_back(rank.executor.read_buffer(unit.weights));
    if (after) after(rank);
  });
  return result;
}

class GoldenCurveOnGpu : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCurveOnGpu, LossesAndFinalWeightsFollowTransformers) {
  SKIP_WITHOUT_GPU();
  const GoldenCurve curve = read_golden_curve(GetParam());

  const CurveResult result =
      run_curve(curve, curve.folder, DType::f32, spec::Recompute::cheap, [&](Rank& rank) {
        for (const auto& [parameter, expected] : curve.final_weights)
          EXPECT_LT(relative_distance(whole_values(rank, parameter, &plan::Unit::weights),
                                      expected.as_f32(), 0),
                    1e-5)
              << parameter;
      });

  ASSERT_EQ(result.losses.size(), static_cast<std::size_t>(curve.steps));
  for (std::size_t step = 0; step < result.losses.size(); ++step) {
    ASSERT_NEAR(result.losses[step], curve.losses[step], 1e-5 * curve.losses[step]) << step;
    ASSERT_NEAR(result.norms[step], curve.gradient_norms[step], 1e-4 * curve.gradient_norms[step])
        << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenCurveOnGpu, testing::ValuesIn(golden_curve_names()));

TEST(GoldenBf16OnGpu, LossesStayWithinTwiceTheSpreadOfTransformers) {
  SKIP_WITHOUT_GPU();
  const GoldenBf16 golden = read_golden_bf16();

  for (const GoldenBf16::Start& start : golden.starts) {
    SCOPED_TRACE(start.folder.string());
    const CurveResult result = run_curve(golden, start.folder, DType::bf16);

    double spread = 0;
    for (std::size_t step = 0; step < result.losses.size(); ++step) {
      spread = std::max(spread, golden.loss_spread[step]);
      ASSERT_NEAR(result.losses[step], start.f32_losses[step], 2 * spread * start.f32_losses[step])
          << step;
    }
  }
}

TEST(BitsOnGpu, AreTheSameInTwoRunsAndAtEveryRecomputeLevel) {
  SKIP_WITHOUT_GPU();
  const GoldenBf16 golden = read_golden_bf16();
  const auto& folder = golden.starts.front().folder;
  const CurveResult first = run_curve(golden, folder, DType::bf16, spec::Recompute::none);

  for (const spec::Recompute level :
       {spec::Recompute::none, spec::Recompute::cheap, spec::Recompute::block}) {
    const CurveResult other = run_curve(golden, folder, DType::bf16, level);

    EXPECT_EQ(first.losses, other.losses);
    EXPECT_EQ(first.norms, other.norms);
    EXPECT_EQ(first.evaluation_loss, other.evaluation_loss);
    EXPECT_TRUE(first.weights == other.weights);
  }
}

TEST(GraphsOnGpu, GiveTheSameBitsAsLaunchesOneByOne) {
  SKIP_WITHOUT_GPU();
  const GoldenBf16 golden = read_golden_bf16();
  const auto& folder = golden.starts.front().folder;

  const CurveResult captured = run_curve(golden, folder, DType::bf16);
  const CurveResult launched =
      run_curve(golden, folder, DType::bf16, spec::Recompute::cheap, {}, {.graphs = false});

  EXPECT_GT(captured.graph_count, 0u);
  EXPECT_EQ(launched.graph_count, 0u);
  EXPECT_EQ(captured.losses, launched.losses);
  EXPECT_EQ(captured.norms, launched.norms);
  EXPECT_EQ(captured.evaluation_loss, launched.evaluation_loss);
  EXPECT_TRUE(captured.weights == launched.weights);
}

TEST(SealOnGpu, FreeMemoryIsTheSameToTheByteFromTheSealToTheEnd) {
  SKIP_WITHOUT_GPU();
  const GoldenBf16 golden = read_golden_bf16();

  const CurveResult result = run_curve(golden, golden.starts.front().folder, DType::bf16);

  ASSERT_EQ(result.free_bytes.size(), static_cast<std::size_t>(golden.steps) + 3);
  for (const std::int64_t bytes : result.free_bytes) EXPECT_EQ(bytes, result.free_bytes.front());
}

}  // namespace
}  // namespace underkeel::test
