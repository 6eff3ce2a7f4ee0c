// Keys that meet: the batch equation, a run file's values, combinations, the optimizer and scheduler.

#include "doctor/config_rules.h"

#include <gtest/gtest.h>

#include "doctor/files.h"

namespace underkeel::doctor {
namespace {

struct RuleExample {
  const char* json;
  const char* id;
  Severity severity;
  const char* says;
  int ranks = 1;
};

void expect_examples(std::span<const RuleExample> examples) {
  for (const RuleExample& example : examples) {
    Files files;
    files.write("ds_config.json", example.json);
    files.question.ranks = example.ranks;

    const Diagnosis diagnosis = files.diagnose();

    const auto all = found(diagnosis, example.id);
    ASSERT_FALSE(all.empty()) << example.id << "\n" << ids_of(diagnosis, Engine::deepspeed);
    EXPECT_EQ(all[0].severity, example.severity) << example.id;
    const std::string text =
        message_of(all[0], Language::english) + " / " + fix_of(all[0], Language::english);
    EXPECT_NE(text.find(example.says), std::string::npos) << text;
  }
}

#define BATCH "\"train_micro_batch_size_per_gpu\": 1, "

TEST(ConfigRules, ExplainCombinationsThatDeepspeedRefusesOrPassesOver) {
  constexpr auto error = Severity::error;
  constexpr auto warning = Severity::warning;
  const RuleExample examples[] = {
      {"{" BATCH R"("fp16": {"enabled": true}, "bf16": {"enabled": true}})", "fp16-and-bf16", error,
       "AssertionError"},
      {"{" BATCH R"("amp": {"enabled": true}, "zero_optimization": {"stage": 1}})", "amp-with-zero",
       error, "stage 1"},
      {"{" BATCH R"("prescale_gradients": true, "zero_optimization": {"stage": 2}})",
       "prescale-with-reduce-scatter", error, "stage 2"},
      {"{" BATCH R"("gradient_predivide_factor": 2, "zero_optimization": {"stage": 2}})",
       "predivide-with-reduce-scatter", error, "AssertionError"},
      {"{" BATCH R"("gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}})",
       "sum-at-stage-3", error, "ValueError"},
      {"{" BATCH R"("zero_optimization": {"stage": 1, "legacy_stage1": true}})", "legacy-stage-1",
       error, "Exception"},
      {"{" BATCH R"("zero_optimization": {"stage": 3, "elastic_checkpoint": true}})",
       "elastic-checkpoint-at-stage-3", error, "every save"},
      {"{" BATCH R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}})",
       "gradient-type-at-stage-0", error, "NotImplementedError"},
      {"{" BATCH R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
         "data_types": {"grad_accum_dtype": "fp32"}})",
       "gradient-type-at-stage-2", warning, "ignored"},
      {"{" BATCH R"("zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}})",
       "offload-at-stage-0", warning, "no offload at stage 0"},
      {"{" BATCH R"("zero_optimization": {"stage": 3, "offload_param": {}}})",
       "offload-without-device", warning, "default is none"},
      {"{" BATCH R"("zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})",
       "nvme-means-cpu", warning, "silently means cpu"},
      {"{" BATCH R"("zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}})",
       "nvme-without-path", error, "nvme_path"},
      {"{" BATCH R"("zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu",
         "ratio": 0.5}}})",
       "ratio-below-stage-3", error, "stage 2"},
      {"{" BATCH R"("zero_optimization": {"stage": 2, "allgather_bucket_size": 5}})",
       "allgather-bucket-is-odd", error, "even"},
      {"{" BATCH R"("activation_checkpointing": {"contiguous_memory_optimization": true}})",
       "contiguous-without-count", warning, "number_checkpoints"},
      {"{" BATCH R"("fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
         "zero_optimization": {"stage": 2}})",
       "master-type-needs-offload", error, "offload_optimizer"},
      {"{" BATCH R"("bf16": {"enabled": true, "bf16_optimizer_states": true}})",
       "bf16-states-need-bf16-master", error, "bf16_master_weights_and_grads"},
      {"{" BATCH R"("zero_optimization": {"stage": 2, "round_robin_gradients": true}})",
       "round-robin-mixes-parameters", warning, "2 ranks", 2},
      {"{" BATCH R"("elasticity": {"enabled": true}})", "elasticity-with-batch", error, "batch"},
      {"{" BATCH R"("checkpoint": {"writer": {}}})", "decoupled-writer-cannot-be-read", warning,
       "torch 2.6"},
      {"{" BATCH R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})",
       "bf16-unchecked-at-stage-3", Severity::info, "NaN"},
  };
  expect_examples(examples);
}

