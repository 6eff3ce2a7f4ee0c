// DeepSpeed's memory by the types of master weights, moments and gradients.

#include <gmock/gmock.h>

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;

struct Typed {
  std::string zero;  // of zero_optimization
  std::string more;  // further keys of the config, with commas behind
  std::string run = "bf16: true\n";
  Machine machine = {};
};

/// Llama-2-7B, 6738415616 parameters.
Diagnosis typed_answer(const Typed& typed) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto",
                  "gradient_accumulation_steps": "auto", )" +
                  typed.more + R"("zero_optimization": {)" + typed.zero + "}}");
  files.write("train.yaml", run_yaml("finetuning_type: full\nper_device_train_batch_size: 1\n"
                                     "gradient_accumulation_steps: 4\ncutoff_len: 512\n" +
                                     typed.run));
  files.write("hardware.json", machine_json(typed.machine));
  return files.diagnose();
}

double update_gb(const Diagnosis& diagnosis, std::string_view term) {
  return low_gb(diagnosis.deepspeed, Phase::update, Space::device, term);
}
double host_gb(const Diagnosis& diagnosis, std::string_view term) {
  return low_gb(diagnosis.deepspeed, Phase::step, Space::host, term);
}

const std::string narrow_bf16 =
    R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                "bf16_optimizer_states": true}, )";
const std::string bf16_alone = R"("bf16": {"enabled": true}, )";

TEST(DeepspeedTypes, MasterGradientsAndMomentsIn16BitHalveTheHost) {
  for (const int stage : {1, 2, 3}) {
    const std::string zero = fmt::format(R"("stage": {}, )", stage) + offload_optimizer;
    const Machine machine = {.gpus = 2, .host_gib = 110};

    const Diagnosis narrow = typed_answer({zero, narrow_bf16, "bf16: true\n", machine});
    const Diagnosis wide = typed_answer({zero, bf16_alone, "bf16: true\n", machine});

    EXPECT_NEAR(host_gb(narrow, "master"), 13.48, 0.01) << stage;
    EXPECT_NEAR(host_gb(narrow, "gradients_f32"), 13.48, 0.01) << stage;
    EXPECT_NEAR(host_gb(narrow, "moments"), 26.95, 0.01) << stage;
    EXPECT_NEAR(host_gb(wide, "moments"), 53.91, 0.01) << stage;
    EXPECT_EQ(narrow.deepspeed.verdict, Verdict::runs) << messages(narrow);
    EXPECT_EQ(wide.deepspeed.verdict, Verdict::fails) << stage;
    // Master and moments, 6 bytes a parameter.
    expect_says(narrow, "deepspeed-disk-unbounded", {"40.4 GB of state"});
  }
}

TEST(DeepspeedTypes, AMasterIn16BitKeepsMomentsInF32) {
  const std::string zero = R"("stage": 2, )" + offload_optimizer;

  const Diagnosis of_bf16 =
      typed_answer({zero, R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true}, )"});
  const Diagnosis of_fp16 =
      typed_answer({zero, R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true}, )",
                    "fp16: true\n"});

  for (const Diagnosis& diagnosis : {of_bf16, of_fp16}) {
    EXPECT_NEAR(host_gb(diagnosis, "master"), 13.48, 0.01);
    EXPECT_NEAR(host_gb(diagnosis, "moments"), 53.91, 0.01);
  }
}

TEST(DeepspeedTypes, TheDeviceHoldsThemIn16BitWithoutOffload) {
  const Diagnosis diagnosis =
      typed_answer({R"("stage": 2)", narrow_bf16, "bf16: true\n", {.gpus = 2}});

  EXPECT_NEAR(update_gb(diagnosis, "master"), 6.74, 0.01);
  EXPECT_NEAR(update_gb(diagnosis, "moments"), 13.48, 0.01);
  // The flat gradients have the master's type already.
  EXPECT_NEAR(update_gb(diagnosis, "update_copies"), 6.74, 0.01);
}

