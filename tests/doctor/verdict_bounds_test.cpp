// What a verdict of DeepSpeed's memory rests on: lengths that nobody measured, and training that the figures are not of.

#include <gmock/gmock.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;

struct Asked {
  std::string run;  // behind dataset, bf16 and a learning rate
  int stage = 3;
  int gpu_gib = 80;
  bool has_folder = true;  // of the model; a description of it else
};

Diagnosis answer_to(const Asked& asked) {
  Files files;
  if (asked.has_folder) {
    const auto file = files.write("model/config.json", model_json(llama_8b));
    files.question.paths.back() = file.parent_path();
  } else {
    files.write("model.json", model_json(llama_8b));
  }
  files.write(
      "ds_config.json",
      fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto", "bf16": {{"enabled": true}},
                              "train_batch_size": "auto", "gradient_accumulation_steps": "auto",
                              "zero_optimization": {{"stage": {}}}}})",
                  asked.stage));
  files.write("train.yaml",
              "do_train: true\ndataset: data\nbf16: true\nlearning_rate: 1.0e-4\n" + asked.run);
  files.write("hardware.json",
              fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": {}, "host_ram_gib": 1024}})",
                          asked.gpu_gib));
  return files.diagnose();
}

const std::string long_samples =
    "finetuning_type: full\ncutoff_len: 131072\nper_device_train_batch_size: 1\n";

TEST(VerdictBounds, ACutOffIsNoLengthOfSamplesThatNobodyRead) {
  const Diagnosis diagnosis = answer_to({.run = "stage: sft\n" + long_samples});

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::unknown);
  EXPECT_TRUE(found(diagnosis, "deepspeed-does-not-fit").empty());
  const auto told = found(diagnosis, "deepspeed-long-samples-do-not-fit");
  ASSERT_EQ(told.size(), 1u) << ids_of(diagnosis, Engine::deepspeed);
  EXPECT_EQ(told[0].severity, Severity::warning);
  EXPECT_EQ(told[0].certainty, Certainty::estimate);
  EXPECT_THAT(message_of(told[0], Language::english), HasSubstr("131072 tokens"));
}

TEST(VerdictBounds, ACutOffIsALengthWhereSamplesAreFilledUpToIt) {
  const Asked filled[] = {
      {.run = "stage: pt\n" + long_samples},
      {.run = "stage: sft\npacking: true\n" + long_samples},
      {.run = "stage: sft\nneat_packing: true\n" + long_samples},
      // Of a description there are no data: the length is what is asked about.
      {.run = "stage: sft\n" + long_samples, .has_folder = false},
  };
  for (const Asked& asked : filled) {
    const Diagnosis diagnosis = answer_to(asked);

    EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails) << asked.run;
    EXPECT_EQ(found(diagnosis, "deepspeed-does-not-fit").size(), 1u) << asked.run;
  }
  const Diagnosis unpacked = answer_to({.run = "stage: pt\npacking: false\n" + long_samples});
  EXPECT_EQ(unpacked.deepspeed.verdict, Verdict::unknown);
}

TEST(VerdictBounds, StateThatDoesNotFitFailsAtAnyLength) {
  const Diagnosis diagnosis = answer_to({.run = "stage: sft\n" + long_samples, .gpu_gib = 8});

  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(found(diagnosis, "deepspeed-does-not-fit").size(), 1u);
}

TEST(VerdictBounds, FrozenLayersNeedTheirWeightsAlone) {
  const std::string run =
      "stage: sft\nfinetuning_type: freeze\nfreeze_trainable_layers: 2\ncutoff_len: 128\n"
      "per_device_train_batch_size: 1\n";
  for (const auto& [gpu_gib, verdict] :
       {std::pair{8, Verdict::fails}, std::pair{24, Verdict::unknown}}) {
    const Diagnosis diagnosis = answer_to({.run = run, .stage = 0, .gpu_gib = gpu_gib});

    EXPECT_EQ(diagnosis.deepspeed.verdict, verdict) << gpu_gib;
    const auto told = found(diagnosis, "deepspeed-not-counted", "finetuning_type");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_THAT(message_of(told[0], Language::english), HasSubstr("training all weights"));
  }
  // At least the weights, 16.1 GB, not the 128.5 GB of training all of them.
  const std::string open =
      says(answer_to({.run = run, .stage = 0, .gpu_gib = 24}), "deepspeed-may-not-fit");
  EXPECT_THAT(open, HasSubstr("needs 16.")) << open;
}

TEST(VerdictBounds, OtherStagesHoldMoreThanTheFiguresCount) {
  for (const std::string stage : {"dpo", "kto", "ppo", "rm"})
    for (const auto& [gpu_gib, verdict] :
         {std::pair{8, Verdict::fails}, std::pair{80, Verdict::unknown}}) {
      const Diagnosis diagnosis =
          answer_to({.run = "stage: " + stage + "\nfinetuning_type: full\ncutoff_len: 128\n" +
                            "per_device_train_batch_size: 1\n",
                     .gpu_gib = gpu_gib});

      EXPECT_EQ(diagnosis.deepspeed.verdict, verdict) << stage << gpu_gib;
      EXPECT_EQ(found(diagnosis, "deepspeed-not-counted", "stage").size(), 1u);
    }
}

}  // namespace
}  // namespace underkeel::doctor