TEST(ConfigRules, ExplainTheOptimizerAndTheScheduler) {
  constexpr auto error = Severity::error;
  constexpr auto warning = Severity::warning;
  const RuleExample examples[] = {
      {"{" BATCH R"("optimizer": {"params": {}}})", "optimizer-without-type", error, "AdamW"},
      {"{" BATCH R"("optimizer": {"type": "AdamX"}})", "optimizer-must-be-torchs", error,
       "the nearest name is"},
      {"{" BATCH R"("optimizer": {"type": "sgd"}, "zero_optimization": {"stage": 2}})",
       "optimizer-must-be-torchs", error, "the nearest name is SGD"},
      {"{" BATCH R"("optimizer": {"type": "rmsprop"}})", "optimizer-must-be-torchs", error,
       "the nearest name is RMSprop"},
      {"{" BATCH R"("scheduler": {"type": "warmuplr", "params": {}}})", "scheduler-must-be-torchs",
       error, "the nearest name is WarmupLR"},
      {"{" BATCH R"("optimizer": {"type": "Lamb"}, "zero_optimization": {"stage": 1}})",
       "optimizer-untested", error, "zero_allow_untested_optimizer: true"},
      {"{" BATCH R"("optimizer": {"type": "Adam"}})", "adam-is-adamw", Severity::info, "decoupled"},
      {"{" BATCH R"("optimizer": {"type": "AdamW", "params": {"adam_w_mode": false}}})",
       "adam-w-mode-ignored", warning, "L2"},
      {"{" BATCH R"("optimizer": {"type": "Adam", "params": {"amsgrad": true}}})",
       "amsgrad-refused", error, "FusedAdam"},
      {"{" BATCH R"("scheduler": {"type": "Cosine", "params": {}}})", "scheduler-must-be-torchs",
       error, "Cosine"},
      {"{" BATCH R"("scheduler": {"type": "WarmupLR"}})", "scheduler-without-params", error,
       "TypeError"},
      {"{" BATCH R"("scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}}})",
       "scheduler-argument", error, "warmup_num_steps"},
      {"{" BATCH R"("scheduler": {"type": "WarmupDecayLR", "params": {}}})",
       "scheduler-argument-missing", error, "total_num_steps"},
      {"{" BATCH R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}})",
       "warmup-not-positive", error, "0.19.3"},
      {"{" BATCH R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000.0}}})",
       "warmup-not-whole", warning, "write 1000"},
      {"{" BATCH R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9]}}})", "betas-not-two",
       error, "betas is [0.9]"},
      {"{" BATCH R"("optimizer": {"type": "AdamW", "params": {"betas": ["0.9", 0.95]}}})",
       "betas-not-two", error, "two numbers"},
      {"{" BATCH R"("optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1.5]}}})",
       "betas-out-of-range", error, "below 1"},
      {"{" BATCH R"("scheduler": {"type": "WarmupDecayLR",
         "params": {"total_num_steps": 5, "warmup_num_steps": 9}}})",
       "fewer-steps-than-warmup", warning, "5"},
      {"{" BATCH R"("scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 1e-6}}})",
       "two-updates-at-minimum", Severity::info, "1e-06"},
  };
  expect_examples(examples);
}

// DeepSpeed looks another class up in torch and hands it these arguments.
TEST(ConfigRules, LeaveTheArgumentsOfTorchsSchedulersToTorch) {
  const auto of = [](const std::string& scheduler) {
    Files files;
    files.write("ds_config.json", "{" BATCH R"("scheduler": )" + scheduler + "}");
    files.write("train.yaml", "stage: sft\nfinetuning_type: full\ndataset: data\n");
    return files.diagnose();
  };

  const Diagnosis cosine =
      of(R"({"type": "CosineAnnealingLR", "params": {"T_max": 100, "eta_min": 1e-6}})");
  const Diagnosis automatic = of(R"({"type": "CosineAnnealingLR", "params": {"T_max": "auto"}})");
  const Diagnosis own = of(R"({"type": "WarmupLR", "params": {"T_max": 100}})");

  for (const Finding& finding : cosine.findings)
    EXPECT_FALSE(finding.key.starts_with("scheduler.params")) << finding.id << " " << finding.key;
  EXPECT_EQ(found(automatic, "auto-nobody-fills", "scheduler.params.T_max").size(), 1u);
  EXPECT_EQ(found(own, "key-unknown", "scheduler.params.T_max").size(), 1u) << messages(own);
}

