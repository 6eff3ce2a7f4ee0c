// A DeepSpeed config without a run file: it is judged by what it says, and not by defaults that stand nowhere in it.

#include <gtest/gtest.h>

#include "doctor/case_files.h"

namespace underkeel::doctor {
namespace {

Diagnosis answer_to(std::string_view config, std::optional<std::int64_t> ranks = {}) {
  Files files;
  files.write("ds_config.json", config);
  files.question.ranks = ranks;
  return files.diagnose();
}

std::string errors_of(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings)
    if (finding.severity == Severity::error)
      text += finding.id + ": " + message_of(finding, Language::english) + "\n";
  return text;
}

TEST(LoneConfig, IsNotRefusedForValuesThatStandNowhere) {
  const std::string_view configs[] = {
      R"({"train_batch_size": 32, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})",
      R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})",
      R"({"train_batch_size": 32, "gradient_accumulation_steps": 4})",
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 4})",
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4,
          "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.1}}, "gradient_clipping": 0.3})",
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {}}})",
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"},
          "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3,
          "warmup_num_steps": 100}}})",
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
          "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0,
          "warmup_max_lr": 2e-4, "warmup_num_steps": 100, "total_num_steps": 1000}}})",
      R"({"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}})",
      R"({"train_batch_size": 8, "fp16": {"enabled": true}})",
      R"({"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": "auto"}})",
      R"({"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": "auto"}})"};
  for (const std::string_view config : configs) {
    const Diagnosis diagnosis = answer_to(config);

    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 0) << config << errors_of(diagnosis);
    EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 0) << config << errors_of(diagnosis);
    EXPECT_EQ(messages(diagnosis).find("(default)"), std::string::npos) << messages(diagnosis);
  }
}

TEST(LoneConfig, IsForTheRanksThatItsBatchIsFor) {
  const std::string config =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 4})";

  expect_says(answer_to(config), "ranks-counted", {"8 ranks, 8 on a node: ds_config.json"});
  // Ranks that were asked for hold, and the batch is none of theirs.
  const Diagnosis asked = answer_to(config, 3);
  EXPECT_EQ(exit_code_of(asked, Engine::deepspeed), 2);
  EXPECT_EQ(exit_code_of(asked, Engine::underkeel), 2);
  // No number of ranks makes 64 of 2 x 5.
  EXPECT_EQ(exit_code_of(answer_to(R"({"train_batch_size": 64,
      "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 5})"),
                         Engine::deepspeed),
            2);
}

TEST(LoneConfig, IsRefusedForWhatItSays) {
  const Diagnosis negative =
      answer_to("{\n\"train_batch_size\": 8,\n\"train_micro_batch_size_per_gpu\": -2\n}");
  EXPECT_EQ(exit_code_of(negative, Engine::underkeel), 2);
  const auto told = found(negative, "underkeel-refuses", "train_micro_batch_size_per_gpu");
  ASSERT_FALSE(told.empty()) << messages(negative);
  EXPECT_EQ(told[0].line, 3);
}

/// Below 0 nothing is clipped, as with 0: a value does not contradict itself.
TEST(LoneConfig, DoesNotContradictItsOwnClipping) {
  for (const char* norm : {"-1", "-0.5", "0", "1.0"}) {
    const Diagnosis clipped =
        answer_to(fmt::format(R"({{"train_batch_size": 8, "gradient_clipping": {}}})", norm));
    EXPECT_TRUE(found(clipped, "underkeel-refuses").empty()) << norm << messages(clipped);
  }
}

