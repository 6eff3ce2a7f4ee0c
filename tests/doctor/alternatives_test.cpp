// The table of what would cure it, and what KEY=VALUE on the command line changes.

#include <gtest/gtest.h>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

constexpr Shape small_model = {256, 64, 2, 128, 4, 2, 0, false, true};

std::string run_text(std::string_view more) {
  return "stage: sft\ndo_train: true\ndataset: data\nfinetuning_type: full\nbf16: true\n"
         "learning_rate: 1.0e-4\n" +
         std::string(more);
}

std::string config_text(std::string_view zero, std::string_view batch =
                                                   R"("train_micro_batch_size_per_gpu": "auto",
                                                      "gradient_accumulation_steps": "auto",)") {
  return fmt::format(R"({{{} "bf16": {{"enabled": true}}, "zero_optimization": {{{}}}}})", batch,
                     zero);
}

std::vector<Alternative> rows_of(const Diagnosis& diagnosis, Engine engine) {
  std::vector<Alternative> rows;
  for (const Alternative& row : diagnosis.alternatives)
    if (row.engine == engine && row.verdict == Verdict::runs && row.changes > 0)
      rows.push_back(row);
  return rows;
}

/// Every row of ours is taken back.
void expect_accepted(Files& files, const Diagnosis& diagnosis) {
  const auto rows = rows_of(diagnosis, Engine::underkeel);
  ASSERT_FALSE(rows.empty()) << messages(diagnosis);
  for (const Alternative& row : rows) {
    ASSERT_FALSE(row.words.empty()) << row.stage;
    files.question.changes = words_in(row.words);
    const Diagnosis changed = files.diagnose();
    EXPECT_EQ(changed.underkeel.verdict, Verdict::runs) << row.words << "\n" << messages(changed);
  }
}

TEST(Alternatives, SwitchOffTheOffloadThatIsNotBuilt) {
  const char* asked[] = {
      R"("stage": 2, "offload_optimizer": {"device": "cpu"})",
      R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "x"},
         "offload_param": {"device": "cpu"})",
      R"("stage": 2, "cpu_offload": true)",
      R"("stage": 2, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})"};
  for (const char* zero : asked) {
    Files files;
    files.write("model.json", model_json(small_model));
    files.write("ds_config.json", config_text(zero));
    files.write("train.yaml", run_text("per_device_train_batch_size: 4\n"));
    files.write("hardware.json", R"({"gpus_per_node": 2, "gpu_mem_gib": 24, "host_ram_gib": 64})");

    const Diagnosis diagnosis = files.diagnose();

    ASSERT_EQ(diagnosis.underkeel.verdict, Verdict::fails) << zero;
    const auto rows = rows_of(diagnosis, Engine::underkeel);
    ASSERT_FALSE(rows.empty()) << zero;
    EXPECT_NE(rows[0].words.find("offload"), std::string::npos) << rows[0].words;
    EXPECT_NE(to_text(diagnosis, Language::english).find(rows[0].words), std::string::npos);
    expect_accepted(files, diagnosis);
  }
}

TEST(Alternatives, AreAcceptedBesideSizesThatTheConfigFixes) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write(
      "ds_config.json",
      config_text(R"("stage": 0, "offload_param": {"device": "cpu"})",
                  R"("train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2,)"));
  files.write("train.yaml", run_text("per_device_train_batch_size: 8\n"
                                     "gradient_accumulation_steps: 2\ncutoff_len: 2048\n"));
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 40, "host_ram_gib": 512})");
  expect_accepted(files, files.diagnose());
}

TEST(Alternatives, LeaveOutRowsThatOnlyNeedMore) {
  Files files;
  files.write("model.json", model_json(llama_8b));
  files.write("ds_config.json", config_text(R"("stage": 3)"));
  files.write("train.yaml", run_text("per_device_train_batch_size: 2\ncutoff_len: 1024\n"));
  files.write("hardware.json", R"({"gpus_per_node": 4, "gpu_mem_gib": 40, "host_ram_gib": 900})");

  const Diagnosis diagnosis = files.diagnose();

  for (const Engine engine : {Engine::deepspeed, Engine::underkeel}) {
    const auto rows = rows_of(diagnosis, engine);
    for (const Alternative& a : rows)
      for (const Alternative& b : rows) {
        const bool is_alike = a.recomputes == b.recomputes && a.micro_batch == b.micro_batch &&
                              a.offload_optimizer == b.offload_optimizer &&
                              a.offload_param == b.offload_param && a.stage < 3 && b.stage < 3 &&
                              a.changes <= b.changes;
        EXPECT_FALSE(is_alike && a.device_bytes < b.device_bytes && a.host_bytes <= b.host_bytes)
            << "stage " << b.stage << " beside stage " << a.stage;
      }
  }
  const auto of_deepspeed = rows_of(diagnosis, Engine::deepspeed);
  const auto has = [&](int stage) {
    return std::any_of(of_deepspeed.begin(), of_deepspeed.end(), [&](const Alternative& row) {
      return row.stage == stage && row.offload_optimizer == "cpu";
    });
  };
  EXPECT_TRUE(has(2));
  EXPECT_FALSE(has(1));
}