TEST(ConfigRules, CheckTheBatchEquationOfAConfigAlone) {
  const RuleExample examples[] = {
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,
           "gradient_accumulation_steps": 2})",
       "batch-equation", Severity::error, "4 x gradient_accumulation_steps 2 x 2 ranks", 2},
      {R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4})", "batch-no-multiple",
       Severity::error, "4 x 2 ranks", 2},
      {R"({"gradient_accumulation_steps": 4, "zero_optimization": {}})", "batch-is-missing",
       Severity::error, "AssertionError"},
  };
  expect_examples(examples);
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 4})");
  files.question.ranks = 2;
  EXPECT_TRUE(found(files.diagnose(), "batch-equation").empty());
}

constexpr const char* plain_run =
    "model_name_or_path: m\noutput_dir: out\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
    "dataset: d\ntemplate: empty\nbf16: true\nper_device_train_batch_size: 2\n"
    "gradient_accumulation_steps: 8\nlearning_rate: 5.0e-5\n";

TEST(ConfigRules, NameEveryValueThatTheRunFileContradicts) {
  Files files;
  files.write("train.yaml", plain_run);
  files.write("ds_config.json", R"({"train_batch_size": 8,
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "gradient_clipping": 0.5,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "eps": 1e-6,
                  "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 500}},
    "fp16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  files.question.ranks = 8;

  const Diagnosis diagnosis = files.diagnose();

  for (const char* key :
       {"gradient_clipping", "optimizer.params.lr", "optimizer.params.betas",
        "optimizer.params.eps", "optimizer.params.weight_decay", "scheduler.params.warmup_max_lr",
        "scheduler.params.warmup_num_steps", "fp16.enabled"}) {
    const auto all = found(diagnosis, "run-value-differs", key);
    ASSERT_EQ(all.size(), 1u) << key;
    const std::string message = message_of(all[0], Language::english);
    EXPECT_NE(message.find("ds_config.json"), std::string::npos) << message;
    EXPECT_NE(message.find("train.yaml"), std::string::npos) << message;
  }
  EXPECT_EQ(found(diagnosis, "batch-cannot-be-made").size(), 1u);
  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(diagnosis.underkeel.verdict, Verdict::fails);
}

TEST(ConfigRules, TellDefaultsOfDeepspeedThatReplaceTheRunFilesValuesUnseen) {
  Files files;
  files.write("train.yaml", plain_run);
  files.write("ds_config.json", R"({"optimizer": {"type": "AdamW"}, "bf16": {"enabled": "auto"}})");

  const auto lost = found(files.diagnose(), "run-value-lost");

  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].key, "optimizer.params.lr");
  EXPECT_NE(message_of(lost[0], Language::english).find("0.001"), std::string::npos);
}

TEST(ConfigRules, WarnOfAWarmUpThatAutoMakesZero) {
  Files files;
  files.write("train.yaml", plain_run);
  files.write("ds_config.json", R"({"bf16": {"enabled": "auto"},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}})");

  EXPECT_EQ(found(files.diagnose(), "warmup-becomes-zero").size(), 1u);

  files.write("more/train.yaml", "");  // an empty file changes nothing
  EXPECT_EQ(found(files.diagnose(), "warmup-becomes-zero").size(), 1u);
}

TEST(ConfigRules, KnowThatLlamaFactoryRefusesPureBf16AtStage3) {
  Files files;
  files.write("train.yaml", std::string(plain_run) + "pure_bf16: true\n");
  files.write("ds_config.json", R"({"zero_optimization": {"stage": 3}})");

  EXPECT_EQ(found(files.diagnose(), "pure-bf16-at-stage-3").size(), 1u);
}

TEST(ConfigRules, TakeAnExactNameOfTorchsAndNoAdviceThatLeadsIntoAStop) {
  Files exact;
  exact.write("ds_config.json",
              "{" BATCH R"("optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 2},
              "zero_allow_untested_optimizer": true, "scheduler": {"type": "StepLR"}})");
  for (const char* id : {"optimizer-must-be-torchs", "scheduler-must-be-torchs"})
    EXPECT_TRUE(found(exact.diagnose(), id).empty()) << id;

  Files lower;
  lower.write("ds_config.json",
              "{" BATCH R"("optimizer": {"type": "sgd"}, "zero_optimization": {"stage": 2}})");
  EXPECT_TRUE(found(lower.diagnose(), "optimizer-untested").empty());
}

