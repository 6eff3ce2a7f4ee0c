// Plans on several GPUs: equal bits at every stage and from run to run, sealed memory. Skipped where there is
// one GPU or none.

#include <algorithm>
#include <chrono>
#include <stdexcept>

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
  static EngineOptions there() {
    EngineOptions options;
    options.on_gpus = true;
    options.kernels = &kernels::cuda_kernels();
    return options;
  }
  static Trace run_there(const planner::Request& request) {
    return run(planner::make_plan(request), there());
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

TEST_P(SeveralGpus, GiveTheSameBitsWhereLanesAreHeldBack) {
  const Trace expected = run_there(request(3));
  for (const std::uint64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    EngineOptions delayed = there();
    delayed.executor.delay_seed = seed;
    expect_equal(run(planner::make_plan(request(3)), delayed), expected);
  }
}

TEST_P(SeveralGpus, GiveTheSameBitsWithCollectivesInTurnWithTheRest) {
  planner::Request in_turn = request(2);
  in_turn.bounds.overlap_comm = false;

  expect_equal(run_there(in_turn), run_there(request(2)));
}

TEST_P(SeveralGpus, EndTogetherWhenARankFails) {
  const plan::Plan plan = planner::make_plan(request(3));
  const auto began = std::chrono::steady_clock::now();

  // Rank 1 goes away before a micro-step that the others have queued.
  const auto body = [&](Rank& rank) {
    const spec::ModelSpec model = small_model();
    train::FreshSource source(model, 5);
    exec::Inputs load;
    load.source = &source;
    value_of(rank.executor.run(plan::SegmentKind::load, load));
    if (rank.rank == 1) throw std::runtime_error("rank 1 has had enough");
    const FlatBatch batch = batch_of(rank.rank, 0, rows_for_test);
    value_of(rank.executor.run(plan::SegmentKind::micro_only, inputs_of(batch, 100)));
  };
  EXPECT_THROW(run_ranks(plan, there(), body), std::runtime_error);

  // Seconds, and no hang: the watch looks twenty times a second.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
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
  run_ranks(plan, there(), [&](Rank& rank) {
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
