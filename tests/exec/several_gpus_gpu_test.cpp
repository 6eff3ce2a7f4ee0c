// Plans on several GPUs: equal bits at every stage and from run to run, sealed memory. Skipped where there is
// one GPU or none.

#include <algorithm>

#include "device/gpu.h"
#include "exec/short_run.h"

namespace underkeel::test {
namespace {

int gpu_count() {
  const auto gpus = device::find_gpus();
  return gpus ? static_cast<int>(gpus->size()) : 0;
}

class SeveralGpus : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (gpu_count() < 2) GTEST_SKIP() << gpu_count() << " GPUs; two are needed";
  }
  planner::Request request(int stage) const {
    planner::Request made = base_request(std::min(gpu_count(), 4));
    made.on_gpu = true;
    made.weight_type = GetParam();
    made.stage = stage;
    return made;
  }
  static Trace run_there(const planner::Request& request) {
    EngineOptions options;
    options.on_gpus = true;
    options.kernels = &kernels::cuda_kernels();
    return run(planner::make_plan(request), options);
  }
};

TEST_P(SeveralGpus, GiveTheSameBitsAtEveryStageAndInEveryRun) {
  const Trace expected = run_there(request(0));
  ASSERT_EQ(expected.losses.size(), 3u);
  ASSERT_LT(expected.losses[2], expected.losses[0]);
  for (int stage = 0; stage <= 3; ++stage) {
    SCOPED_TRACE(testing::Message() << "stage " << stage);
    expect_equal(run_there(request(stage)), expected);
  }
}

TEST_P(SeveralGpus, FollowTheLossesOfAsManyCpuRanks) {
  planner::Request on_cpu = request(2);
  on_cpu.on_gpu = false;
  const Trace expected = run(planner::make_plan(on_cpu), {});

  const Trace actual = run_there(request(2));

  const double bound = GetParam() == DType::f32 ? 1e-5 : 2e-2;
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], bound * expected.losses[i]);
}

TEST_P(SeveralGpus, HoldTheSameMemoryFromTheSealToTheEnd) {
  const planner::Request made = request(3);
  const plan::Plan plan = planner::make_plan(made);
  EngineOptions options;
  options.on_gpus = true;
  options.kernels = &kernels::cuda_kernels();
  run_ranks(plan, options, [&](Rank& rank) {
    const auto free_now = [&] {
      value_of(rank.control.barrier());
      return value_of(rank.executor.resident_bytes(plan::MemorySpace::device));
    };
    const std::int64_t sealed = free_now();
    const spec::ModelSpec model = small_model();
    train::FreshSource source(model, 5);
    exec::Inputs load;
    load.source = &source;
    value_of(rank.executor.run(plan::SegmentKind::load, load));
    for (int step = 0; step < 3; ++step) {
      const FlatBatch batch = batch_of(rank.rank, step, rows_for_test);
      value_of(rank.executor.run(plan::SegmentKind::micro_only, inputs_of(batch, 100)));
      exec::Inputs update;
      update.step_values = {0.01f, 0.1f, 0.03f, 0};
      value_of(rank.executor.run(plan::SegmentKind::update, update));
      EXPECT_EQ(free_now(), sealed) << "rank " << rank.rank << " step " << step;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, SeveralGpus, testing::Values(DType::f32, DType::bf16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace underkeel::test
