#include "train/progress.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/units.h"

namespace underkeel::train {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgressFigures some_figures() {
  return {.step = 25,
          .total_steps = 100,
          .loss = 2.34567,
          .gradient_norm = 0.81234,
          .learning_rate = 4.95e-5,
          .tokens_per_s = 1234.4,
          .remaining_s = 754,
          .memory_bytes = gibibyte,
          .planned_memory_bytes = 2 * gibibyte};
}

TEST(Progress, PlainLineHasEveryFigure) {
  EXPECT_EQ(plain_line(some_figures()),
            "step 25/100  loss 2.346  norm 0.812  lr 4.95e-05  1,234 tokens/s  left 0:12:34  "
            "memory 1.0 GiB of 2.0 GiB planned");
}

TEST(Progress, AWideLineHasEveryFigureAndABarOfTheShareThatIsDone) {
  EXPECT_EQ(bar_line(some_figures(), 200, false),
            "25/100  #######.......................  loss 2.346  norm 0.812  lr 4.95e-05  "
            "1,234 tokens/s  left 0:12:34  memory 1.0 GiB of 2.0 GiB planned");
}

TEST(Progress, ANarrowLineLeavesOutWhatMattersLeast) {
  EXPECT_EQ(bar_line(some_figures(), 80, false),
            "25/100  ####..............  loss 2.346  norm 0.812  1,234 tokens/s  left 0:12:34");
  EXPECT_EQ(bar_line(some_figures(), 36, false), "25/100  loss 2.346  left 0:12:34");
  EXPECT_EQ(bar_line(some_figures(), 20, false), "25/100  loss 2.346");
  EXPECT_EQ(bar_line(some_figures(), 8, false), "25/100");
  EXPECT_EQ(bar_line(some_figures(), 3, false), "25/");
}

TEST(Progress, NoLineIsWiderThanTheTerminalAtAnyWidth) {
  for (int width = 0; width < 160; ++width)
    EXPECT_LE(std::ssize(bar_line(some_figures(), width, false)), width);
}

TEST(Progress, BlocksTakeOneColumnEach) {
  const std::string blocks = bar_line(some_figures(), 100, true);
  const std::string plain = bar_line(some_figures(), 100, false);

  const auto columns =
      std::count_if(blocks.begin(), blocks.end(), [](char c) { return (c & 0xc0) != 0x80; });
  EXPECT_EQ(columns, std::ssize(plain));
  EXPECT_THAT(blocks, HasSubstr("\u2588\u2591"));
}

TEST(Progress, MemoryThatIsNotKnownIsNotShown) {
  ProgressFigures figures = some_figures();
  figures.memory_bytes = 0;

  EXPECT_THAT(plain_line(figures), Not(HasSubstr("memory")));
}

TEST(Progress, BlocksNeedAUtf8Locale) {
  EXPECT_TRUE(has_block_characters("", "", "en_GB.UTF-8"));
  EXPECT_TRUE(has_block_characters("", "C.utf8", "C"));
  EXPECT_FALSE(has_block_characters("C", "", "en_GB.UTF-8"));
  EXPECT_FALSE(has_block_characters("", "", ""));
}

/// A progress whose output is kept and whose clock stands.
struct Kept {
  std::string text;
  double now_s = 0;
  ProgressOptions options(bool is_terminal) {
    return {.is_terminal = is_terminal,
            .width = [] { return 61; },
            .write = [this](std::string_view more) { text += more; },
            .now_s = [this] { return now_s; }};
  }
};

TEST(Progress, OffATerminalOnlyLoggedStepsAreTold) {
  Kept kept;
  {
    ProgressBar progress(kept.options(false));

    progress.step(some_figures(), false);
    progress.step(some_figures(), true);
    progress.phase("evaluate", 1, 2);
    progress.note("saved");
  }

  EXPECT_EQ(kept.text, plain_line(some_figures()) + "\nsaved\n");
}

TEST(Progress, OnATerminalOneLineIsDrawnAnewAndLeftStandingAtTheEnd) {
  Kept kept;
  const std::string line = bar_line(some_figures(), 60, false);
  {
    ProgressBar progress(kept.options(true));

    progress.step(some_figures(), false);
    progress.note("saved");
  }

  EXPECT_EQ(kept.text, "\r" + line + "\x1b[K" + "\r\x1b[Ksaved\n" + line + "\n");
}

TEST(Progress, IsDrawnTenTimesASecondAtMostAndAtTheLastStep) {
  Kept kept;
  ProgressBar progress(kept.options(true));
  ProgressFigures figures = some_figures();
  progress.step(figures, false);
  kept.text.clear();

  kept.now_s = 0.05;
  progress.step(figures, true);
  EXPECT_EQ(kept.text, "");

  kept.now_s = 0.06;
  figures.step = figures.total_steps;
  progress.step(figures, false);
  EXPECT_THAT(kept.text, HasSubstr("100/100"));
}

TEST(Progress, APhaseIsShownWithItsCount) {
  Kept kept;
  ProgressBar progress(kept.options(true));

  progress.step(some_figures(), false);
  kept.now_s = 1;
  kept.text.clear();
  progress.phase("evaluate", 3, 20);

  EXPECT_EQ(kept.text, "\r25/100  evaluate 3/20\x1b[K");
}

TEST(Progress, OtherRanksShowNothing) {
  Kept kept;
  auto options = kept.options(true);
  options.is_shown = false;
  {
    ProgressBar progress(options);
    progress.step(some_figures(), true);
    progress.note("saved");
  }

  EXPECT_EQ(kept.text, "");
}

TEST(Progress, AFileOrPipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto options = progress_on(ends[1]);

  EXPECT_FALSE(options.is_terminal);
  EXPECT_EQ(options.width(), 80);
  options.write("line\n");
  char text[5];
  ASSERT_EQ(read(ends[0], text, 5), 5);
  EXPECT_EQ(std::string_view(text, 5), "line\n");
  close(ends[0]);
  close(ends[1]);
}

TEST(StepRate, CountsTokensAndSecondsOfTheSameSteps) {
  StepRate rate;
  EXPECT_EQ(rate.tokens_per_s(), 0);
  EXPECT_EQ(rate.remaining_s(10), 0);

  rate.add(100, 1);
  rate.add(300, 3);

  EXPECT_DOUBLE_EQ(rate.tokens_per_s(), 100);
  EXPECT_DOUBLE_EQ(rate.remaining_s(10), (3 + 0.9) / 1.9 * 10);
}

}  // namespace
}  // namespace underkeel::train
