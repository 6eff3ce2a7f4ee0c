#include "report/run_folder.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "support/temporary_folder.h"
#include "support/text_files.h"
#include "support/value_of.h"

namespace underkeel::report {
namespace {

using nlohmann::json;
using test::value_of;
using test::write_text;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string step_line(int step, double loss) {
  return fmt::format(
      "{{\"event\": \"step\", \"time\": 1000.5, \"step\": {}, \"epoch\": 0.5, \"loss\": {}, "
      "\"grad_norm\": 2.5, \"lr\": 0.001, \"tokens\": 64, \"step_s\": 0.5, \"tokens_per_s\": "
      "128}}\n",
      step, loss);
}

class RunFolders : public ::testing::Test {
 protected:
  RunFolder opened() { return value_of(RunFolder::open(files_, folder_.path().string())); }
  RunRecord read() {
    RunFolder folder = opened();
    folder.refresh();
    return folder.record();
  }
  void put(const std::string& name, std::string_view text) { write_text(folder_ / name, text); }
  void add(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::app) << text;
  }
  static std::vector<std::int64_t> steps_of(const RunRecord& record) {
    std::vector<std::int64_t> steps;
    for (const StepPoint& point : record.steps) steps.push_back(point.step);
    return steps;
  }

  io::FileSystem files_;
  test::TemporaryFolder folder_;
};

TEST_F(RunFolders, ReadsEveryEventOfARun) {
  put("events.jsonl",
      "{\"event\": \"open\", \"time\": 999.0, \"step\": 0}\n"
      "{\"event\": \"begin\", \"time\": 1000.0, \"step\": 0, \"total_steps\": 4}\n" +
          step_line(1, 4.5) + step_line(2, 4.25) +
          "{\"event\": \"evaluate\", \"time\": 1001, \"step\": 2, \"eval_loss\": 4.75}\n"
          "{\"event\": \"save_begin\", \"time\": 1001, \"step\": 2, \"folder\": \"checkpoint-2\"}\n"
          "{\"event\": \"save_end\", \"time\": 1002, \"step\": 2, \"folder\": \"checkpoint-2\", "
          "\"bytes\": 1024, \"elapsed_s\": 0.5, \"waited_s\": 0.25}\n"
          "{\"event\": \"notice\", \"time\": 1002, \"step\": 2, \"text\": \"a sentence\"}\n"
          "{\"event\": \"finish\", \"time\": 1003.0, \"step\": 2}\n");

  const RunRecord record = read();

  EXPECT_EQ(record.state, RunState::finished);
  EXPECT_EQ(record.total_steps, 4);
  EXPECT_EQ(record.last_event_s, 1003);
  EXPECT_THAT(steps_of(record), ElementsAre(1, 2));
  EXPECT_EQ(record.steps[1].loss, 4.25);
  EXPECT_EQ(record.steps[1].learning_rate, 0.001);
  EXPECT_EQ(record.steps[1].gradient_norm, 2.5);
  ASSERT_EQ(record.evaluations.size(), 1u);
  EXPECT_EQ(record.evaluations[0].loss, 4.75);
  ASSERT_EQ(record.saves.size(), 1u);
  EXPECT_TRUE(record.saves[0].is_complete);
  EXPECT_EQ(record.saves[0].size_bytes, 1024);
  EXPECT_THAT(record.notices, ElementsAre("step 2: a sentence"));
  EXPECT_THAT(record.remarks, Contains(HasSubstr("memory.json is not there")));
}

TEST_F(RunFolders, TellsWhatTheProcessHasAtTheLastStep) {
  put("events.jsonl",
      step_line(1, 4) +
          "{\"event\": \"step\", \"step\": 2, \"loss\": 3, \"process_bytes\": 7000, "
          "\"planned_process_bytes\": 9000}\n");

  const RunRecord record = read();

  EXPECT_EQ(record.process.measured_bytes, 7000);
  EXPECT_EQ(record.process.planned_bytes, 9000);
  EXPECT_EQ(json::parse(to_json(record))["process"]["measured"], 7000);
}

TEST_F(RunFolders, StepsThatAResumeMakesAgainCountOnce) {
  put("events.jsonl",
      step_line(1, 4) + step_line(2, 3) + step_line(3, 9) +
          "{\"event\": \"resume\", \"time\": 5, \"step\": 2, \"total_steps\": 8}\n" +
          step_line(3, 2.5));

  const RunRecord record = read();

  EXPECT_THAT(steps_of(record), ElementsAre(1, 2, 3));
  EXPECT_EQ(record.steps[2].loss, 2.5);
  EXPECT_EQ(record.step_count, 3);
}

TEST_F(RunFolders, FollowsAFileThatGrowsAndIsReplaced) {
  const std::string second = step_line(2, 3);
  put("events.jsonl", step_line(1, 4) + second.substr(0, 20));
  RunFolder folder = opened();
  folder.refresh();
  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1));
  EXPECT_THAT(folder.record().remarks, Contains(HasSubstr("ends within a line")));

  add("events.jsonl", second.substr(20) + step_line(3, 2));
  folder.refresh();
  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1, 2, 3));

  put("events.jsonl", step_line(1, 7));
  folder.refresh();
  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1));
  EXPECT_EQ(folder.record().steps[0].loss, 7);
}

