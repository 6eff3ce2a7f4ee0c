#include "train/signals.h"

#include <functional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

namespace underkeel::train {
namespace {

constexpr StopSignalOptions quiet{.announces = false, .repeat_window_s = 0};
constexpr int died_by_signal = -1;

/// What a child process that runs `body` exits with.
int exit_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : died_by_signal;
}

TEST(StopSignals, TheFirstSignalIsKeptAndTheProcessGoesOn) {
  for (const int number : StopSignals::handled) {
    const int exit = exit_of_child([&] {
      const StopSignals signals(quiet);
      if (stop_signal() != 0) return 1;
      raise(number);
      return stop_signal() == number ? 0 : 2;
    });

    EXPECT_EQ(exit, 0) << signal_name(number);
  }
}

TEST(StopSignals, ASecondSignalEndsTheProcessAtOnceAsStopped) {
  const int exit = exit_of_child([] {
    const StopSignals signals(quiet);
    raise(SIGTERM);
    raise(SIGINT);
    return 1;
  });

  EXPECT_EQ(exit, exit_code(ErrorCode::stopped));
}

TEST(StopSignals, ASignalSentTwiceWithinTheWindowCountsOnce) {
  const int exit = exit_of_child([] {
    const StopSignals signals({.announces = false, .repeat_window_s = 3600});
    raise(SIGTERM);
    raise(SIGTERM);
    raise(SIGINT);
    return stop_signal() == SIGTERM ? 0 : 1;
  });

  EXPECT_EQ(exit, 0);
}

TEST(StopSignals, AReadThatIsInterruptedGoesOn) {
  int to_child[2];
  int from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    const StopSignals signals(quiet);
    char byte = 'r';
    if (write(from_child[1], &byte, 1) != 1) _exit(1);
    // The signal comes before the byte, while this read waits or just before it.
    const bool is_read = read(to_child[0], &byte, 1) == 1;
    _exit(is_read && stop_signal() == SIGUSR1 ? 0 : 2);
  }
  char byte = 0;
  ASSERT_EQ(read(from_child[0], &byte, 1), 1);

  kill(child, SIGUSR1);
  ASSERT_EQ(write(to_child[1], &byte, 1), 1);

  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(end);
}

TEST(StopSignals, TheFirstSignalIsToldOnStderrAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);

  const int exit = exit_of_child([&] {
    dup2(ends[1], STDERR_FILENO);
    const StopSignals signals({.announces = true, .repeat_window_s = 3600});
    raise(SIGINT);
    raise(SIGINT);
    return 0;
  });

  close(ends[1]);
  char text[256];
  const auto size = read(ends[0], text, sizeof text);
  close(ends[0]);
  EXPECT_EQ(exit, 0);
  ASSERT_GT(size, 0);
  EXPECT_EQ(
      std::string_view(text, static_cast<std::size_t>(size)),
      "\nstopping: the run saves and ends after this step; a second signal ends it at once\n");
}

TEST(StopSignals, FormerHandlingComesBackWhenTheRunHasEnded) {
  const int exit = exit_of_child([] {
    { const StopSignals signals(quiet); }
    raise(SIGTERM);
    return 0;
  });

  EXPECT_EQ(exit, died_by_signal);
}

TEST(StopSignals, ANewRunInTheSameProcessStartsWithoutAFlag) {
  const int exit = exit_of_child([] {
    {
      const StopSignals signals(quiet);
      raise(SIGTERM);
    }
    const StopSignals signals(quiet);
    return stop_signal() == 0 ? 0 : 1;
  });

  EXPECT_EQ(exit, 0);
}

}  // namespace
}  // namespace underkeel::train
