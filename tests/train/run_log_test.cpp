#include "train/run_log.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "io/faults.h"
#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using nlohmann::json;
using test::value_of;
using testing::ElementsAre;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::istringstream text(text_of(file));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<std::int64_t> logged_steps(const std::filesystem::path& file) {
  std::vector<std::int64_t> steps;
  for (const json& line : lines_of(file)) steps.push_back(line.at("current_steps"));
  return steps;
}

/// A run of six steps of 100 tokens, two seconds each, logged every second step.
class RunLogTest : public testing::Test {
 protected:
  RunLogOptions options() {
    RunLogOptions options;
    options.fresh.total_steps = 6;
    options.fresh.epochs_planned = 2;
    options.fresh.logging_steps = 2;
    options.expected_entries = 10;
    options.now_s = [this] { return now_s_; };
    return options;
  }
  RunLog open(const RunLogOptions& options) {
    return value_of(RunLog::open(files_, output_.path(), options));
  }
  RunLog begun(const RunLogOptions& options, const std::optional<ResumePoint>& resume = {}) {
    RunLog log = open(options);
    value_of(log.begin(resume));
    return log;
  }
  std::optional<LogEntry> step(RunLog& log, std::int64_t step, double loss) {
    now_s_ += 2;
    return value_of(log.step({.step = step,
                              .epoch = static_cast<double>(step) / 3,
                              .loss = loss,
                              .gradient_norm = 0.5,
                              .learning_rate = 1e-3,
                              .tokens = 100,
                              .step_s = 2,
                              .flops = 1e6}));
  }
  void steps(RunLog& log, std::int64_t first, std::int64_t last) {
    for (std::int64_t s = first; s <= last; ++s) step(log, s, 10.0 / static_cast<double>(s));
  }

  test::TemporaryFolder output_;
  io::FileSystem files_;
  double now_s_ = 1'800'000'000;
};

TEST_F(RunLogTest, LogsTheMeanLossSinceTheLastEntryWhenOneIsDue) {
  RunLog log = begun(options());

  EXPECT_FALSE(step(log, 1, 4.0));
  const auto second = step(log, 2, 3.0);
  step(log, 3, 2.0);
  const auto fourth = step(log, 4, 1.0);

  ASSERT_TRUE(second && fourth);
  EXPECT_EQ(second->value("loss"), 3.5);
  EXPECT_EQ(fourth->value("loss"), 1.5);
  EXPECT_EQ(log.state().history, (std::vector<LogEntry>{*second, *fourth}));
}

TEST_F(RunLogTest, AStepTellsWhatTheProcessHasWhereThatIsKnown) {
  RunLog log = begun(options());

  step(log, 1, 4.0);
  value_of(log.step({.step = 2, .process_bytes = 700, .planned_process_bytes = 900}));

  const std::string events = test::read_text(output_ / "events.jsonl");
  const std::size_t second = events.find("\"step\": 2");
  EXPECT_EQ(events.substr(0, second).find("process_bytes"), std::string::npos);
  EXPECT_NE(events.find("\"process_bytes\": 700, \"planned_process_bytes\": 900}", second),
            std::string::npos);
}

TEST_F(RunLogTest, LogsTheFirstStepWhenAsked) {
  auto first_too = options();
  first_too.log_first_step = true;
  RunLog log = begun(first_too);

  EXPECT_TRUE(step(log, 1, 4.0));
  EXPECT_EQ(step(log, 2, 3.0)->value("loss"), 3.0);
}

TEST_F(RunLogTest, ALossThatIsNotFiniteCountsAsTheMeanSoFar) {
  RunLog log = begun(options());

  step(log, 1, 4.0);
  const auto second = step(log, 2, std::numeric_limits<double>::quiet_NaN());

  EXPECT_EQ(second->value("loss"), 4.0);
  EXPECT_TRUE(lines_of(output_ / "events.jsonl").back().at("loss").is_null());
}

TEST_F(RunLogTest, TrainerLogLinesHaveLlamaFactorysKeysInItsOrder) {
  RunLog log = begun(options());

  steps(log, 1, 2);
  now_s_ += 1;
  value_of(log.evaluation({.step = 2, .epoch = 0.5, .loss = 2.25, .elapsed_s = 1}));

  EXPECT_EQ(text_of(output_ / "trainer_log.jsonl"),
            R"({"current_steps": 2, "total_steps": 6, "loss": 7.5, "lr": 0.001, )"
            R"("epoch": 0.6666666666666666, "percentage": 33.33, "elapsed_time": "0:00:04", )"
            R"("remaining_time": "0:00:08", "throughput": 50.0, "total_tokens": 200})"
            "\n"
            R"({"current_steps": 2, "total_steps": 6, "eval_loss": 2.25, "epoch": 0.5, )"
            R"("percentage": 33.33, "elapsed_time": "0:00:05", "remaining_time": "0:00:10", )"
            R"("throughput": 40.0, "total_tokens": 200})"
            "\n");
}