TEST_F(RunFolders, ReadsALongerFileThatTookTheOthersPlaceFromItsBeginning) {
  put("events.jsonl", step_line(1, 4) + step_line(2, 3));
  RunFolder folder = opened();
  folder.refresh();

  put("events.jsonl", step_line(1, 7) + step_line(2, 6) + step_line(3, 5) + step_line(4, 2));
  folder.refresh();

  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(folder.record().steps[0].loss, 7);
  EXPECT_EQ(folder.record().steps[1].loss, 6);
}

TEST_F(RunFolders, KeepsWhatWasReadOfAFolderThatIsGone) {
  const test::TemporaryFolder outer;
  const auto path = outer / "run";
  write_text(path / "events.jsonl", step_line(1, 4));
  RunFolder folder = value_of(RunFolder::open(files_, path.string()));
  folder.refresh();

  std::filesystem::remove_all(path);
  folder.refresh();

  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1));
  EXPECT_THAT(folder.record().remarks,
              ElementsAre(HasSubstr("run is not there any more: this is what was last read")));

  write_text(path / "events.jsonl", step_line(1, 5) + step_line(2, 3));
  folder.refresh();
  EXPECT_THAT(steps_of(folder.record()), ElementsAre(1, 2));
  EXPECT_EQ(folder.record().steps[0].loss, 5);
}

TEST_F(RunFolders, SavesOfStepsThatAreMadeAgainAreForgotten) {
  const auto save_line = [](int step) {
    return fmt::format(
        "{{\"event\": \"save_begin\", \"step\": {}, \"folder\": \"checkpoint-{}\"}}\n", step, step);
  };
  put("events.jsonl", step_line(1, 4) + save_line(1) + step_line(2, 3) + save_line(2) +
                          "{\"event\": \"resume\", \"step\": 1, \"total_steps\": 3}\n" +
                          step_line(2, 3) + save_line(2));

  const RunRecord record = read();

  ASSERT_EQ(record.saves.size(), 2u);
  EXPECT_EQ(record.saves[1].step, 2);
}

// The Trainer writes a gradient norm that is none as Python does.
TEST_F(RunFolders, FiguresThatAreNoneEndNoCurve) {
  put("trainer_state.json",
      R"({"log_history": [{"step": 1, "loss": 4.5, "grad_norm": NaN, "note": "NaN, \"Infinity"},
          {"step": 2, "loss": NaN, "grad_norm": -Infinity}, {"step": 3, "loss": 3.5, "grad_norm": Infinity}],
          "max_steps": 9})");

  const RunRecord record = read();

  EXPECT_EQ(record.total_steps, 9);
  EXPECT_THAT(steps_of(record), ElementsAre(1, 3));
  EXPECT_TRUE(std::isnan(record.steps[0].gradient_norm));
  EXPECT_THAT(record.remarks, ::testing::Not(Contains(HasSubstr("read in part"))));
}

