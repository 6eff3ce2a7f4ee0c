// Files that are given together and say different things.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/conflict_rules.h"
#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* stage_2 = R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true},
                                    "train_micro_batch_size_per_gpu": 1})";
constexpr const char* stage_3 = R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8},
                                    "train_micro_batch_size_per_gpu": 1.0})";

TEST(Conflicts, TellOfAConfigThatTheRunFileDoesNotName) {
  Files files;
  files.write("given.json", stage_3);
  files.write("named.json", stage_2);
  files.question.paths.pop_back();
  files.write("run.yaml",
              "stage: sft\nbf16: true\nper_device_train_batch_size: 1\ndeepspeed: named.json\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_THAT(says(diagnosis, "config-not-of-the-run"),
              AllOf(HasSubstr("run.yaml has another DeepSpeed config (named.json)"),
                    HasSubstr("the figures here are of given.json"),
                    HasSubstr("Here / there: bf16.enabled: - / true; "
                              "zero_optimization.reduce_bucket_size: 500000000 / -; "
                              "zero_optimization.stage: 3 / 2 /")));
  EXPECT_EQ(found(diagnosis, "config-not-of-the-run")[0].file, "given.json");
}

TEST(Conflicts, TellOfAConfigBesideOneInTheRunFile) {
  Files files;
  files.write("given.json", stage_3);
  files.write("run.yaml", "stage: sft\ndeepspeed:\n  zero_optimization:\n    stage: 1\n");

  EXPECT_THAT(says(files.diagnose(), "config-not-of-the-run"),
              AllOf(HasSubstr("(inline)"), HasSubstr("zero_optimization.stage: 3 / 1")));
}

TEST(Conflicts, SayNothingOfTheConfigThatTheRunFileNames) {
  for (const char* named :
       {"deepspeed: ds.json\n", "deepspeed: ./ds.json\n", "deepspeed: elsewhere/ds.json\n"}) {
    Files files;
    files.write("ds.json", stage_2);
    files.write("run.yaml",
                "stage: sft\nbf16: true\nper_device_train_batch_size: 1\n" + std::string(named));

    const Diagnosis diagnosis = files.diagnose();

    for (const char* id : {"config-not-of-the-run", "config-not-named", "config-stands-in"})
      EXPECT_TRUE(found(diagnosis, id).empty()) << id << named;
  }
}

TEST(Conflicts, TellOfAConfigThatStandsForOneThatIsNotHere) {
  Files files;
  files.write("ds.json", stage_2);
  files.write("run.yaml", "stage: sft\ndeepspeed: examples/ds_z3.json\n");

  EXPECT_THAT(says(files.diagnose(), "config-stands-in"),
              HasSubstr("run.yaml names examples/ds_z3.json, which is not here"));
}

TEST(Conflicts, TellOfAConfigThatTheRunFileLeavesOut) {
  Files files;
  files.write("ds.json", stage_2);
  files.write("run.yaml", "stage: sft\nbf16: true\n");

  EXPECT_THAT(says(files.diagnose(), "config-not-named"),
              AllOf(HasSubstr("run.yaml names no DeepSpeed config"),
                    HasSubstr("write deepspeed: ds.json in run.yaml")));
}

TEST(Conflicts, TellOfAnAccelerateConfigWithOtherValues) {
  Files files;
  files.write("ds.json", stage_2);
  files.write(
      "accelerate.yaml",
      "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: fp16\n"
      "num_processes: 4\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
      "  offload_param_device: none\n  gradient_accumulation_steps: 2\n");
  files.write("run.yaml",
              "stage: sft\nbf16: true\ndeepspeed: ds.json\nper_device_train_batch_size: 1\n"
              "gradient_accumulation_steps: 8\nunderkeel:\n  ranks: 2\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_THAT(
      says(diagnosis, "accelerate-differs"),
      HasSubstr(
          "this accelerate config and ds.json differ: deepspeed_config.zero_stage: 3 / 2; "
          "deepspeed_config.offload_optimizer_device: cpu / none; mixed_precision: fp16 / bf16."));
  EXPECT_THAT(
      says(diagnosis, "accelerate-differs-from-run"),
      HasSubstr(
          "deepspeed_config.gradient_accumulation_steps: 2 / 8; mixed_precision: fp16 / bf16; "
          "num_processes: 4 / 2."));
}

TEST(Conflicts, SayNothingOfAnAccelerateConfigThatAgrees) {
  Files files;
  files.write("ds.json", stage_2);
  files.write(
      "accelerate.yaml",
      "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\n"
      "num_processes: 2\ndeepspeed_config:\n  zero_stage: 2\n  zero3_save_16bit_model: false\n");
  files.write("run.yaml",
              "stage: sft\nbf16: true\ndeepspeed: ds.json\nper_device_train_batch_size: 1\n"
              "underkeel:\n  ranks: 2\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_TRUE(found(diagnosis, "accelerate-differs").empty()) << messages(diagnosis);
  EXPECT_TRUE(found(diagnosis, "accelerate-differs-from-run").empty()) << messages(diagnosis);
}

TEST(Machine, ThatCannotBeReadIsNotReplacedByThisOne) {
  for (const auto& [name, text] :
       {std::pair{"m.yaml", "host_ram_gib: 100\n\tgpu_mem_gib: 80\n"},
        std::pair{"m.json", "{\"gpu_mem_gib\": 80,, }"}, std::pair{"hardware.yaml", "ram: 5\n"},
        std::pair{"hardware.json", ""}}) {
    Files files;
    files.write("config.json", model_json(llama_7b));
    files.write("run.yaml",
                "model_name_or_path: absent\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
                "dataset: d\ntemplate: llama2\noutput_dir: out\nunderkeel:\n  ranks: 1\n");
    files.write(name, text);

    const Diagnosis diagnosis = files.diagnose();

    EXPECT_EQ(found(diagnosis, "underkeel-machine-unread").size(), 1u)
        << name << messages(diagnosis);
    EXPECT_EQ(diagnosis.underkeel.verdict == Verdict::runs, false) << name;
  }
}

}  // namespace
}  // namespace underkeel::doctor
