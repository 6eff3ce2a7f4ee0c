// The command itself: flags, exit codes, languages, and what only it does: reading the data.

#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/case.h"

namespace underkeel::test {
namespace {

using Json = nlohmann::json;

TEST(Doctor, AnswersInJsonAndEndsAsTheEngineWould) {
  const TemporaryFolder folder;
  const auto config = folder / "ds_config.json";
  write_text(config, R"({"train_batch_size": 1, "gradient_cliping": 1.0})");

  const Ran ours = run_underkeel("doctor --json " + config.string());
  const Ran theirs = run_underkeel("doctor --json --engine deepspeed " + config.string());

  EXPECT_EQ(ours.exit_code, 2) << ours.error;
  EXPECT_EQ(theirs.exit_code, 0) << theirs.error;
  EXPECT_EQ(Json::parse(ours.out).at("engines").at("underkeel").at("verdict"), "fails");
}

TEST(Doctor, SpeaksChinese) {
  const TemporaryFolder folder;
  write_text(folder / "ds_config.json", R"({"train_batch_size": 1, "gradient_cliping": 1.0})");

  const Ran ran = run_underkeel("doctor --lang zh " + (folder / "ds_config.json").string());

  EXPECT_NE(ran.out.find("最接近的键是 `gradient_clipping`"), std::string::npos) << ran.out;
}

TEST(Doctor, EndsInTheLanguageThatWasAskedFor) {
  const std::pair<const char*, const char*> refused[] = {
      {"--memory disk=4GiB", "`disk=4GiB` 不是预算"},
      {"--memory device=5", "`device=5` 就是 5 字节；没有哪个训练只用这么少"},
      {"--memory device=5X", "`5X` 不是字节大小"},
      {"--memory device=1GiB,device=2GiB", "`device` 有两个预算：1GiB 和 2GiB"},
      {"--hardware ''", "没有给出文件"}};
  for (const auto& [flag, says] : refused) {
    const Ran ran = run_underkeel("doctor x --lang zh " + std::string(flag));
    EXPECT_EQ(ran.exit_code, 2) << flag;
    EXPECT_NE(ran.error.find(says), std::string::npos) << flag << ": " << ran.error;
  }
}

TEST(Doctor, RefusesWhatIsNoBudgetAndNoLanguage) {
  EXPECT_EQ(run_underkeel("doctor --memory disk=4GiB x").exit_code, 2);
  EXPECT_EQ(run_underkeel("doctor --lang fr x").exit_code, 2);
  EXPECT_EQ(run_underkeel("doctor").exit_code, 2);
  EXPECT_EQ(run_underkeel("doctor nowhere.json").exit_code, 2);
}

TEST(Doctor, ReadsTheDataAndPlansForTheLongestSample) {
  const RunnableCase made = complete_case("longest_comes_last", {.with_weights = false});

  const Ran ran = run_underkeel("doctor --json " + made.run_file.string());

  const Json report = Json::parse(ran.out);
  bool told = false;
  for (const Json& finding : report.at("findings"))
    told = told || finding.at("id") == "data-longest";
  EXPECT_TRUE(told) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(made.output));  // nothing is left behind
}

std::string message_of(const Json& report, std::string_view id) {
  for (const Json& finding : report.at("findings"))
    if (finding.at("id") == id) return finding.at("message");
  return "no " + std::string(id);
}

TEST(Doctor, TellsWhatTheCutOffLeavesOfTheLongestSample) {
  const RunnableCase made = complete_case("longest_comes_last", {.with_weights = false});
  write_text(made.data / "answers.jsonl",
             R"({"instruction": "count to ten!", "input": "", "output": ")" +
                 std::string(3009, 'x') + "\"}\n");

  const Ran ran = run_underkeel("doctor --json " + made.run_file.string());

  EXPECT_EQ(
      message_of(Json::parse(ran.out), "data-longest-parts"),
      "of the longest training sample the cut-off leaves 13 of 13 tokens of the prompt and 2035 of "
      "3009 of the answer")
      << ran.out;
}

TEST(Doctor, TellsOfPacksWhatPlanTells) {
  const RunnableCase made = complete_case("packs_of_answers", {.with_weights = false});

  const std::string told = message_of(
      Json::parse(run_underkeel("doctor --json " + made.run_file.string()).out), "data-packs");
  const std::string planned = run_underkeel("plan --data " + made.run_file.string()).out;

  // "2 packs of 64 positions (...), fill rate 71.9%, attention: ...".
  const std::size_t begin = planned.find(" packs of 64 positions (");
  ASSERT_NE(begin, std::string::npos) << planned;
  const std::string packs = planned.substr(begin, planned.find('\n', begin) - begin);
  EXPECT_NE(packs.find("fill rate"), std::string::npos) << packs;
  EXPECT_NE(told.find(packs), std::string::npos) << told << "\n" << packs;
  EXPECT_NE(told.find("2 x 64 positions"), std::string::npos) << told;
}

TEST(Doctor, CountsTheWindowsOfAnEpoch) {
  const RunnableCase made = complete_case("window_of_empty_answers", {.with_weights = false});

  const Json report =
      Json::parse(run_underkeel("doctor --json --data " + made.run_file.string()).out);

  const std::string epoch = message_of(report, "data-epoch");
  EXPECT_NE(epoch.find("10 batches of 1 on each of 1 rank, in 3 windows (updates) of 4, the "
                       "last from 2"),
            std::string::npos)
      << epoch;
  EXPECT_NE(message_of(report, "data-windows-untrained").find("1 of 3"), std::string::npos)
      << message_of(report, "data-windows-untrained");
}

/// The pages show what the program says of the files in examples/doctor, word for word.
TEST(DoctorExample, IsPrintedAsThePagesShowIt) {
  const TemporaryFolder folder;
  const auto first_lines = [&](const std::string& more) {
    const std::string command = fmt::format(
        "cd {} && {} doctor train.yaml ds_config.json config.json hardware.yaml {} > {}",
        test::in_source("examples/doctor"), test::in_build("apps/underkeel"), more,
        (folder / "out").string());
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
    std::istringstream out(read_text(folder / "out"));
    std::vector<std::string> lines;
    for (std::string line; lines.size() < 5 && std::getline(out, line);)
      lines.push_back("    " + line + "\n");
    return lines;
  };
  for (const auto& [page, more] :
       {std::pair{"README.md", ""}, std::pair{"docs/guide/doctor.md", ""},
        std::pair{"README.zh.md", "--lang zh"}}) {
    const std::string text = read_text(test::in_source(page));
    for (const std::string& line : first_lines(more))
      EXPECT_NE(text.find(line), std::string::npos) << page << " lacks\n" << line;
  }
}

}  // namespace
}  // namespace underkeel::test