TEST_F(RunLogTest, EventsTellEveryStepSaveEvaluationSignalAndEnd) {
  RunLog log = begun(options());

  steps(log, 1, 1);
  value_of(log.save_begin(1, "out/checkpoint-1"));
  value_of(log.save_end({.step = 1,
                         .folder = "out/checkpoint-1",
                         .size_bytes = 4096,
                         .elapsed_s = 0.25,
                         .waited_s = 0.125}));
  value_of(log.evaluation({.step = 1, .loss = 0, .target_tokens = 9, .elapsed_s = 1}));
  value_of(log.signal(15, 1));
  value_of(log.notice("a \"word\""));
  value_of(log.stopped("SIGTERM"));

  const auto events = lines_of(output_ / "events.jsonl");
  std::vector<std::string> names;
  for (const json& event : events) names.push_back(event.at("event"));
  ASSERT_THAT(names, ElementsAre("open", "begin", "step", "save_begin", "save_end", "evaluate",
                                 "signal", "notice", "stop"));
  EXPECT_EQ(events[2].at("loss"), 10.0);
  EXPECT_EQ(events[2].at("grad_norm"), 0.5);
  EXPECT_EQ(events[2].at("lr"), 1e-3);
  EXPECT_EQ(events[2].at("tokens"), 100);
  EXPECT_EQ(events[2].at("tokens_per_s"), 50.0);
  EXPECT_EQ(events[2].at("time"), 1'800'000'002.0);
  EXPECT_EQ(events[4].at("bytes"), 4096);
  EXPECT_EQ(events[4].at("waited_s"), 0.125);
  EXPECT_EQ(events[5].at("perplexity"), 1.0);
  EXPECT_EQ(events[6].at("signal"), "SIGTERM");
  EXPECT_EQ(events[7].at("text"), "a \"word\"");
}

TEST_F(RunLogTest, AResumedRunEndsWithTheFilesOfOneThatNeverStopped) {
  test::TemporaryFolder straight_output;
  {
    RunLog straight = value_of(RunLog::open(files_, straight_output.path(), options()));
    value_of(straight.begin({}));
    steps(straight, 1, 6);
    value_of(straight.finish(12));
  }
  std::string checkpoint;
  {
    RunLog log = begun(options());
    steps(log, 1, 3);
    checkpoint = log.state().to_json();
    steps(log, 4, 5);  // killed here
  }
  ASSERT_THAT(logged_steps(output_ / "trainer_log.jsonl"), ElementsAre(2, 4));

  RunLog log =
      begun(options(),
            ResumePoint{.folder = "out/checkpoint-3",
                        .state = value_of(TrainerState::from_json(checkpoint, "checkpoint-3"))});
  ASSERT_THAT(logged_steps(output_ / "trainer_log.jsonl"), ElementsAre(2));
  steps(log, 4, 6);
  value_of(log.finish(12));

  for (const char* name :
       {"trainer_state.json", "train_results.json", "all_results.json", "trainer_log.jsonl"})
    EXPECT_EQ(text_of(output_ / name), text_of(straight_output / name)) << name;
}

TEST_F(RunLogTest, AFreshRunDropsTheLinesOfOneThatLeftNoCheckpoint) {
  {
    RunLog log = begun(options());
    steps(log, 1, 4);
  }

  RunLog log = begun(options());
  steps(log, 1, 2);

  EXPECT_THAT(logged_steps(output_ / "trainer_log.jsonl"), ElementsAre(2));
}

TEST_F(RunLogTest, ALineThatAKilledProcessLeftHalfWrittenIsWrittenOver) {
  {
    RunLog log = begun(options());
    steps(log, 1, 1);
  }
  const auto whole = lines_of(output_ / "events.jsonl").size();
  for (const std::size_t torn_bytes : {std::size_t{1}, std::size_t{20}, std::size_t{9000}}) {
    std::ofstream(output_ / "events.jsonl", std::ios::app) << std::string(torn_bytes, '{');

    RunLog log = open(options());

    const auto events = lines_of(output_ / "events.jsonl");  // throws on a line that is not JSON
    EXPECT_EQ(events.back().at("event"), "open");
    EXPECT_GT(events.size(), whole);
  }
}

TEST_F(RunLogTest, ARunThatWasResumedAtItsLastStepLeavesTheResultsOfTheOneThatTrained) {
  std::string checkpoint;
  {
    RunLog log = begun(options());
    steps(log, 1, 6);
    checkpoint = log.state().to_json();
    value_of(log.finish(12));
  }
  const std::string trained = test::read_text(output_ / "train_results.json");

  const auto go_on = [&] {
    RunLog log =
        begun(options(),
              ResumePoint{.folder = "out/checkpoint-6",
                          .state = value_of(TrainerState::from_json(checkpoint, "checkpoint-6"))});
    value_of(log.finish(0));
    value_of(log.evaluation({.step = 6, .epoch = 2, .loss = 1, .samples = 6, .batches = 3}));
  };
  go_on();
  const auto once = logged_steps(output_ / "trainer_log.jsonl");
  go_on();

  EXPECT_EQ(test::read_text(output_ / "train_results.json"), trained);
  // The summary and the evaluation of the end do not pile up.
  EXPECT_EQ(logged_steps(output_ / "trainer_log.jsonl"), once);
  EXPECT_THAT(trained, testing::Not(testing::HasSubstr("samples_per_second\": 0.0")));
}

TEST_F(RunLogTest, ALineThatCannotBeWrittenIsAnErrorAndTheNextOneFollowsTheLastWhole) {
  const auto rules = value_of(io::parse_fault_rules(
      "short:call=write,path=events,at=3,bytes=7;fail:call=write,path=events,at=4,error=ENOSPC"));
  io::FileSystem faulty(std::make_shared<io::FaultyCalls>(io::posix_calls(), rules));
  RunLog log = value_of(RunLog::open(faulty, output_.path(), options()));
  value_of(log.begin({}));

  const auto failed = log.step({.step = 1, .loss = 1});
  const auto next = log.step({.step = 2, .loss = 1});

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::io);
  EXPECT_TRUE(next);
  EXPECT_EQ(lines_of(output_ / "events.jsonl").back().at("step"), 2);
}

