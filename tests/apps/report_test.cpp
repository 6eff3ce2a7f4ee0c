// `underkeel report`, and what `plan` has of it, run as a user does.

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "support/places.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"

namespace underkeel::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Report : public ::testing::Test {
 protected:
  std::string run_folder() {
    write_text(folder_ / "run/trainer_log.jsonl",
               "{\"current_steps\": 5, \"total_steps\": 20, \"loss\": 1.5, \"lr\": 1e-05}\n");
    return (folder_ / "run").string();
  }
  std::string page() { return (folder_ / "page.html").string(); }
  Ran report(const std::string& words) { return run_underkeel("report " + words); }

  TemporaryFolder folder_;
  // Paths in the run file are from the source tree.
  const std::string plan_ = "--plan examples/tiny/finetune.yaml --ranks 2";
  void SetUp() override { std::filesystem::current_path(test::in_source("")); }
};

TEST_F(Report, ReplacesOnlyWhatItHasWritten) {
  const std::string run = run_folder();
  const std::string log = run + "/trainer_log.jsonl";
  for (const std::string& words :
       {run + " -o " + log, plan_ + " --trace " + log + " -o " + page(), run + " -o " + run,
        run + " -o /dev/null", run + " -o " + (folder_ / "none/page.html").string(),
        plan_ + " --trace " + page() + " -o " + page()}) {
    const Ran refused = report(words);
    EXPECT_EQ(refused.exit_code, 2) << words << refused.error;
    EXPECT_THAT(refused.error, HasSubstr("try:")) << words;
    EXPECT_THAT(refused.error, Not(HasSubstr(".tmp"))) << words;
    std::filesystem::remove(page());
  }
  EXPECT_THAT(read_text(log), HasSubstr("current_steps"));

  for (int time = 0; time < 2; ++time) EXPECT_EQ(report(run + " -o " + page()).exit_code, 0);
}

TEST_F(Report, OfAPlanARunAndBoth) {
  const Ran plan = report(plan_ + " -o " + page());
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_THAT(plan.out, HasSubstr("open it in a browser"));
  EXPECT_THAT(read_text(page()), HasSubstr("\"run\":null"));
  EXPECT_THAT(read_text(page()), HasSubstr("\"model\":\"LlamaForCausalLM\""));

  const Ran run = report(run_folder() + " -o " + page());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("note: memory.json is not there"));
  EXPECT_THAT(read_text(page()), HasSubstr("\"plan\":null"));

  const Ran both =
      report(run_folder() + " per_device_train_batch_size=1 " + plan_ + " -o " + page());
  EXPECT_EQ(both.exit_code, 0) << both.error;
  EXPECT_THAT(read_text(page()), HasSubstr("\"learning_rate\":[1e-05]"));
  EXPECT_THAT(read_text(page()),
              HasSubstr("[\"per_device_train_batch_size\",\"1\",\"command line\"]"));
}

TEST_F(Report, OfAPlanThatDoesNotFitIsWrittenAndSaysSo) {
  for (const std::string& words : {plan_, run_folder() + " " + plan_}) {
    std::filesystem::remove(page());

    const Ran ran = report(words + " --memory device=1MiB -o " + page());

    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_THAT(ran.out, HasSubstr("open it in a browser"));
    EXPECT_THAT(ran.error, HasSubstr("error: ")) << words;
    EXPECT_THAT(ran.error, HasSubstr("try:")) << words;
    EXPECT_THAT(read_text(page()), HasSubstr("\"plan\":{")) << words;
  }
}

// The run's own plan knew its longest sample.
TEST_F(Report, OfAPlanBesideARunIsThatOfItsData) {
  const std::string plan = plan_ + " packing=false";
  const auto device_bytes = [&] {
    const std::string text = read_text(page());
    const std::string key = "\"arena_bytes\":";
    return std::stoll(text.substr(text.find(key) + key.size()));
  };
  EXPECT_EQ(report(plan + " -o " + page()).exit_code, 0);
  const auto without = device_bytes();
  EXPECT_EQ(report(plan + " --data -o " + page()).exit_code, 0);
  const auto with_data = device_bytes();

  const Ran beside = report(run_folder() + " " + plan + " -o " + page());

  EXPECT_EQ(beside.exit_code, 0) << beside.error;
  EXPECT_EQ(device_bytes(), with_data);
  EXPECT_NE(without, with_data);
  const Ran gone = report(run_folder() + " dataset_dir=/nowhere " + plan + " -o " + page());
  EXPECT_EQ(gone.exit_code, 0) << gone.error;
  EXPECT_THAT(gone.out, HasSubstr("note: the data were not read"));
  EXPECT_EQ(device_bytes(), without);
}