TEST(DeepspeedTypes, KeysOfAModeThatIsOffCountForNothing) {
  const Diagnosis diagnosis = typed_answer(
      {R"("stage": 2)",
       bf16_alone + R"("fp16": {"enabled": false, "fp16_master_weights_and_grads": true}, )",
       "bf16: true\n",
       {.gpus = 2}});

  EXPECT_NEAR(update_gb(diagnosis, "moments"), 26.95, 0.01);
}

TEST(DeepspeedTypes, GradientsInF32AreCopiedOnceForTheUpdate) {
  const std::string in_f32 = R"("data_types": {"grad_accum_dtype": "fp32"}, )";
  const struct {
    int stage;
    std::string more, run;
    double copies_gb;
  } cases[] = {
      {2, "", "", 3.37},                               // all in f32: one flat copy
      {3, "", "", 3.37},                               // 4 bytes
      {3, bf16_alone + in_f32, "bf16: true\n", 3.37},  //
      {2, bf16_alone, "bf16: true\n", 5.05},           // 2 and 4 bytes
      {3, bf16_alone, "bf16: true\n", 5.05},
  };
  for (const auto& [stage, more, run, copies_gb] : cases) {
    const Diagnosis diagnosis =
        typed_answer({fmt::format(R"("stage": {})", stage), more, run, {.gpus = 8}});

    EXPECT_NEAR(update_gb(diagnosis, "update_copies"), copies_gb, 0.01) << stage << more;
  }
}

TEST(DeepspeedTypes, Bf16OptimizerIsToldNoBucketsThatItHasNot) {
  const Diagnosis diagnosis =
      typed_answer({R"("stage": 1)",
                    bf16_alone + R"("data_types": {"grad_accum_dtype": "fp32"}, )",
                    "bf16: true\n",
                    {.gpus = 4}});

  EXPECT_TRUE(found(diagnosis, "bucket-bytes").empty());
  expect_says(diagnosis, "bf16-optimizer-copy", {"up to 13.5 GB", "reduce_bucket_size"});
}

TEST(DeepspeedTypes, OneRankCopiesNoBucketThatIsReducedWhole) {
  const std::string scattered = R"("stage": 3)";
  for (const auto& [zero, copied] :
       {std::pair{scattered, true}, std::pair{scattered + R"(, "reduce_scatter": false)", false}}) {
    const auto told = says(typed_answer({zero, bf16_alone}), "bucket-bytes");
    EXPECT_EQ(told.find("up to 0 B") == std::string::npos, copied) << told;
  }
}

TEST(DeepspeedTypes, OneRankIsToldTheBytesOfItsTypes) {
  const std::string narrow =
      says(typed_answer({R"("stage": 2)", narrow_bf16}), "one-rank-saves-nothing");
  EXPECT_THAT(narrow, HasSubstr("67.4 GB of model state (10 bytes a parameter)"));
  EXPECT_THAT(narrow, HasSubstr("40.4 GB"));
  EXPECT_THAT(says(typed_answer({R"("stage": 2)", bf16_alone}), "one-rank-saves-nothing"),
              HasSubstr("107.8 GB of model state (16 bytes a parameter)"));
}

TEST(DeepspeedTypes, AResumeCopiesTheOptimizersSwapFilesAlone) {
  const std::string nvme = R"({"device": "nvme", "nvme_path": "/nv"})";
  const Diagnosis diagnosis =
      typed_answer({R"("stage": 3, "offload_optimizer": )" + nvme + R"(, "offload_param": )" + nvme,
                    bf16_alone,
                    "bf16: true\n",
                    {.gpus = 8, .more = R"(, "swap_free_gib": 2048)"}});

  // Master and moments, 12 bytes a parameter, as a checkpoint holds them; weights are swapped beside them.
  expect_says(diagnosis, "resume-copies-swap-files", {"80.9 GB on a node"});
  expect_says(diagnosis, "deepspeed-disk-unbounded", {"80.9 GB of state"});
  EXPECT_THAT(says(diagnosis, "nvme-bytes"), HasSubstr("121.3 GB"));
}

}  // namespace
}  // namespace underkeel::doctor