/// Neither length nor saves stand in a config: what only they make too large is left open.
TEST(LoneConfig, IsNotRefusedForLengthsOrSavesThatItDoesNotSay) {
  const auto on = [](double gpu_gib, double host_gib, std::string_view zero) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    files.write("ds_config.json",
                fmt::format(R"({{"train_batch_size": 512, "bf16": {{"enabled": true}},
                                 "zero_optimization": {{{}}}}})",
                            zero));
    files.write("hardware.json",
                machine_json({.gpus = 8, .gpu_gib = gpu_gib, .host_gib = host_gib}));
    return files.diagnose();
  };

  const Diagnosis long_ones = on(20, 512, R"("stage": 3)");
  EXPECT_EQ(long_ones.deepspeed.verdict, Verdict::unknown) << errors_of(long_ones);
  EXPECT_EQ(long_ones.underkeel.verdict, Verdict::unknown) << errors_of(long_ones);
  expect_says(long_ones, "deepspeed-lengths-not-known", {"2048 tokens", "give the run file"});
  expect_says(long_ones, "underkeel-lengths-not-known",
              {"2048 tokens", "short ones fit", "give the run file"});

  // A save of stage 2 holds weights once more on the host, by each rank.
  const Diagnosis saving = on(80, 200, R"("stage": 2, )" + offload_optimizer);
  EXPECT_EQ(saving.deepspeed.verdict, Verdict::unknown) << errors_of(saving);

  // State alone does not fit, whatever the lengths.
  const Diagnosis state = on(8, 512, R"("stage": 3)");
  EXPECT_EQ(state.deepspeed.verdict, Verdict::fails);
  EXPECT_EQ(state.underkeel.verdict, Verdict::fails);
}

/// The configs that people have say "auto" where the run file decides: without one they are judged in 16 bit and as the Trainer
/// loads them, and not as a model in f32 that every rank holds whole.
TEST(LoneConfig, OfATrainerIsJudgedInTheTypeItIsFor) {
  const auto diagnosed = [](std::string_view enabled) {
    Files files;
    files.write("model.json", model_json(llama_8b));
    files.write("ds_config.json", fmt::format(R"({{"train_micro_batch_size_per_gpu": "auto",
    "bf16": {{"enabled": {}}},
    "zero_optimization": {{"stage": 3, "offload_optimizer": {{"device": "cpu"}},
                           "offload_param": {{"device": "cpu"}}}}}})",
                                              enabled));
    files.write("hardware.json", R"({"gpus_per_node": 4, "gpu_mem_gib": 24, "host_ram_gib": 512})");
    return files.diagnose();
  };

  const Diagnosis open = diagnosed("\"auto\"");
  const Diagnosis on = diagnosed("true");

  EXPECT_NE(open.deepspeed.verdict, Verdict::fails) << messages(open);
  for (const Phase phase : {Phase::load, Phase::step, Phase::update})
    EXPECT_EQ(open.deepspeed.at(phase, Space::device)->high(),
              on.deepspeed.at(phase, Space::device)->high());
}

/// DeepSpeed's own reader takes a trailing comma, the Trainer's does not: a warning of either engine, and an error where
/// the Trainer reads the file.
TEST(LoneConfig, WithATrailingCommaIsAWarningUntilTheTrainerReadsIt) {
  const std::string config =
      "{\"train_micro_batch_size_per_gpu\": 4, \"bf16\": {\"enabled\": true},}";
  const auto severity_of = [](const Diagnosis& diagnosis, std::string_view id) {
    for (const Finding& finding : diagnosis.findings)
      if (finding.id == id) return std::string(name_of(finding.severity));
    return "no " + std::string(id);
  };

  const Diagnosis alone = answer_to(config);
  Files files;
  files.write("ds_config.json", config);
  files.write("train.yaml",
              "stage: sft\nfinetuning_type: full\nbf16: true\nper_device_train_batch_size: 4\n"
              "deepspeed: ds_config.json\n");
  const Diagnosis of_run = files.diagnose();

  EXPECT_EQ(severity_of(alone, "json-not-strict"), "warning");
  EXPECT_EQ(severity_of(alone, "underkeel-note"), "warning");
  EXPECT_EQ(exit_code_of(alone, Engine::deepspeed), 0);
  EXPECT_EQ(severity_of(of_run, "json-not-strict"), "error");
  EXPECT_EQ(exit_code_of(of_run, Engine::deepspeed), 2);
}

}  // namespace
}  // namespace underkeel::doctor
