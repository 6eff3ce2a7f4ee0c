// The report: order, shape of the JSON, languages, exit codes.

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doctor/files.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using Json = nlohmann::json;

TEST(Report, HasTheShapeThatOtherProgramsRead) {
  Files files;
  files.write("ds_config.json",
              R"({"train_batch_size": 1, "zero_optimization": {"stag": 2}, "wall_clock": 1})");

  const Json report = Json::parse(to_json(files.diagnose(), Language::english));

  ASSERT_TRUE(report.at("findings").is_array());
  for (const Json& finding : report.at("findings"))
    for (const char* key :
         {"id", "severity", "certainty", "engine", "file", "key", "message", "fix"})
      EXPECT_TRUE(finding.contains(key)) << key;
  for (const char* engine : {"deepspeed", "underkeel"}) {
    EXPECT_TRUE(report.at("engines").at(engine).at("verdict").is_string());
    EXPECT_TRUE(report.at("engines").at(engine).at("memory").is_object());
  }
  EXPECT_TRUE(report.at("alternatives").is_array());
}

TEST(Report, HasTheFiguresOfTheSentences) {
  Files files;
  files.write("model.json", model_json(llama_33b));
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "cpu", "pin_memory": true}}})");
  files.write("train.yaml", "finetuning_type: full\nbf16: true\ncutoff_len: 256\n");
  files.write("hardware.json", R"({"gpus_per_node": 8, "gpu_mem_gib": 40, "host_ram_gib": 900})");

  const Json report = Json::parse(to_json(files.diagnose(), Language::english));

  std::string said;
  for (const Json& finding : report.at("findings"))
    if (finding.at("id") == "host-phases") said = finding.at("message");
  for (const char* phase : {"step", "save", "after_save"}) {
    const Json& host = report.at("engines").at("deepspeed").at("memory").at(phase).at("host");
    // The sentence tells the processes apart: 1 to 3 GB of each rank.
    const double low = host.at("low_bytes").get<double>() - 8e9;
    const double high = host.at("high_bytes").get<double>() - 24e9;
    EXPECT_NE(said.find(amount(low) + " - " + amount(high)), std::string::npos)
        << phase << " " << amount(high) << ": " << said;
    EXPECT_GT(host.at("rounding_bytes").get<double>(), 1e9);
    EXPECT_FALSE(host.at("terms").contains("rounding"));
  }
}

TEST(Report, PutsErrorsFirst) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 1, "wall_clock": 1,
    "zero_optimization": {"stag": 2, "allgather_partitions": true}})");

  const Diagnosis diagnosis = files.diagnose();

  ASSERT_GT(diagnosis.findings.size(), 2u);
  for (std::size_t i = 1; i < diagnosis.findings.size(); ++i)
    EXPECT_LE(diagnosis.findings[i - 1].severity, diagnosis.findings[i].severity);
}

TEST(Report, EndsAsTheEngineThatWouldRunTheFileDoes) {
  Files ignored;  // a misspelt key: DeepSpeed passes over it, our engine refuses
  ignored.write("ds_config.json", R"({"train_batch_size": 1, "gradient_cliping": 1})");
  EXPECT_EQ(exit_code_of(ignored.diagnose(), Engine::deepspeed), 0);
  EXPECT_EQ(exit_code_of(ignored.diagnose(), Engine::underkeel), 2);

  Files refused;
  refused.write("ds_config.json", R"({"train_batch_size": 1, "zero_optimization": {"stag": 1}})");
  EXPECT_EQ(exit_code_of(refused.diagnose(), Engine::deepspeed), 2);
  EXPECT_EQ(exit_code_of(refused.diagnose(), Engine::underkeel), 2);
}

TEST(Report, SaysTheSameInBothLanguages) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 5,
    "gradient_accumulation_steps": 7})");

  const Json english = Json::parse(to_json(files.diagnose(), Language::english));
  const Json chinese = Json::parse(to_json(files.diagnose(), Language::chinese));

  ASSERT_EQ(english.at("findings").size(), chinese.at("findings").size());
  for (const char* number : {"12", "5", "7", "35"})
    EXPECT_NE(chinese.at("findings")[0].at("message").get<std::string>().find(number),
              std::string::npos)
        << number;
  EXPECT_EQ(english.at("findings")[0].at("id"), chinese.at("findings")[0].at("id"));
}

TEST(Report, CountsTheRanksAndSaysWhoSaidSo) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 16})");
  files.write("machine.json", R"({"nodes": 2, "gpus_per_node": 8, "gpu_mem_gib": 80,
    "host_ram_gib": 500})");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(message_of(found(diagnosis, "ranks-counted").at(0), Language::english),
            "16 ranks, 8 on a node: machine.json");
}

TEST(Report, ShowsSizesOfFiveSettingsWhereNoMachineIsKnown) {
  Files files;
  files.write("config.json", model_json(llama_7b));
  files.write("run.yaml",
              "stage: sft\nbf16: true\nfinetuning_type: full\nper_device_train_batch_size: 8\n");
  files.write(
      "ds_config.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})");
  files.question.ranks = 8;

  const std::string text = to_text(files.diagnose(), Language::english);

  const std::size_t table = text.find("What other settings need, with DeepSpeed");
  ASSERT_NE(table, std::string::npos) << text;
  const std::string rows = text.substr(table);
  EXPECT_EQ(text.find("What fits, with DeepSpeed"), std::string::npos);
  EXPECT_EQ(rows.find("margin"), std::string::npos);
  EXPECT_EQ(rows.find(" - "), std::string::npos);
  EXPECT_LE(std::count(rows.begin(), rows.end(), '\n'), 8);
}

TEST(Report, ShowsFiveRowsAtMost) {
  Diagnosis diagnosis;
  for (int i = 1; i <= 29; ++i)
    diagnosis.alternatives.push_back({.verdict = Verdict::runs,
                                      .changes = i,
                                      .device_bytes = 1e9,
                                      .device_margin_bytes = 2e9,
                                      .words = fmt::format("row-{}", i)});
  diagnosis.deepspeed.verdict = Verdict::fails;

  for (const Language language : {Language::english, Language::chinese}) {
    const std::string text = to_text(diagnosis, language);

    EXPECT_NE(text.find("row-5\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("row-6\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("row-29"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace underkeel::doctor
