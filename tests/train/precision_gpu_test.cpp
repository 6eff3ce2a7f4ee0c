// Precisions other than bf16 with masters, on a GPU: fp16 with its loss scale, and pure_bf16. Skipped where there is none.

#include <gmock/gmock.h>

#include "device/gpu.h"
#include "support/tensor_files.h"
#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PrecisionOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    static const auto opened = device::open_gpu(0);
    if (!opened) GTEST_SKIP() << opened.error().what;
  }

  /// The steps of a run of one rank on `device`.
  std::map<std::int64_t, nlohmann::json> run(const RunnableCase& made, const fs::path& output,
                                             const std::string& device,
                                             std::vector<std::string> changes) {
    changes.push_back("underkeel.device=" + device);
    const Ended ended = run_training(made, {.output = output, .changes = std::move(changes)});
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    told_ = ended.output;
    return steps(output);
  }

  static void expect_near(const std::map<std::int64_t, nlohmann::json>& found,
                          const std::map<std::int64_t, nlohmann::json>& expected, double relative) {
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [step, line] : expected) {
      const double loss = line.at("loss").get<double>();
      EXPECT_NEAR(found.at(step).at("loss").get<double>(), loss, relative * loss) << step;
    }
  }

  std::string told_;
};

// Gradients of weights are added in f32 on one GPU and overflow later than the CPU's, which are f16: the scales that
// are found differ, a fixed one gives the same steps.
TEST_F(PrecisionOnAGpu, Fp16FollowsTheCpuAtAFixedScale) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  const std::vector<std::string> fixed = {"max_steps=24", "deepspeed.fp16.loss_scale=1024"};
  const auto expected = run(made, made.folder / "cpu", "cpu", fixed);
  const auto found = run(made, made.folder / "cuda", "cuda", fixed);

  ASSERT_EQ(found.size(), 24u);
  for (const auto& [step, line] : found) EXPECT_EQ(line.at("skipped"), false) << step;
  expect_near(found, expected, 2e-3);
}

TEST_F(PrecisionOnAGpu, Fp16PassesOverOverflowsAndResumesAmongThemWithTheSameBits) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  const std::vector<std::string> starts_high = {
      "max_steps=24", "save_strategy=steps", "save_steps=5",
      "deepspeed.fp16.initial_scale_power=30", "deepspeed.fp16.loss_scale_window=2"};
  const fs::path whole = made.folder / "whole";
  const auto found = run(made, whole, "cuda", starts_high);

  ASSERT_EQ(found.size(), 24u);
  EXPECT_THAT(told_, HasSubstr("without an update, as gradients were not finite"));
  EXPECT_EQ(found.at(1).at("skipped"), true);
  const auto skipped = std::count_if(found.begin(), found.end(), [](const auto& step) {
    return step.second.at("skipped") == true;
  });
  EXPECT_LT(skipped, 20);
  EXPECT_LT(found.at(24).at("loss").get<double>(), found.at(1).at("loss").get<double>());

  const fs::path resumed = with_checkpoint_of(whole, 5, made.folder / "resumed");
  run(made, resumed, "cuda", starts_high);
  EXPECT_THAT(tensor_differences(whole, resumed), IsEmpty());
}

TEST_F(PrecisionOnAGpu, PureBf16FollowsTheCpuAndResumesWithTheSameBits) {
  const RunnableCase made = complete_case("scale_falls_to_least");
  const std::vector<std::string> pure = {"fp16=false",   "pure_bf16=true",      "deepspeed=null",
                                         "max_steps=24", "save_strategy=steps", "save_steps=5"};
  const fs::path whole = made.folder / "whole";
  const auto expected = run(made, made.folder / "cpu", "cpu", pure);
  const auto found = run(made, whole, "cuda", pure);

  ASSERT_EQ(found.size(), 24u);
  expect_near(found, expected, 2e-2);
  for (const auto& [name, tensor] : read_tensors(whole / "checkpoint-5/exp_avg_sq.safetensors"))
    EXPECT_EQ(tensor.type, DType::bf16) << name;
  EXPECT_FALSE(fs::exists(whole / "checkpoint-5/master.safetensors"));

  const fs::path resumed = with_checkpoint_of(whole, 5, made.folder / "resumed");
  run(made, resumed, "cuda", pure);
  EXPECT_THAT(tensor_differences(whole, resumed), IsEmpty());
}

}  // namespace
}  // namespace underkeel::test