TEST(ConfigRules, CountAsDeepspeedDoesWhatNobodyFillsIn) {
  struct Row {
    const char* json;
    const char* id;  // "": none of them
    const char* says;
    bool has_run;
  };
  const Row rows[] = {
      {R"("bf16": {"enabled": "auto"})", "batch-is-missing", "not a key that is left out", true},
      {R"("gradient_accumulation_steps": 4)", "batch-is-missing", "AssertionError", true},
      {R"("gradient_accumulation_steps": 3)", "batch-is-missing", "AssertionError", false},
      {R"("train_batch_size": null)", "batch-is-missing", "AssertionError", true},
      {R"("train_batch_size": 10, "gradient_accumulation_steps": 3)", "batch-micro-cannot-be-made",
       "1 x 3 x 2 = 6 is not 10", false},
      {R"("train_batch_size": 12, "gradient_accumulation_steps": 3)", "", "", false},
      {R"("train_batch_size": 16, "train_micro_batch_size_per_gpu": 2)", "", "", true},
      {R"("train_batch_size": 16, "train_micro_batch_size_per_gpu": 2)", "", "", false},
      {R"("train_micro_batch_size_per_gpu": 2)", "accumulation-left-out",
       "2 x 1 x 2 ranks (--ranks) = 4, not 16", true},
      {R"("train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto")", "", "",
       true},
      {R"("elasticity": {"enabled": true})", "", "", true},
  };
  for (const Row& row : rows) {
    Files files;
    files.write("ds_config.json",
                std::string(R"({"zero_optimization": {"stage": 2}, )") + row.json + "}");
    if (row.has_run)
      files.write("train.yaml",
                  "stage: sft\nfinetuning_type: full\nbf16: true\nper_device_train_batch_size: 2\n"
                  "gradient_accumulation_steps: 4\n");
    files.question.ranks = 2;

    const Diagnosis diagnosis = files.diagnose();

    for (const char* id :
         {"batch-is-missing", "batch-micro-cannot-be-made", "accumulation-left-out"})
      EXPECT_EQ(found(diagnosis, id).size(), std::string_view(row.id) == id ? 1u : 0u)
          << row.json << id << ids_of(diagnosis, Engine::deepspeed);
    if (*row.id != 0) {
      EXPECT_NE(says(diagnosis, row.id).find(row.says), std::string::npos)
          << says(diagnosis, row.id);
    }
  }
}

TEST(ConfigRules, AskForZeroWhereAccelerateReadsTheConfig) {
  const std::string config = R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"}})";
  Files alone;
  alone.write("ds_config.json", config);
  EXPECT_TRUE(found(alone.diagnose(), "zero-is-missing").empty());

  Files beside;
  beside.write("ds_config.json", config);
  beside.write("train.yaml", "stage: sft\nfinetuning_type: full\nbf16: true\n");
  const Diagnosis diagnosis = beside.diagnose();
  EXPECT_NE(says(diagnosis, "zero-is-missing").find("ValueError"), std::string::npos);
  EXPECT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
}

TEST(ConfigRules, TellOfASectionThatIsAWordOnce) {
  Files files;
  files.write("ds_config.json",
              "{" BATCH R"("zero_optimization": {"stage": 2, "offload_optimizer": "cpu"}})");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "value-wrong-type").size(), 1u);
  EXPECT_TRUE(found(diagnosis, "offload-without-device").empty());
}

TEST(ConfigRules, TakeWholeFloatsAsPydanticDoes) {
  for (const auto& [value, is_taken] :
       {std::pair{"1e16", true}, {"1e17", true}, {"9e18", true}, {"1e19", false}, {"1.5", false}}) {
    Files files;
    files.write("ds_config.json",
                "{" BATCH "\"zero_optimization\": {\"stage\": 3, \"sub_group_size\": " +
                    std::string(value) + ", \"stage3_max_live_parameters\": " + value + "}}");
    EXPECT_EQ(found(files.diagnose(), "value-wrong-type").size(), is_taken ? 0u : 2u) << value;
  }
}

TEST(ConfigRules, NameTheKeyThatDiffersInItsCaseAlone) {
  Files files;
  files.write("ds_config.json", "{" BATCH R"("BF16": {"enabled": true}})");
  EXPECT_NE(says(files.diagnose(), "key-misspelt").find("`bf16`"), std::string::npos);
}

}  // namespace
}  // namespace underkeel::doctor