TEST_F(RunFolders, ReadsTheLogOfLlamaFactory) {
  put("trainer_log.jsonl",
      "{\"current_steps\": 5, \"total_steps\": 20, \"loss\": 1.5, \"lr\": 1e-05, \"epoch\": 0.25, "
      "\"percentage\": 25.0, \"elapsed_time\": \"0:00:10\", \"remaining_time\": \"0:00:30\"}\n"
      "{\"current_steps\": 10, \"total_steps\": 20, \"eval_loss\": 1.25, \"epoch\": 0.5}\n");

  RunFolder folder = opened();
  folder.refresh();
  folder.refresh();  // what was read stays
  const RunRecord& record = folder.record();

  EXPECT_EQ(record.curve_source, "trainer_log.jsonl");
  ASSERT_EQ(record.steps.size(), 1u);
  EXPECT_EQ(record.steps[0].learning_rate, 1e-5);
  EXPECT_TRUE(std::isnan(record.steps[0].gradient_norm));
  EXPECT_EQ(record.evaluations.size(), 1u);
  EXPECT_EQ(record.total_steps, 20);
}

TEST_F(RunFolders, ReadsTheStateOfTheTrainer) {
  put("trainer_state.json",
      R"({"epoch": 1.0, "max_steps": 20, "log_history": [
          {"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 2e-05, "loss": 2.5, "step": 10},
          {"epoch": 0.5, "eval_loss": 2.25, "step": 10},
          {"epoch": 1.0, "grad_norm": 1.25, "learning_rate": 1e-05, "loss": 2.0, "step": 20},
          {"epoch": 1.0, "train_loss": 2.2, "step": 20}]})");

  const RunRecord record = read();

  EXPECT_THAT(steps_of(record), ElementsAre(10, 20));
  EXPECT_EQ(record.steps[0].gradient_norm, 1.5);
  EXPECT_EQ(record.evaluations.size(), 1u);
  EXPECT_EQ(record.total_steps, 20);
}

TEST_F(RunFolders, ReadsMemoryAndValues) {
  put("memory.json",
      R"({"about": "x", "ranks": [{"rank": 0, "spaces": {"device": {"planned_peak_bytes": 100,
          "measured_peak_bytes": 90, "by_segment": {"micro.only": {"planned_peak_bytes": 95,
          "measured_peak_bytes": 85}}}}, "process": {"planned_total_bytes": 500, "max_rss_bytes": 400,
          "ranks_in_process": 2}}],
          "events": [{"rank": 0, "step": 24, "what": "save", "space": "device", "before_bytes": 90,
          "during_peak_bytes": 91, "after_bytes": 92}]})");
  put("training_args.json", R"({"learning_rate": {"value": 0.001, "source": "run.yaml"},
                                "bf16": {"value": true, "source": "default"}})");

  const RunRecord record = read();

  ASSERT_TRUE(record.memory);
  const RankMemory& rank = record.memory->ranks.at(0);
  EXPECT_EQ(rank.spaces.at("device").arena.measured_bytes, 90);
  EXPECT_EQ(rank.spaces.at("device").by_segment.at("micro.only").planned_bytes, 95);
  EXPECT_EQ(rank.process.planned_bytes, 500);
  EXPECT_EQ(rank.ranks_in_process, 2);
  EXPECT_EQ(record.memory->events.at(0).during_peak_bytes, 91);
  ASSERT_EQ(record.values.size(), 2u);
  EXPECT_EQ(record.values[0].value, "0.001");
  EXPECT_EQ(record.values[0].source, "run.yaml");
  EXPECT_EQ(record.values[1].value, "true");
}

TEST_F(RunFolders, BrokenFilesAreRemarksAndTheRestIsShown) {
  put("events.jsonl", step_line(1, 4) + "{\"event\": \"step\", \"step\": \n" + "[1, 2]\n" +
                          std::string(300, '[') + "\n\xff\xfe\n" + step_line(2, 3));
  put("memory.json", R"({"ranks": [{"rank": 0, "spaces": {"device": {"planned_pe)");
  put("training_args.json", "");

  const RunRecord record = read();

  EXPECT_THAT(steps_of(record), ElementsAre(1, 2));
  EXPECT_THAT(
      record.remarks,
      Contains(HasSubstr(
          "events.jsonl: 3 of 6 lines are no events of a run and were passed over; the first: ")));
  EXPECT_THAT(record.remarks, Contains(HasSubstr("memory.json was not read: ")));
  EXPECT_THAT(record.remarks, Contains(HasSubstr("training_args.json was read in part: ")));
  EXPECT_FALSE(record.memory);
  EXPECT_EQ(json::parse(to_json(record))["steps"]["step"].size(), 2u);
}

