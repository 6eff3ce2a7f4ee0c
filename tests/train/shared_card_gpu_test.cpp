// Two ranks on one GPU, joined through host memory: stages and sums over ranks can be tried where there is one card.

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class TrainOnASharedGpu : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    if (const auto gpus = device::find_gpus(); !gpus) GTEST_SKIP() << to_text(gpus.error());
    if (GetParam() == Ranks::processes &&
        (std::system("mpirun --version > /dev/null 2>&1") != 0 || !UNDERKEEL_HAS_MPI))
      GTEST_SKIP() << "no mpirun, or built without MPI";
    adopt_orphans();
  }
  static TrainOptions two_ranks(std::vector<std::string> changes) {
    changes.insert(changes.end(), {"underkeel.matmul_timing=0", "max_steps=3"});
    return {.ranks = 2,
            .as = GetParam(),
            .changes = std::move(changes),
            .environment = {{"CUDA_VISIBLE_DEVICES", "0"}, {"UNDERKEEL_GPU_LINK", "host"}}};
  }
};
INSTANTIATE_TEST_SUITE_P(As, TrainOnASharedGpu, testing::Values(Ranks::threads, Ranks::processes),
                         [](const auto& instance) {
                           return instance.param == Ranks::threads ? "Threads" : "Processes";
                         });

TEST_P(TrainOnASharedGpu, HasTheSameBitsAtEveryStageAndFollowsCpuRanks) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 0, .type = "float32"});
  TrainOptions on_cpu = two_ranks({"underkeel.device=cpu"});
  on_cpu.output = made.folder / "cpu";
  const Ended expected = run_training(made, on_cpu, 120);
  ASSERT_EQ(expected.exit_code, 0) << expected.output;
  std::vector<fs::path> outputs;
  for (const int stage : {0, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "stage " << stage);
    TrainOptions options = two_ranks(
        {"underkeel.device=cuda", "deepspeed.zero_optimization.stage=" + std::to_string(stage)});
    options.output = made.folder / ("stage-" + std::to_string(stage));

    const Ended ended = run_training(made, options, 120);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(damage(options.output), IsEmpty());
    outputs.push_back(options.output);
    EXPECT_THAT(tensor_differences(outputs.front(), outputs.back()), IsEmpty());
    for (std::int64_t step = 1; step <= 3; ++step)
      EXPECT_NEAR(steps(options.output).at(step).at("loss").get<double>(),
                  steps(on_cpu.output).at(step).at("loss").get<double>(), 2e-3)
          << step;
  }
}

TEST_P(TrainOnASharedGpu, IsRefusedWhereTheHostWasNotAskedFor) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 2});
  TrainOptions options = two_ranks({"underkeel.device=cuda"});
  options.environment.erase("UNDERKEEL_GPU_LINK");

  const Ended ended = run_training(made, options, 120);

  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.output, HasSubstr("2 ranks on a node with 1 GPU"));
  EXPECT_THAT(ended.output, HasSubstr("UNDERKEEL_GPU_LINK=host"));
}

}  // namespace
}  // namespace underkeel::test
