// What a checkpoint keeps of the loop, read back.

#include "train/resume.h"

#include <gmock/gmock.h>

#include "support/value_of.h"

namespace underkeel::train {
namespace {

using testing::HasSubstr;

Progress some_progress() {
  return {.step = 7,
          .position = {.epoch = 1, .samples = 24},
          .trainer_state = R"({"epoch": 1.5})",
          .data = DataIdentity{.samples = "00112233445566ff",
                               .sample_count = 48,
                               .seed = 42,
                               .shuffle = true,
                               .drop_last = false}};
}

TEST(LoopState, ComesBackAsItWasWritten) {
  const Progress written = some_progress();

  const Progress read = test::value_of(Progress::from_json(written.to_json(), "here"));

  EXPECT_EQ(read.step, written.step);
  EXPECT_EQ(read.position, written.position);
  EXPECT_EQ(read.trainer_state, written.trainer_state);
  EXPECT_EQ(read.data, written.data);
}

TEST(LoopState, OfAnOlderVersionNamesNoSamples) {
  Progress written = some_progress();
  written.data.reset();

  EXPECT_FALSE(test::value_of(Progress::from_json(written.to_json(), "here")).data);
}

TEST(LoopState, ThatNoRunComesToIsRefused) {
  Progress negative = some_progress();
  negative.step = -1;
  Progress too_many_epochs = some_progress();
  too_many_epochs.position.epoch = 8;
  Progress beyond_the_epoch = some_progress();
  beyond_the_epoch.position.samples = 48;
  Progress before_its_start = some_progress();
  before_its_start.position.samples = -3;

  for (const Progress& wild : {negative, too_many_epochs, beyond_the_epoch, before_its_start}) {
    const auto read = Progress::from_json(wild.to_json(), "here");

    ASSERT_FALSE(read) << wild.to_json();
    EXPECT_EQ(read.error().code, ErrorCode::bad_file);
    EXPECT_THAT(read.error().what, HasSubstr("is impossible"));
  }
}

TEST(LoopState, ThatIsNoneIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"step": 1, "epoch": 0, "samples": 0})",
        R"({"step": 1.5, "epoch": 0, "samples": 0, "trainer_state": ""})",
        R"({"step": "1", "epoch": 0, "samples": 0, "trainer_state": ""})",
        R"({"step": 1, "epoch": 0, "samples": 0, "trainer_state": "", "data": 3})",
        R"({"step": 1, "epoch": 0, "samples": 0, "trainer_state": "", "data": {"count": 1}})",
        R"({"step": 1e30, "epoch": 0, "samples": 0, "trainer_state": ""})"}) {
    const auto read = Progress::from_json(text, "here");

    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().where, "here");
  }
}

}  // namespace
}  // namespace underkeel::train
