// Runs of the training program on two GPUs: one process or one a GPU, saves, resumes on another number of GPUs, and ranks
// that fail or die. Skipped where there is one GPU or none.

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

bool has_mpirun() {
  return std::system("mpirun --version > /dev/null 2>&1") == 0 && UNDERKEEL_HAS_MPI;
}

class TrainOnTwoGpus : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    const auto gpus = device::find_gpus();
    if (!gpus || gpus->size() < 2)
      GTEST_SKIP() << (gpus ? gpus->size() : 0) << " GPUs; two are needed";
    if (GetParam() == Ranks::processes && !has_mpirun())
      GTEST_SKIP() << "no mpirun, or built without MPI";
    adopt_orphans();
  }
  static TrainOptions on_gpus(int ranks, std::vector<std::string> changes = {}) {
    changes.insert(changes.end(), {"underkeel.device=cuda", "underkeel.matmul_timing=0"});
    return {.ranks = ranks, .as = GetParam(), .changes = std::move(changes)};
  }
  static double loss_at(const fs::path& output, std::int64_t step) {
    return steps(output).at(step).at("loss").get<double>();
  }
};
INSTANTIATE_TEST_SUITE_P(As, TrainOnTwoGpus, testing::Values(Ranks::threads, Ranks::processes),
                         [](const auto& instance) {
                           return instance.param == Ranks::threads ? "Threads" : "Processes";
                         });

TEST_P(TrainOnTwoGpus, HaveTheSameBitsAtEveryStage) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 0});
  std::vector<fs::path> outputs;
  for (const int stage : {0, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "stage " << stage);
    TrainOptions options = on_gpus(2, {"max_steps=3", "save_steps=2"});
    options.changes.push_back("deepspeed.zero_optimization.stage=" + std::to_string(stage));
    options.output = made.folder / ("stage-" + std::to_string(stage));

    const Ended ended = run_training(made, options, 120);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(damage(options.output), IsEmpty());
    outputs.push_back(options.output);
    EXPECT_THAT(tensor_differences(outputs.front(), outputs.back()), IsEmpty());
  }
}

TEST_P(TrainOnTwoGpus, FollowAsManyCpuRanks) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 2, .type = "float32"});
  TrainOptions on_cpu = on_gpus(2, {"max_steps=4", "save_strategy=no"});
  on_cpu.changes.push_back("underkeel.device=cpu");
  on_cpu.output = made.folder / "cpu";
  TrainOptions there = on_gpus(2, {"max_steps=4", "save_strategy=no"});
  there.output = made.folder / "gpu";

  const Ended first = run_training(made, on_cpu, 120);
  const Ended second = run_training(made, there, 120);

  ASSERT_EQ(first.exit_code, 0) << first.output;
  ASSERT_EQ(second.exit_code, 0) << second.output;
  for (std::int64_t step = 1; step <= 4; ++step)
    EXPECT_NEAR(loss_at(there.output, step), loss_at(on_cpu.output, step), 2e-3) << step;
}

TEST_P(TrainOnTwoGpus, GoOnOnOneGpuAndBack) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 3, .type = "float32"});
  const auto change = [&](int ranks, std::int64_t step, const char* output) {
    TrainOptions options = on_gpus(ranks, {"max_steps=" + std::to_string(step), "save_steps=2"});
    options.output = made.folder / output;
    return options;
  };

  for (const int before : {2, 1}) {
    SCOPED_TRACE(testing::Message() << "from " << before << " GPUs");
    const std::string name = "from-" + std::to_string(before);
    const Ended first = run_training(made, change(before, 2, name.c_str()), 120);
    ASSERT_EQ(first.exit_code, 0) << first.output;

    // As many samples a step: half the ranks make twice the micro-steps.
    TrainOptions options = change(3 - before, 4, name.c_str());
    const int accumulation = before == 2 ? 4 : 1;
    options.changes.push_back("gradient_accumulation_steps=" + std::to_string(accumulation));
    const Ended second = run_training(made, options, 120);

    ASSERT_EQ(second.exit_code, 0) << second.output;
    EXPECT_THAT(second.output, HasSubstr("checkpoint-2"));
    EXPECT_EQ(last_step(options.output), 4);
    EXPECT_THAT(damage(options.output), IsEmpty());
  }
}

TEST_P(TrainOnTwoGpus, EndTogetherWithTheNameOfTheRankThatFails) {
  const RunnableCase made = complete_case("rank_missing_at_save", {.zero_stage = 3});
  for (const char* what : {"fail", "kill"}) {
    // A signal ends all ranks that are threads of the process.
    if (GetParam() == Ranks::threads && std::string(what) == "kill") continue;
    SCOPED_TRACE(what);
    TrainOptions options = on_gpus(2);
    options.environment["UNDERKEEL_FAULT"] = std::string("rank=1 phase=step step=2 ") + what;
    options.output = made.folder / what;

    const Ended ended = run_training(made, options, 120);

    EXPECT_NE(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("rank 1"));
    EXPECT_LT(ended.elapsed_s, 60);
    EXPECT_THAT(children_left(), IsEmpty());
  }
}

TEST_P(TrainOnTwoGpus, TakeThePlansMemoryAndWhatJoiningTookAtEveryStage) {
  const RunnableCase made = complete_case("killed_in_save", {.zero_stage = 0});
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "stage " << stage);
    TrainOptions options = on_gpus(2, {"max_steps=2", "save_strategy=no"});
    options.changes.push_back("deepspeed.zero_optimization.stage=" + std::to_string(stage));
    options.output = made.folder / ("stage-" + std::to_string(stage));

    const Ended ended = run_training(made, options, 120);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    const auto memory = nlohmann::json::parse(read_text(options.output / "memory.json"));
    ASSERT_EQ(memory["ranks"].size(), 2u);
    for (const auto& rank : memory["ranks"]) {
      const auto& device = rank["spaces"]["device"];
      const double planned = device["planned_peak_bytes"].get<double>();
      // Beside the arena the driver loads code of its own (2 to 6 MiB seen) and gives whole pages of 2 MiB. Copies between
      // GPUs take nothing, NCCL all of its memory before the plan.
      constexpr double taken_by_driver = 16.0 * 1024 * 1024;
      const double measured = device["measured_peak_bytes"].get<double>();
      const bool is_joined_by_nccl = GetParam() == Ranks::processes;
      EXPECT_EQ(device.value("joining_bytes", 0.0) > taken_by_driver, is_joined_by_nccl);
      EXPECT_GE(measured, planned) << memory.dump(1);
      EXPECT_LE(measured, planned + taken_by_driver) << memory.dump(1);
    }
  }
}

}  // namespace
}  // namespace underkeel::test