TEST_F(RunLogTest, ResultsAreThoseOfTheTrainerAndTheLastEvaluation) {
  RunLog log = begun(options());
  steps(log, 1, 2);

  value_of(log.finish(8));
  value_of(log.evaluation(
      {.step = 2, .epoch = 2, .loss = std::log(5.0), .samples = 6, .batches = 3, .elapsed_s = 2}));

  EXPECT_EQ(text_of(output_ / "train_results.json"),
            "{\n    \"epoch\": 0.6666666666666666,\n    \"total_flos\": 2000000.0,\n"
            "    \"train_loss\": 7.5,\n    \"train_runtime\": 4.0,\n"
            "    \"train_samples_per_second\": 2.0,\n    \"train_steps_per_second\": 0.5\n}\n");
  const json evaluation = json::parse(text_of(output_ / "eval_results.json"));
  EXPECT_DOUBLE_EQ(evaluation.at("eval_perplexity"), 5.0);
  EXPECT_EQ(evaluation.at("eval_samples_per_second"), 3.0);
  EXPECT_EQ(evaluation.at("eval_steps_per_second"), 1.5);
  const json all = json::parse(text_of(output_ / "all_results.json"));
  EXPECT_EQ(all.at("train_loss"), 7.5);
  EXPECT_DOUBLE_EQ(all.at("eval_loss"), std::log(5.0));
  EXPECT_EQ(value_of(TrainerState::from_json(text_of(output_ / "trainer_state.json"), "state"))
                .history.size(),
            2u);
}

TEST_F(RunLogTest, PlotsAreWrittenWhenAskedForTheCurvesThatHavePoints) {
  auto with_plots = options();
  with_plots.plot_loss = true;
  RunLog log = begun(with_plots);
  steps(log, 1, 6);

  value_of(log.finish(12));

  EXPECT_TRUE(std::filesystem::exists(output_ / "training_loss.svg"));
  EXPECT_TRUE(std::filesystem::exists(output_ / "training_loss.png"));
  EXPECT_FALSE(std::filesystem::exists(output_ / "training_eval_loss.svg"));
}

TEST_F(RunLogTest, OtherRanksWriteNothing) {
  auto other = options();
  other.is_writer = false;
  RunLog log = begun(other);

  steps(log, 1, 6);
  value_of(log.finish(12));

  EXPECT_TRUE(std::filesystem::is_empty(output_.path()));
}

TEST_F(RunLogTest, TheHistoryDoesNotGrowItsMemoryWithinTheExpectedEntries) {
  RunLog log = begun(options());
  const auto* const first = log.state().history.data();

  steps(log, 1, 6);

  EXPECT_EQ(log.state().history.size(), 3u);
  EXPECT_EQ(log.state().history.data(), first);
}

TEST_F(RunLogTest, TheHeapInUseIsTheSameAfterStepTwoAndStepAHundred) {
  auto many = options();
  many.fresh.total_steps = 100;
  many.fresh.logging_steps = 1;
  many.expected_entries = 200;
  // malloc's per-thread cache counts as in use: let it meet every size once.
  RunLog warm_up = begun(many);
  steps(warm_up, 1, 100);
  RunLog log = begun(many);
  steps(log, 1, 2);
  const auto before_bytes = mallinfo2().uordblks;

  steps(log, 3, 100);

  EXPECT_EQ(mallinfo2().uordblks, before_bytes);
}

TEST(FormatDuration, IsWhatPythonPrintsForATimedelta) {
  EXPECT_EQ(format_duration(-1), "0:00:00");
  EXPECT_EQ(format_duration(3723.9), "1:02:03");
  EXPECT_EQ(format_duration(86400), "1 day, 0:00:00");
  EXPECT_EQ(format_duration(3 * 86400 + 59), "3 days, 0:00:59");
}

}  // namespace
}  // namespace underkeel::train
