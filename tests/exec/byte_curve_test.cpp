// The bytes that the plan says are alive are those the executor has alive, at every operation.

#include <gtest/gtest.h>

#include "plan/lifetimes.h"
#include "spec/model_spec.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"

namespace underkeel::test {
namespace {

class ByteCurve : public testing::TestWithParam<std::tuple<int, int, spec::Recompute>> {};

TEST_P(ByteCurve, OfTheExecutorIsThePlans) {
  const auto& [world, stage, level] = GetParam();
  const Golden golden = read_golden("llama_gqa");
  planner::Request request =
      request_for(value_of(spec::read_model_config(golden.folder)), golden.batch.row_count());
  request.world_size = world;
  request.stage = stage;
  request.recompute = level;
  request.bounds.param_persistence_elements = 0;
  request.max_evaluation_rows = golden.batch.row_count();
  const plan::Plan plan = planner::make_plan(request);
  EngineOptions options;
  options.kernels = &kernels::cpu_kernels();
  options.executor.serial = true;
  options.executor.record_live_bytes = true;

  run_ranks(plan, options, [&](Rank& rank) {
    const auto expect_equal = [&](plan::SegmentKind kind) {
      for (const plan::MemorySpace space : {plan::MemorySpace::device, plan::MemorySpace::host})
        EXPECT_EQ(rank.executor.live_trace(space),
                  plan::live_bytes(plan.schedule, *plan.schedule.find(kind), space))
            << plan::name_of(kind) << " " << plan::name_of(space);
    };
    load_weights(rank, golden.folder);
    expect_equal(plan::SegmentKind::load);
    const exec::Inputs inputs = inputs_of(golden.batch, golden.batch.trained_count());
    for (const plan::SegmentKind kind :
         {plan::SegmentKind::micro_only, plan::SegmentKind::update, plan::SegmentKind::evaluate}) {
      value_of(rank.executor.run(kind, inputs));
      expect_equal(kind);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Plans, ByteCurve,
                         testing::Combine(testing::Values(1, 2), testing::Values(0, 3),
                                          testing::Values(spec::Recompute::none,
                                                          spec::Recompute::cheap,
                                                          spec::Recompute::block)));

}  // namespace
}  // namespace underkeel::test
