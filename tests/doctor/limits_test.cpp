// Files of any size and content: few lines come of them, and nothing that steers a terminal or breaks JSON.

#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "doctor/files.h"
#include "doctor/log_reader.h"
#include "doctor/shapes.h"

namespace underkeel::doctor {
namespace {

using testing::HasSubstr;

std::string many_keys(std::string_view word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format(", \"{}{}\": 1", word, i);
  return text;
}

TEST(Limits, ListTwentyFindingsOfAKindAndCountTheOthers) {
  Files files;
  files.write("ds_config.json",
              R"({"train_batch_size": 8)" + many_keys("something_else_", 500) + "}");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "key-unknown").size(), 20u);
  EXPECT_THAT(messages(diagnosis), HasSubstr("not listed: 180 more of this kind (key-unknown)"));
  EXPECT_THAT(messages(diagnosis), HasSubstr("not listed: 300 more of this kind (key-unknown)"));
}

TEST(Limits, KeepAnErrorAmongManyWarnings) {
  Files files;
  files.write("ds_config.json", R"({"train_batch_size": 8, "zero_optimization": {"stge": 2})" +
                                    many_keys("something_else_", 100) + "}");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_EQ(found(diagnosis, "key-misspelt", "zero_optimization.stge").size(), 1u);
  EXPECT_EQ(exit_code_of(diagnosis, Engine::deepspeed), 2);
}

TEST(Limits, TellProblemsOfOurOwnEngineShort) {
  Files files;
  std::string text = "model_name_or_path: ./absent\nstage: sft\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("no_such_key_{}: 1\n", i);
  files.write("run.yaml", text);

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_LE(diagnosis.findings.size(), 60u);
  EXPECT_THAT(messages(diagnosis), HasSubstr("280 more unknown keys"));
}