TEST_F(RunFolders, FieldsOfOtherKindsAreNoFigures) {
  put("events.jsonl", step_line(1, 4) + step_line(2, 3) +
                          "{\"event\": 7, \"step\": 1}\n"
                          "{\"event\": \"step\", \"step\": \"one\", \"loss\": null}\n"
                          "{\"event\": \"step\", \"step\": -5, \"loss\": {\"a\": 1}}\n"
                          "{\"event\": \"step\", \"step\": 1e300, \"loss\": 1}\n");
  put("memory.json",
      R"({"ranks": [[], {}, 7, {"rank": "x", "spaces": {"device": {"planned_peak_bytes": -1,
                         "measured_peak_bytes": 1e9}}}]})");

  const RunRecord record = read();

  EXPECT_THAT(steps_of(record), ElementsAre(1, 2)) << "kept";
  EXPECT_THAT(record.remarks, Contains(HasSubstr("3 of 6 lines are no events of a run and were "
                                                 "passed over; the first: no step of `step` "
                                                 "(line 4)")));
  ASSERT_TRUE(record.memory);
  const json shown = json::parse(to_json(record));
  EXPECT_EQ(shown["memory"]["ranks"][0]["spaces"][0]["measured"], nullptr);
}

TEST_F(RunFolders, ALongLineIsPassedOver) {
  put("events.jsonl",
      step_line(1, 4) + "{\"event\": \"" + std::string(5 << 20, 'x') + "\"}\n" + step_line(2, 3));

  const RunRecord record = read();

  EXPECT_THAT(steps_of(record), ElementsAre(1, 2));
  EXPECT_THAT(record.remarks, Contains(HasSubstr("a line was longer than 1 MiB")));
}

TEST_F(RunFolders, AHugeFileIsNotReadWhole) {
  put("events.jsonl", step_line(1, 4));
  put("memory.json", "{");
  std::filesystem::resize_file(folder_ / "memory.json", std::uintmax_t{1} << 40);

  EXPECT_THAT(
      read().remarks,
      Contains(HasSubstr("memory.json was not read: it has 1.0 TiB; at most 16.0 MiB are read")));
}

TEST_F(RunFolders, LinksPipesAndFoldersAreNotFollowed) {
  const test::TemporaryFolder outside;
  write_text(outside / "secret", R"({"token": "secret"})");
  std::filesystem::create_symlink(outside / "secret", folder_ / "training_args.json");
  std::filesystem::create_symlink(outside / "secret", folder_ / "events.jsonl");
  ASSERT_EQ(mkfifo((folder_ / "memory.json").c_str(), 0600), 0);

  const RunRecord record = read();

  EXPECT_THAT(to_json(record), ::testing::Not(HasSubstr("\"secret\"")));
  EXPECT_THAT(
      record.remarks,
      Contains(HasSubstr("events.jsonl was not read: a link stands where a file is expected")));
  EXPECT_THAT(record.remarks,
              Contains(HasSubstr("training_args.json was not read: a link stands")));
  EXPECT_THAT(record.remarks, Contains(HasSubstr("memory.json was not read: not a regular file")));
}

TEST_F(RunFolders, ManyStepsKeepTheirLowsAndHighs) {
  std::string lines;
  for (int step = 1; step <= 100'100; ++step)
    lines += fmt::format("{{\"event\":\"step\",\"step\":{},\"loss\":{}}}\n", step,
                         step == 33'333   ? 99.0
                         : step == 88'888 ? 0.125
                                          : 2.0);
  put("events.jsonl", lines);

  const RunRecord record = read();

  EXPECT_EQ(record.step_count, 100'100);
  EXPECT_LE(record.steps.size(), 100'000u);
  const auto by_loss = [](const StepPoint& a, const StepPoint& b) { return a.loss < b.loss; };
  const auto [low, high] = std::minmax_element(record.steps.begin(), record.steps.end(), by_loss);
  EXPECT_EQ(high->step, 33'333);
  EXPECT_EQ(low->step, 88'888);
}

TEST_F(RunFolders, OtherFoldersAreRefused) {
  const auto empty = RunFolder::open(files_, folder_.path().string());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().what, "the folder holds no file of a run");
  EXPECT_THAT(empty.error().fix, HasSubstr("events.jsonl"));

  put("run.yaml", "a: b");
  const auto file = RunFolder::open(files_, (folder_ / "run.yaml").string());
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().fix, HasSubstr("--plan"));
  EXPECT_FALSE(RunFolder::open(files_, (folder_ / "nowhere").string()));
}

}  // namespace
}  // namespace underkeel::report
