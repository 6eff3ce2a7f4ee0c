// The bytes that are predicted are those that the executor counts.

#include <gtest/gtest.h>

#include "plan/lifetimes.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/value_of.h"

namespace underkeel::simulate {
namespace {

TEST(SimulateExecuted, TheByteCurveEqualsTheExecutorsAtEveryOperation) {
  const test::Golden golden = test::read_golden("llama_gqa");
  const auto model = test::value_of(spec::read_model_config(golden.folder));
  for (const spec::Recompute recompute : {spec::Recompute::none, spec::Recompute::block}) {
    planner::Request request = test::request_for(model, golden.batch.row_count());
    request.recompute = recompute;
    const plan::Plan plan = planner::make_plan(request);
    test::EngineOptions options;
    options.executor.serial = true;
    options.executor.record_live_bytes = true;

    test::run_ranks(plan, options, [&](test::Rank& rank) {
      test::load_weights(rank, golden.folder);
      const auto expect_predicted = [&](plan::SegmentKind kind) {
        for (const plan::MemorySpace space : {plan::MemorySpace::device, plan::MemorySpace::host})
          EXPECT_EQ(rank.executor.live_trace(space),
                    plan::live_bytes(plan.schedule, *plan.schedule.find(kind), space))
              << name_of(kind) << " " << name_of(space);
      };
      test::value_of(
          rank.executor.run(plan::SegmentKind::micro_only,
                            test::inputs_of(golden.batch, golden.batch.trained_count())));
      expect_predicted(plan::SegmentKind::micro_only);
      test::value_of(rank.executor.run(plan::SegmentKind::update, {}));
      expect_predicted(plan::SegmentKind::update);
    });
  }
}

}  // namespace
}  // namespace underkeel::simulate
