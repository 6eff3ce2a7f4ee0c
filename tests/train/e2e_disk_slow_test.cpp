// Disks that fill, fail once, or are too small from the start.

#include <gmock/gmock.h>

#include "train/e2e.h"

namespace underkeel::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* no_space_for_step_4 =
    "fail:path=checkpoint-4,call=write,error=ENOSPC,times=all;"
    "fail:path=checkpoint-4,call=allocate,error=ENOSPC,times=all";

class DiskThatFills : public testing::Test {
 protected:
  std::int64_t checkpoint_bytes() {
    const fs::path probe = made_.folder / "probe";
    const Ended ended =
        run_training(made_, {.output = probe, .changes = {"max_steps=1", "save_steps=1"}});
    if (ended.exit_code != 0) throw std::runtime_error(ended.output);
    std::int64_t sum = 0;
    for (const auto& file : fs::directory_iterator(probe / "checkpoint-1"))
      sum += static_cast<std::int64_t>(file.file_size());
    return sum;
  }
  Ended run_with(const std::string& fault, std::vector<std::string> changes = {}) {
    return run_training(made_, {.ranks = 2,
                                .changes = std::move(changes),
                                .environment = {{"UNDERKEEL_IO_FAULT", fault}}});
  }
  std::vector<std::string> notices() {
    std::vector<std::string> texts;
    for (const auto& line : json_lines(made_.output / "events.jsonl"))
      if (line.value("event", "") == "notice") texts.push_back(line.value("text", ""));
    return texts;
  }

  RunnableCase made_ = complete_case("disk_fills_in_save", {.model_file = "none", .zero_stage = 2});
};

TEST_F(DiskThatFills, IsSeenBeforeTheFirstStep) {
  const std::int64_t size = checkpoint_bytes();

  const Ended ended =
      run_with("quota:path=" + made_.output.string() + ",bytes=" + std::to_string(3 * size));

  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("save_total_limit"));
  EXPECT_THAT(steps(made_.output), IsEmpty());
}

TEST_F(DiskThatFills, FailsTheSaveNotTheRunAndIsTold) {
  // Writes of the second save meet a full disk, as when somebody else has filled it.
  const Ended ended = run_with(no_space_for_step_4, {"max_steps=4"});

  EXPECT_EQ(ended.exit_code, 3) << ended.output;
  EXPECT_EQ(last_step(made_.output), 4) << "training goes on";
  EXPECT_THAT(ended.output, HasSubstr("save failed; training goes on"));
  EXPECT_THAT(complete_steps(made_.output), ElementsAre(2));
  EXPECT_THAT(damage(made_.output), IsEmpty());
  EXPECT_THAT(entries(made_.output, "tmp-"), IsEmpty());
  EXPECT_THAT(notices(), Contains(HasSubstr("save failed")));
}

TEST_F(DiskThatFills, IsTriedAgainByTheNextSave) {
  const Ended ended = run_with(no_space_for_step_4);

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(complete_steps(made_.output), ElementsAre(8, 6, 2));
}

TEST_F(DiskThatFills, GivesNeededAndFreeBytesUnderAQuota) {
  const std::int64_t size = checkpoint_bytes();
  const TrainOptions held{
      .ranks = 2,
      .changes = {"max_steps=4", "underkeel.save.asynchronous=false"},
      .environment = {{"UNDERKEEL_FAULT", "rank=1 phase=step step=3 delay=1s"},
                      {"UNDERKEEL_IO_FAULT", "quota:path=" + made_.output.string() +
                                                 ",bytes=" + std::to_string(5 * size)}}};
  Program program(train_words(made_, held), program_options(held));
  ASSERT_TRUE(program.wait_until([&] { return last_step(made_.output) == 3; }));

  // Somebody else takes the room: half a checkpoint is left.
  write_text(made_.output / "filler",
             std::string(static_cast<std::size_t>(3 * size + size / 2), 'x'));
  const Ended ended = program.wait();

  EXPECT_EQ(ended.exit_code, 3) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("save failed; training goes on"));
  EXPECT_THAT(ended.output, testing::ContainsRegex("[0-9,]+ bytes.* needed, [0-9,]+ bytes.* free"));
  EXPECT_THAT(complete_steps(made_.output), ElementsAre(2));
  EXPECT_THAT(damage(made_.output), IsEmpty());
  EXPECT_THAT(entries(made_.output, "tmp-"), IsEmpty());
}

TEST_F(DiskThatFills, IsForgivenOneFailedWrite) {
  const Ended ended = run_with("fail:path=checkpoint-2,call=write,at=5,error=EIO");

  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(complete_steps(made_.output), ElementsAre(8, 6, 4));
}

}  // namespace
}  // namespace underkeel::test
