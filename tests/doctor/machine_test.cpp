// What a verdict may stand on: the machine asked about, settings that the figures count, a run file that starts.

#include <gtest/gtest.h>

#include "base/units.h"
#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr std::string_view eight_gpus =
    R"({"nodes": 1, "gpus_per_node": 8, "gpu_mem_gib": 80, "host_ram_gib": 512})";

/// A 7B model, trained in full at stage 3.
Files seven_billion() {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("train.yaml",
              "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n"
              "cutoff_len: 256\nper_device_train_batch_size: 2\nlearning_rate: 1.0e-4\n");
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
                  "train_batch_size": "auto", "bf16": {"enabled": true},
                  "zero_optimization": {"stage": 3}})");
  return files;
}

TEST(Machine, BudgetsAloneAreThoseOfGpus) {
  Files files = seven_billion();
  files.question.ranks = 8;
  files.question.device_budget_bytes = 80 * gibibyte;
  files.question.host_budget_bytes = 512 * gibibyte;

  const Diagnosis fits = files.diagnose();
  EXPECT_EQ(fits.underkeel.verdict, Verdict::runs) << messages(fits);
  EXPECT_EQ(fits.deepspeed.verdict, Verdict::runs) << messages(fits);

  files.question.device_budget_bytes = 8 * gibibyte;
  const Diagnosis fails = files.diagnose();
  EXPECT_EQ(fails.underkeel.verdict, Verdict::fails);
  // 1 GiB of the 8 is the driver's.
  EXPECT_NE(says(fails, "underkeel-does-not-fit").find("7.5 GB (7.0 GiB)"), std::string::npos)
      << messages(fails);
}

TEST(Machine, ThatCannotBeReadIsNotReplacedByThisOne) {
  Files files = seven_billion();
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 80})");  // no host_ram_gib
  files.question.hardware = files.question.paths.back();
  files.question.paths.pop_back();

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "machine-broken").size(), 1u);
  EXPECT_EQ(found(diagnosis, "underkeel-machine-unread").size(), 1u) << messages(diagnosis);
  EXPECT_TRUE(found(diagnosis, "underkeel-does-not-fit").empty());
  EXPECT_TRUE(found(diagnosis, "underkeel-state-does-not-fit").empty());
}

TEST(Machine, OfTheFlagHoldsOverOneAmongTheFiles) {
  Files files = seven_billion();
  files.write("small.json", R"({"gpus_per_node": 2, "gpu_mem_gib": 16, "host_ram_gib": 64})");
  files.write("hardware.json", eight_gpus);
  files.question.hardware = files.question.paths.back();
  files.question.paths.pop_back();

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_NE(says(diagnosis, "ranks-counted").find("8 ranks"), std::string::npos);
  EXPECT_NE(says(diagnosis, "file-passed-over").find("hardware.json is used"), std::string::npos);
}

TEST(Machine, OfTheFlagIsAnErrorWhenItIsAnotherFile) {
  Files files = seven_billion();
  files.question.hardware = files.at("model.json");

  const Diagnosis diagnosis = files.diagnose();

  ASSERT_EQ(found(diagnosis, "hardware-is-no-machine").size(), 1u) << messages(diagnosis);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2);
}

TEST(Machine, HasAGpuForEachRank) {
  Files files = seven_billion();
  files.write("hardware.json", eight_gpus);
  files.question.ranks = 16;

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(says(diagnosis, "more-ranks-than-gpus"),
            "16 ranks (--ranks) on 8 GPUs: each rank needs one of its own / run at most 8 ranks, "
            "or describe 2 nodes of 8 GPUs");
  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails);

  files.question.ranks = 8;
  EXPECT_TRUE(found(files.diagnose(), "more-ranks-than-gpus").empty());
}