TEST(Limits, TakeALargeJsonFileOfNoKindForWhatItIs) {
  Files files;
  files.write("state.json", R"({"log": 0)" + many_keys("k", 100'001) + "}");
  EXPECT_EQ(found(files.diagnose(), "file-unrecognised").size(), 1u);

  Files config;
  config.write("ds_config.json", R"({"zero_optimization": {})" + many_keys("k", 100'001) + "}");
  EXPECT_THAT(says(config.diagnose(), "file-broken"), HasSubstr("more than 100,000 values"));
}

TEST(Limits, ReadTheEndOfALongLogAndSayHowMuch) {
  Files files;
  files.write("train.log", "[INFO] begin\n" + std::string(5 << 20, '.') +
                               "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                               "2.00 GiB. GPU 3 has a total capacity of 79.15 GiB\n");

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_THAT(says(diagnosis, "log-out-of-memory"), HasSubstr("2.1 GB"));
  EXPECT_THAT(says(diagnosis, "file-read-in-part"),
              HasSubstr("the end of this file was read, 4.2 MB of 5.2 MB"));
}

TEST(Limits, ReadTheBeginningOfLongAdvice) {
  Files files;
  files.write("advice.md", "Just turn off pin_memory.\n" + std::string(1'200'000, 'a'));

  const Diagnosis diagnosis = files.diagnose();

  EXPECT_THAT(says(diagnosis, "file-read-in-part"),
              HasSubstr("the beginning of this file was read, 1.0 MB of 1.2 MB"));
}

TEST(Limits, DoNotParseHeadersOfMoreTensorsThanAnyModelHas) {
  std::string header = "{";
  for (int i = 0; i < 60'000; ++i)
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[{},{}]}}",
                          i == 0 ? "" : ",", i, 2 * i, 2 * i + 2);
  header += "}";
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  Files files;
  files.write("many.safetensors", file + header + std::string(120'000, '\0'));

  EXPECT_THAT(says(files.diagnose(), "weights-headers-large"), HasSubstr("3.1 MB"));
}

/// Every text of an answer, as a terminal and as a program get it.
void expect_printable(const Diagnosis& diagnosis) {
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string text = to_text(diagnosis, language);
    EXPECT_EQ(printable_lines(text), text);
    const auto json =
        nlohmann::json::parse(to_json(diagnosis, language));  // refuses what is no UTF-8
    for (const auto& finding : json["findings"])
      for (const char* key : {"file", "key", "message", "fix"}) {
        const auto part = finding[key].get<std::string>();
        EXPECT_EQ(printable_lines(part), part);
      }
  }
}

TEST(Limits, PrintNothingThatSteersATerminal) {
  const std::string escape = "\\u001b[31m", mark = "\\u202e\\r\\u009b";
  Files config;
  config.write("ds_config.json",
               R"({"train_batch_size": "8)" + escape + R"(", "zero_optimization": {"sta)" + escape +
                   R"(ge": 3, "reduce_bucket_size": ")" + mark + R"("}, "gradient_cl)" + mark +
                   R"(ipping": 1, "optimizer": {"type": "Ad)" + escape + "\\nam" + R"("}})");
  expect_printable(config.diagnose());

  Files run;
  run.write("run.yaml",
            "model_name_or_path: \"a\\e[31m\"\nstage: \"s\\e]0;x\\a\"\ncutoff_len: \"\\x9b\"\n"
            "\"k\\e[2J\\n\": 1\nunderkeel:\n  \"x\\e\": 1\n");
  run.write("hardware.yaml", "host_ram_gib: \"\\e[1m\"\n\"gpu\\e\": 2\n");
  run.write("accelerate.yaml",
            "compute_environment: LOCAL\ndistributed_type: \"D\\e\"\n\"n\\e\": 1\n");
  expect_printable(run.diagnose());

  Files others;
  others.write("ds\x1b[31m.json", "{\"zero_optimization\": 3 \xff");
  others.write("x\xff.yaml", "stage: sft\ncutoff_len: \xff\n");
  others.write("train.log",
               "Traceback (most recent call last)\nRuntimeError: \x1b[31m OpType=\x1b \xff\n"
               "AssertionError: train_batch_size is not equal to micro 8 != 4 \x1b[0m\n");
  others.write("dataset_info.json",
               "{\"m\\u001bine\": {\"file_name\": \"a\\u001b.json\", \"colums\\u001b\": 1}}");
  others.write("config.json",
               "{\"model_type\": \"ll\\u001bama\", \"architectures\": [\"\\u202e\"], "
               "\"num_hidden_layers\": 2}");
  others.write("bad.jsonl", "{\"instruction\": \"\xff\"}\n{\"instr\x1b\": 1}\n");
  others.write("advice.md", "Set zero_force_opt_offload\x1b[31m to true \xff.\n");
  expect_printable(others.diagnose());
}

TEST(Limits, KeepFiguresThatNoMachineHasOutOfTheSums) {
  for (const char* bucket : {"1e308", "1e400", "-1e308", "\"99999999999999999999999\"", "1e19"}) {
    Files files;
    files.write("config.json", model_json(llama_7b));
    files.write("ds_config.json",
                fmt::format(R"({{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}},
                    "zero_optimization": {{"stage": 3, "reduce_bucket_size": {}}}}})",
                            bucket));
    files.question.ranks = 8;

    const Diagnosis diagnosis = files.diagnose();
    const std::string text = to_text(diagnosis, Language::english);

    EXPECT_THAT(text, testing::Not(HasSubstr("inf GB"))) << bucket;
    EXPECT_THAT(text, testing::Not(testing::ContainsRegex("[0-9]{8}\\.[0-9] GB"))) << bucket;
    EXPECT_EQ(exit_code_of(diagnosis, Engine::underkeel), 2) << bucket;
  }
}

TEST(Limits, MultiplyBatchesThatAreBeyondAnyCounter) {
  Files files;
  files.write("ds_config.json",
              R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1000000000000,
                                    "gradient_accumulation_steps": 1000000000000})");
  files.question.ranks = 8;

  EXPECT_THAT(says(files.diagnose(), "batch-equation"), HasSubstr("> 2^63"));
}

TEST(LogReader, FindsWordsAcrossThePiecesThatItSearches) {
  const std::string words = "CUDA out of memory";
  for (const std::size_t behind : {0u, 10u, 65'520u, 65'530u, 65'536u, 200'000u}) {
    const std::string text =
        "CUDA out of memory first " + std::string(100'000, '.') + words + std::string(behind, '.');
    EXPECT_EQ(find_last_words(text, words), text.size() - behind - words.size()) << behind;
    EXPECT_EQ(find_last_words(text, words, 1000), 0u);
  }
  EXPECT_EQ(find_last_words("abc", "abcd"), std::string_view::npos);
  EXPECT_EQ(find_last_words("", "a"), std::string_view::npos);
  EXPECT_EQ(find_last_words("aaaa", "aa"), 2u);
}

}  // namespace
}  // namespace underkeel::doctor