TEST_F(Report, OfARunStandsInItsFolderUnlessAnotherFileIsNamed) {
  const std::string run = run_folder();
  write_text(folder_ / "elsewhere/note", "");
  std::filesystem::current_path(folder_ / "elsewhere");

  const Ran ran = report(run + "/");
  const Ran named = report(run + " -o here.html");

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr(run + "/report.html: open it in a browser"));
  EXPECT_THAT(read_text(run + "/report.html"), HasSubstr("\"learning_rate\":[1e-05]"));
  EXPECT_FALSE(std::filesystem::exists("report.html"));
  EXPECT_EQ(named.exit_code, 0) << named.error;
  EXPECT_TRUE(std::filesystem::exists("here.html"));
  std::filesystem::current_path(test::in_source(""));  // before the folder goes
}

TEST_F(Report, WritesATrace) {
  const std::string trace = (folder_ / "trace.json").string();

  const Ran ran = report(plan_ + " -o " + page() + " --trace " + trace);

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  const auto events = nlohmann::json::parse(read_text(trace))["traceEvents"];
  EXPECT_GT(events.size(), 100u);
  EXPECT_EQ(events[0]["name"], "process_name");
}

TEST_F(Report, SaysWhatItLacks) {
  for (const auto& [words, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "error: nothing to report on"},
           {folder_.path().string(), "error: the folder holds no file of a run"},
           {"/nowhere", "error: there is no such folder"},
           {run_folder() + " learning_rate=1", "changes a run file, and none is given"},
           {run_folder() + " --trace x.json", "error: a trace is made from a plan"},
           {plan_ + " --watch", "error: no run to watch"},
           {run_folder() + " " + run_folder(), "error: 2 run folders"},
           {run_folder() + " --watch --listen example.org", "error: `example.org` is no address"},
           {run_folder() + " --port 70000", "error: "}}) {
    const Ran ran = report(words);
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_THAT(ran.error, HasSubstr(what)) << words;
    EXPECT_THAT(ran.error, HasSubstr("\ntry: ")) << words;
  }
}

TEST_F(Report, WatchesUntilItIsStopped) {
  Program program({test::in_build("apps/underkeel"), "report", run_folder(), "--watch"});
  ASSERT_TRUE(
      program.wait_until([&] { return program.output().find("Ctrl-C") != std::string::npos; }));
  EXPECT_THAT(program.output(), ::testing::ContainsRegex("http://127\\.0\\.0\\.1:[0-9]+/"));

  program.send(SIGINT);

  EXPECT_EQ(program.wait().exit_code, 0);
}

TEST_F(Report, PlanWritesThePageAndDrawsNoBarsIntoAPipe) {
  const std::string words = "plan examples/tiny/finetune.yaml --ranks 2";
  const Ran plain = run_underkeel(words);

  const Ran ran = run_underkeel(words + " --html " + page());

  EXPECT_EQ(ran.exit_code, 0) << ran.error;
  EXPECT_EQ(ran.out, plain.out);
  EXPECT_THAT(read_text(page()), HasSubstr("\"plan\":{"));
  EXPECT_THAT(plain.out, Not(HasSubstr("* peak")));
  EXPECT_THAT(plain.out, Not(HasSubstr("\x1b[")));
}

TEST_F(Report, PlanDrawsBarsOnATerminal) {
  const std::string binary = test::in_build("apps/underkeel");

  // script (util-linux) gives the program a terminal.
  const Ended ended = run_program(
      {"script", "-qec", binary + " plan examples/tiny/finetune.yaml --ranks 2", "/dev/null"},
      {.environment = {{"TERM", "xterm-256color"}, {"NO_COLOR", "1"}}});

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("* peak"));
  EXPECT_THAT(ended.output, HasSubstr("w weights  g gradients  o optimizer"));
}

}  // namespace
}  // namespace underkeel::test