TEST(Alternatives, HaveNvmeWhereItsSizeIsKnown) {
  for (const bool is_known : {false, true}) {
    Files files;
    files.write("model.json", model_json(llama_33b));
    files.write("ds_config.json", config_text(R"("stage": 3, "offload_optimizer": {"device": "cpu"},
                                                 "offload_param": {"device": "cpu"})"));
    files.write("train.yaml", run_text("per_device_train_batch_size: 1\n"
                                       "gradient_accumulation_steps: 2\n"));
    files.write("hardware.json",
                fmt::format(R"({{"gpus_per_node": 8, "gpu_mem_gib": 40, "host_ram_gib": 559{}}})",
                            is_known ? R"(, "swap_free_gib": 1024)" : ""));
    const Diagnosis diagnosis = files.diagnose();
    ASSERT_EQ(diagnosis.deepspeed.verdict, Verdict::fails);
    std::vector<Alternative> nvme;
    for (const Alternative& row : rows_of(diagnosis, Engine::deepspeed))
      if (row.offload_optimizer == "nvme") nvme.push_back(row);
    EXPECT_EQ(nvme.empty(), !is_known);
    if (!is_known) continue;
    EXPECT_NEAR(*nvme[0].nvme_bytes, 520.5e9, 0.1e9);
    EXPECT_NE(to_text(diagnosis, Language::chinese).find("nvme 520.5 GB"), std::string::npos);
    // It is taken back.
    files.question.changes = {
        "deepspeed.zero_optimization.offload_optimizer.device=nvme",
        "deepspeed.zero_optimization.offload_optimizer.nvme_path=./swap",
        "deepspeed.zero_optimization.offload_param.device=" + nvme[0].offload_param};
    EXPECT_EQ(files.diagnose().deepspeed.verdict, Verdict::runs);
  }
}

TEST(Changes, OfTheConfigHoldForBothEngines) {
  const std::string run = run_text("per_device_train_batch_size: 4\n");
  const auto bytes = [](const Diagnosis& diagnosis) {
    return diagnosis.deepspeed.at(Phase::update, Space::device)->low();
  };
  const auto ask = [&](const std::string& config, std::vector<std::string> changes,
                       const std::string& yaml) {
    Files files;
    files.write("model.json", model_json(llama_7b));
    if (!config.empty()) files.write("ds_config.json", config);
    if (!yaml.empty()) files.write("train.yaml", yaml);
    files.question.ranks = 4;
    files.question.changes = std::move(changes);
    return files.diagnose();
  };
  const std::string stage_2 = config_text(R"("stage": 2)"), stage_3 = config_text(R"("stage": 3)");
  const std::string change = "deepspeed.zero_optimization.stage=3";
  EXPECT_NE(bytes(ask(stage_2, {}, run)), bytes(ask(stage_3, {}, run)));
  EXPECT_EQ(bytes(ask(stage_2, {change}, run)), bytes(ask(stage_3, {}, run)));
  EXPECT_EQ(bytes(ask(stage_2, {change}, "")), bytes(ask(stage_3, {}, "")));
  // A key of the run file with dots, and a config that stands in the run file.
  EXPECT_EQ(bytes(ask(stage_2, {}, run + "deepspeed.zero_optimization.stage: 3\n")),
            bytes(ask(stage_3, {}, run)));
  EXPECT_EQ(bytes(ask("", {change},
                      run + "deepspeed: {\"train_batch_size\": \"auto\", \"zero_optimization\": "
                            "{\"stage\": 2}}\n")),
            bytes(ask("", {},
                      run + "deepspeed: {\"train_batch_size\": \"auto\", \"zero_optimization\": "
                            "{\"stage\": 3}}\n")));
  EXPECT_EQ(bytes(ask("", {change}, run)),
            bytes(ask("", {},
                      run + "deepspeed: {\"train_batch_size\": \"auto\", \"zero_optimization\": "
                            "{\"stage\": 3}}\n")));
  // Its keys are checked too.
  const auto misspelt =
      found(ask(stage_2, {"deepspeed.zero_optimization.stag=3"}, run), "key-misspelt");
  ASSERT_EQ(misspelt.size(), 1u);
  EXPECT_EQ(misspelt[0].engine, Engine::deepspeed);
  // Keys of a run file where there is none: DeepSpeed's half says that it does not see them.
  const Diagnosis without = ask(stage_2, {"per_device_train_batch_size=2"}, "");
  EXPECT_NE(says(without, "changes-without-run-file").find("`per_device_train_batch_size`"),
            std::string::npos)
      << messages(without);
  EXPECT_TRUE(found(ask(stage_2, {change}, ""), "changes-without-run-file").empty());
}

/// Of what is not sure to fit only what needs less of the space that is short, or of the device where no machine is known.
TEST(Alternatives, LeaveOutRowsThatMayFitAndNeedMore) {
  Files unknown;
  unknown.write("model.json", model_json(small_model));
  unknown.write("train.yaml", run_text("per_device_train_batch_size: 4\n"));
  Files short_of_host;
  short_of_host.write("model.json", model_json(qwen_32b));
  short_of_host.write("ds_config.json", config_text(R"("stage": 3)"));
  short_of_host.write("train.yaml",
                      "stage: sft\ndo_train: true\ndataset: data\nfinetuning_type: lora\n"
                      "lora_rank: 8\nbf16: true\nlearning_rate: 1.0e-4\ncutoff_len: 1024\n"
                      "per_device_train_batch_size: 1\n");
  short_of_host.write("hardware.json",
                      R"({"gpus_per_node": 2, "gpu_mem_gib": 48, "host_ram_gib": 64})");
  const auto most_of = [](const Diagnosis& diagnosis, Space space) {
    double most = 0;
    for (std::size_t p = 0; p < phase_count; ++p)
      if (const auto& holding = diagnosis.deepspeed.at(static_cast<Phase>(p), space);
          holding && static_cast<Phase>(p) != Phase::resume)
        most = std::max(most, holding->high_without(rounding_term));
    return most;
  };
  for (const auto& [files, space] :
       {std::pair{&unknown, Space::device}, std::pair{&short_of_host, Space::host}}) {
    const Diagnosis diagnosis = files->diagnose();
    ASSERT_EQ(diagnosis.deepspeed.verdict, Verdict::unknown) << messages(diagnosis);
    for (const Alternative& row : diagnosis.alternatives) {
      if (row.engine != Engine::deepspeed || row.changes == 0 || row.verdict != Verdict::unknown)
        continue;
      EXPECT_LT(space == Space::device ? row.device_bytes : row.host_bytes,
                most_of(diagnosis, space))
          << row.words;
    }
  }
}

TEST(Changes, MayNameAnotherConfig) {
  Files files;
  files.write("model.json", model_json(llama_7b));
  files.write("two.json", config_text(R"("stage": 2)"));
  files.write("train.yaml", run_text("per_device_train_batch_size: 4\n"));
  test::write_text(files.at("three.json"), config_text(R"("stage": 3)"));
  files.question.ranks = 4;
  EXPECT_TRUE(found(files.diagnose(), "live-window").empty());
  files.question.changes = {"deepspeed=" + files.at("three.json").string()};
  EXPECT_FALSE(found(files.diagnose(), "live-window").empty());
}

/// Four cards of 24 GiB and a small host: no setting helps full fine-tuning of 8B, adapters do.
TEST(Alternatives, NameAnotherMethodWhereNoSettingFits) {
  Files files;
  files.write("model.json", model_json(llama_8b));
  files.write("train.yaml",
              "stage: sft\nfinetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n"
              "cutoff_len: 1024\n");
  files.write("ds_config.json",
              R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})");
  files.write("hardware.json", R"({"gpus_per_node": 4, "gpu_mem_gib": 24, "host_ram_gib": 128})");

  const Diagnosis full = files.diagnose();
  const auto findings = found(full, "deepspeed-does-not-fit");
  ASSERT_FALSE(findings.empty()) << messages(full);
  EXPECT_NE(fix_of(findings[0], Language::english).find("finetuning_type=lora lora_target=all"),
            std::string::npos)
      << fix_of(findings[0], Language::english);

  files.question.changes = {"finetuning_type=lora", "lora_target=all"};
  EXPECT_EQ(files.diagnose().deepspeed.verdict, Verdict::runs);
}

}  // namespace
}  // namespace underkeel::doctor
