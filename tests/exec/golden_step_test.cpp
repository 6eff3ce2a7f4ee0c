// Loss and every gradient of one micro-step against transformers, for all families.

#include <cmath>

#include <gtest/gtest.h>

#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"

namespace underkeel::test {
namespace {

struct Variant {
  const char* name;
  bool cpu_kernels;
  spec::Recompute recompute;
};

class GoldenStep : public testing::TestWithParam<std::tuple<std::string, Variant>> {};

TEST_P(GoldenStep, LossAndGradientsEqualTransformers) {
  const auto& [name, variant] = GetParam();
  const Golden golden = read_golden(name);
  const auto model = value_of(spec::read_model_config(golden.folder));
  planner::Request request = request_for(model, golden.batch.row_count());
  request.recompute = variant.recompute;
  const plan::Plan plan = planner::make_plan(request);
  EngineOptions options;
  if (variant.cpu_kernels) options.kernels = &kernels::cpu_kernels();

  run_ranks(plan, options, [&](Rank& rank) {
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

INSTANTIATE_TEST_SUITE_P(
    Families, GoldenStep,
    testing::Combine(testing::ValuesIn(golden_names()),
                     testing::Values(Variant{"reference", false, spec::Recompute::none},
                                     Variant{"cpu", true, spec::Recompute::none},
                                     Variant{"cpu_cheap", true, spec::Recompute::cheap},
                                     Variant{"cpu_block", true, spec::Recompute::block})),
    [](const auto& instance) {
      return std::get<0>(instance.param) + "_" + std::get<1>(instance.param).name;
    });

}  // namespace
}  // namespace underkeel::test
