// Stop signals in every phase: a usable checkpoint, exit 75, and the resumed run is the unbroken one.

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::IsEmpty;

struct Moment {
  const char* name;
  const char* fault;     // UNDERKEEL_FAULT: holds the run in the phase
  const char* io_fault;  // UNDERKEEL_IO_FAULT: likewise
  const char* file;      // in the output folder: there once the run is in the phase
  std::int64_t step;     // or this many steps are done
};

const std::vector<Moment> moments = {
    {"ReadingData", "", "delay:call=read,path=sums.jsonl,ms=400,times=all", "", 0},
    {"Loading", "rank=0 phase=load delay=0.4s", "", "events.jsonl", 0},
    {"FirstStep", "rank=1 phase=step step=0 delay=0.4s", "", "trainer_log.jsonl", 0},
    {"InAWindow", "", "", "events.jsonl", 2},
    {"Evaluation", "rank=1 phase=evaluate step=3 delay=0.4s", "", "events.jsonl", 3},
    {"InASave", "", "delay:path=checkpoint-4,call=write,ms=20,times=all", "tmp-checkpoint-4", 4},
    {"Commit", "rank=0 phase=commit step=4 delay=0.4s", "", "tmp-checkpoint-4", 4},
    {"Export", "", "delay:path=tmp-model,call=write,ms=20,times=all", "tmp-model", 8}};

class StopSignal : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunnableCase(complete_case("signal_in_every_phase", {.zero_stage = 3}));
    const Ended ended = run_training(*made_, options(made_->folder / "unbroken"));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
  }
  static void TearDownTestSuite() {
    delete made_;
    made_ = nullptr;
  }
  static TrainOptions options(const fs::path& output, Ranks as = Ranks::threads) {
    return {.ranks = 2,
            .as = as,
            .output = output,
            .changes = {"max_steps=8", "save_steps=4", "eval_steps=3", "eval_dataset=sums"}};
  }
  static bool is_reached(const Moment& moment, const fs::path& output) {
    if (*moment.file != '\0' && !fs::exists(output / moment.file)) return false;
    if (*moment.file == '\0' && !fs::exists(output)) return false;
    return moment.step == 0 || last_step(output) >= moment.step;
  }

  static void expect_goes_on_to_the_same_end(const fs::path& output) {
    const Ended ended = run_training(*made_, options(output));
    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(tensor_differences(made_->folder / "unbroken", output), IsEmpty());
    EXPECT_THAT(
        tensor_differences(made_->folder / "unbroken" / "checkpoint-8", output / "checkpoint-8"),
        IsEmpty());
  }

  static RunnableCase* made_;
};

RunnableCase* StopSignal::made_ = nullptr;

TEST_F(StopSignal, EndsInACheckpointInEveryPhase) {
  for (const Moment& moment : moments) {
    SCOPED_TRACE(moment.name);
    const fs::path output = made_->folder / moment.name;
    TrainOptions held = options(output);
    held.environment = {{"UNDERKEEL_FAULT", moment.fault}, {"UNDERKEEL_IO_FAULT", moment.io_fault}};
    Program program(train_words(*made_, held), program_options(held));
    ASSERT_TRUE(program.wait_until([&] { return is_reached(moment, output); }))
        << program.wait().output;

    program.send(SIGTERM);
    const Ended ended = program.wait(10);

    if (std::string_view(moment.name) == "Export") {
      // All steps are made and saved: it may finish.
      EXPECT_THAT(ended.exit_code, testing::AnyOf(0, 75)) << ended.output;
    } else {
      EXPECT_EQ(ended.exit_code, 75) << ended.output;
    }
    const std::int64_t done = last_step(output);
    if (done > 0) {
      ASSERT_THAT(complete_steps(output), testing::Not(IsEmpty()));
      EXPECT_EQ(complete_steps(output).front(), done);
      EXPECT_THAT(damage(output), IsEmpty());
    }
    expect_goes_on_to_the_same_end(output);
  }
}