// What is counted alone may be too much: then the run fails whatever the setting adds. Nothing shows that it fits.
TEST(Uncounted, SettingsLeaveTheVerdictOpenWhereTheRestFits) {
  struct Setting {
    std::string config, run, key;
    bool is_bound = true;  // what is counted is needed in any case
  };
  const std::string stage_3 = R"("zero_optimization": {"stage": 3, )";
  const Setting settings[] = {
      {stage_3 + R"("mics_shard_size": 4})", "", "zero_optimization.mics_shard_size"},
      {stage_3 + R"("zero_hpz_partition_size": 8})", "",
       "zero_optimization.zero_hpz_partition_size"},
      {stage_3 + R"("zero_quantized_weights": true})", "",
       "zero_optimization.zero_quantized_weights"},
      {stage_3 + R"("zero_quantized_nontrainable_weights": true})", "",
       "zero_optimization.zero_quantized_nontrainable_weights", false},
      {stage_3 + R"("zero_quantized_gradients": true})", "",
       "zero_optimization.zero_quantized_gradients"},
      {stage_3 + R"("offload_optimizer": {"device": "cpu", "ratio": 0.5}})", "",
       "zero_optimization.offload_optimizer.ratio"},
      {R"("zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 4})", "",
       "tensor_parallel.autotp_size", false},
      {R"("zero_optimization": {"stage": 3})", "optim: adafactor\n", "optim"},
  };
  for (const auto& [config, run, key, is_bound] : settings)
    for (const int gpu_gib : {1, 80}) {
      Files files;
      files.write("model.json", model_json(llama_7b));
      files.write("ds_config.json",
                  R"({"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto",
                      "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, )" +
                      config + "}");
      files.write("train.yaml",
                  "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n"
                  "learning_rate: 1.0e-4\n" +
                      run);
      files.write("hardware.json", fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": {},
                                                    "host_ram_gib": 512}})",
                                               gpu_gib));

      const Diagnosis diagnosis = files.diagnose();

      EXPECT_EQ(found(diagnosis, "deepspeed-not-counted", key).size(), 1u) << messages(diagnosis);
      EXPECT_EQ(diagnosis.deepspeed.verdict,
                gpu_gib == 1 && is_bound ? Verdict::fails : Verdict::unknown)
          << key << ids_of(diagnosis, Engine::deepspeed);
    }
}

TEST(RunFile, ThatTheTrainerStopsOnTooFailsForBoth) {
  for (const std::string line :
       {"per_device_train_batch_size: 0\n", "per_device_train_batch_size: -1\n",
        "per_device_train_batch_size: 1.5\n", "gradient_accumulation_steps: 0\n", "cutoff_len: 0\n",
        "learning_rate: high\n", "no_such_key: 1\n", "fp16: true\n", "quantization_bit: 4\n",
        "lr_scheduler_type: cosin\n", "save_strategy: step\n", "eval_strategy: steps\n",
        "per_device_batch_size: 1\n"}) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    files.write(
        "train.yaml",
        "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n" + line);

    const Diagnosis diagnosis = files.diagnose();

    ASSERT_FALSE(found(diagnosis, "run-file-refused").empty()) << line << messages(diagnosis);
    EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails) << line;
    EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails) << line;
  }
  Files pair;
  pair.write("train.yaml", "stage: sft\nbf16: true\nper_device_batch_size: 1\n");
  EXPECT_NE(
      messages(pair.diagnose())
          .find("the nearest are `per_device_train_batch_size` and `per_device_eval_batch_size`"),
      std::string::npos)
      << messages(pair.diagnose());
  Files ours;  // a key of ours, misspelt: the Trainer has nothing to say of it
  ours.write("train.yaml",
             "stage: sft\ndo_train: true\nfinetuning_type: full\ndataset: data\nbf16: true\n"
             "underkeel:\n  rankz: 2\n");
  EXPECT_TRUE(found(ours.diagnose(), "run-file-refused").empty()) << messages(ours.diagnose());
}

TEST(Machine, InAnotherUnitIsToldWithWhatWasMeant) {
  Files files;
  files.write("hardware.yaml", "gpus_per_node: 8\ngpu_mem_gib: 81920\nhost_ram_gib: 900\n");

  const Diagnosis diagnosis = files.diagnose();

  const auto all = found(diagnosis, "machine-broken");
  ASSERT_EQ(all.size(), 1u) << messages(diagnosis);
  for (const Language language : {Language::english, Language::chinese})
    EXPECT_NE(message_of(all[0], language).find("gpu_mem_gib: 80"), std::string::npos)
        << message_of(all[0], language);
}

}  // namespace
}  // namespace underkeel::doctor
