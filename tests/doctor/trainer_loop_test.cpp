// Runs without a DeepSpeed config: the HF Trainer's own loop.

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

/// Llama-2-7B, 6738415616 parameters, without a DeepSpeed config.
Diagnosis loop_answer(const std::string& run, const Machine& machine = {}) {
  return files_of(
             {llama_7b, "", run + "cutoff_len: 512\nper_device_train_batch_size: 1\n", machine})
      .diagnose();
}

double loop_gb(const Diagnosis& diagnosis, Phase phase, std::string_view term) {
  return low_gb(diagnosis.deepspeed, phase, Space::device, term);
}

TEST(TrainersLoop, TakesSixteenBytesOrEight) {
  const struct {
    std::string mode;
    double weights, gradients, moments;
    std::string says;
  } cases[] = {
      {"bf16: true\n", 26.954, 26.954, 53.907, "16 bytes a parameter that trains (4 of weights"},
      {"fp16: true\n", 26.954, 26.954, 53.907, "16 bytes a parameter"},
      {"", 26.954, 26.954, 53.907, "16 bytes a parameter"},
      {"pure_bf16: true\n", 13.477, 13.477, 26.954,
       "8 bytes a parameter that trains (2 of weights"},
  };
  for (const auto& [mode, weights, gradients, moments, says] : cases) {
    const Diagnosis diagnosis = loop_answer("finetuning_type: full\n" + mode);

    EXPECT_NEAR(loop_gb(diagnosis, Phase::update, "weights"), weights, 0.01) << mode;
    EXPECT_NEAR(loop_gb(diagnosis, Phase::update, "gradients"), gradients, 0.01) << mode;
    EXPECT_NEAR(loop_gb(diagnosis, Phase::update, "moments"), moments, 0.01) << mode;
    // What DeepSpeed copies for its updates the loop does not have to.
    EXPECT_EQ(loop_gb(diagnosis, Phase::update, "update_copies"), 0) << mode;
    EXPECT_EQ(loop_gb(diagnosis, Phase::update, "master"), 0) << mode;
    EXPECT_EQ(loop_gb(diagnosis, Phase::load, "set_up"), 0) << mode;
    EXPECT_EQ(loop_gb(diagnosis, Phase::load, "moments"), 0) << mode;
    expect_says(diagnosis, "no-deepspeed-config", {says, "Trainer's own loop"});
    EXPECT_TRUE(found(diagnosis, "all-reduce-copy").empty()) << mode;
    // Weights and moments of a checkpoint.
    expect_says(diagnosis, "deepspeed-disk-unbounded",
                {fmt::format("{:.1f} GB of state and {:.1f} GB of weights", moments, weights)});
  }
}

TEST(TrainersLoop, FailsNoEarlierThanItsFiguresDo) {
  // 107.8 GB; 24 bytes a parameter were 161.7 GB.
  const Verdict verdicts[] = {
      loop_answer("finetuning_type: full\nbf16: true\n", {.gpu_gib = 96}).deepspeed.verdict,
      loop_answer("finetuning_type: full\nbf16: true\n", {.gpu_gib = 128}).deepspeed.verdict,
      loop_answer("finetuning_type: full\nbf16: true\n", {.gpu_gib = 200}).deepspeed.verdict};

  EXPECT_EQ(verdicts[0], Verdict::fails);
  EXPECT_EQ(verdicts[1], Verdict::unknown);
  EXPECT_EQ(verdicts[2], Verdict::runs);
}

TEST(TrainersLoop, KeepsAFrozenBaseInTheTypeOfTheRun) {
  const Diagnosis diagnosis = loop_answer("finetuning_type: lora\nbf16: true\n");

  // 13.48 GB, and 4 bytes of each of the 19988480 elements of adapters.
  EXPECT_NEAR(loop_gb(diagnosis, Phase::update, "weights"), 13.56, 0.01);
  EXPECT_NEAR(loop_gb(diagnosis, Phase::update, "moments"), 0.16, 0.01);
  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::runs);
}

TEST(TrainersLoop, IsNotThatOfDeepSpeedThatAccelerateBrings) {
  Files files = files_of({llama_7b, "", "finetuning_type: full\nbf16: true\n", {}});
  files.write("accelerate.yaml",
              "compute_environment: LOCAL_MACHINE\n"
              "distributed_type: DEEPSPEED\nnum_processes: 1\n"
              "deepspeed_config:\n  zero_stage: 0\n");
  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "no-deepspeed-config").empty()) << messages(diagnosis);
}

}  // namespace
}  // namespace underkeel::doctor