TEST_F(StopSignal, SaysWithWhichWordsTheRunGoesOn) {
  struct Form {
    std::vector<std::string> changes;
    std::string words;  // that go on
  };
  const fs::path output = made_->folder / "words";
  const std::string checkpoint = (output / "checkpoint-5").string();
  for (const Form& form :
       {Form{{"overwrite_output_dir=true"}, "overwrite_output_dir=false"},
        Form{{"resume_from_checkpoint=none"}, "resume_from_checkpoint=" + checkpoint}}) {
    SCOPED_TRACE(form.words);
    fs::remove_all(output);
    TrainOptions held = options(output);
    held.changes.insert(held.changes.end(), form.changes.begin(), form.changes.end());
    TrainOptions waits = held;
    waits.environment = {{"UNDERKEEL_FAULT", "rank=1 phase=step step=5 delay=2s"}};
    Program program(train_words(*made_, waits), program_options(waits));
    ASSERT_TRUE(program.wait_until([&] { return last_step(output) == 5; }));
    program.send(SIGTERM);
    const Ended stopped = program.wait(20);
    ASSERT_EQ(stopped.exit_code, 75) << stopped.output;
    ASSERT_THAT(stopped.output, testing::HasSubstr("run the same command with " + form.words));

    held.changes.push_back(form.words);
    const Ended ended = run_training(*made_, held);

    ASSERT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_THAT(ended.output, testing::HasSubstr("going on after step"));
    EXPECT_THAT(ended.output,
                testing::Not(testing::HasSubstr("\\x0a")));  // tables keep their lines
    EXPECT_THAT(tensor_differences(made_->folder / "unbroken", output), IsEmpty());
  }
}

TEST_F(StopSignal, EndsAtOnceWhenItComesTwice) {
  const fs::path output = made_->folder / "twice";
  TrainOptions held = options(output);
  held.environment = {{"UNDERKEEL_FAULT", "rank=1 phase=step step=5 delay=600s"}};
  {
    Program waiting(train_words(*made_, held), program_options(held));
    ASSERT_TRUE(waiting.wait_until([&] { return last_step(output) == 5; }));
    waiting.send(SIGTERM);
    EXPECT_TRUE(waiting.wait_until(
        [&] { return waiting.output().find("stopping: ") != std::string::npos; }));
    (void)waiting.wait_until([began = waiting.elapsed_s(), &waiting] {
      return waiting.elapsed_s() > began + 0.2;  // closer together they are one signal
    });
    waiting.send(SIGTERM);
    EXPECT_EQ(waiting.wait(5).exit_code, 75);
  }

  EXPECT_THAT(damage(output), IsEmpty());
  expect_goes_on_to_the_same_end(output);
}

#if UNDERKEEL_HAS_MPI

/// The processes below `parent` that run the training program.
std::vector<pid_t> ranks_below(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code error;
    if (fs::read_symlink(entry.path() / "exe", error) != fs::path(underkeel_binary())) continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line == "PPid:\t" + std::to_string(parent)) found.push_back(std::stoi(name));
  }
  return found;
}

class StopSignalUnderMpirun : public StopSignal, public testing::WithParamInterface<const char*> {};

TEST_P(StopSignalUnderMpirun, EndsAllRanksInOneCheckpoint) {
  const std::string whom = GetParam();
  const fs::path output = made_->folder / whom;
  TrainOptions held = options(output, Ranks::processes);
  held.environment = {{"UNDERKEEL_FAULT", "rank=1 phase=step step=3 delay=0.4s"}};
  Program program(train_words(*made_, held), program_options(held));
  ASSERT_TRUE(program.wait_until([&] { return last_step(output) == 3; })) << program.wait().output;
  const std::vector<pid_t> ranks = ranks_below(program.id());
  ASSERT_EQ(ranks.size(), 2u);

  if (whom == "all" || whom == "one") kill(ranks[1], SIGTERM);
  if (whom == "all") kill(ranks[0], SIGTERM);
  if (whom == "launcher")
    program.send(SIGUSR1);  // mpirun hands it on; SIGTERM makes it kill its ranks
  const Ended ended = program.wait(60);

  EXPECT_EQ(ended.exit_code, 75) << ended.output;
  EXPECT_THAT(complete_steps(output), testing::ElementsAre(3));
  EXPECT_THAT(damage(output), IsEmpty());
  expect_goes_on_to_the_same_end(output);
}

INSTANTIATE_TEST_SUITE_P(SentTo, StopSignalUnderMpirun, testing::Values("one", "all", "launcher"),
                         [](const auto& chosen) { return std::string(chosen.param); });

#endif

}  // namespace
}  // namespace underkeel::test
