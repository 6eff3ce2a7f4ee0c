// What a user sees of an mpirun in which a rank is late, slow, killed or gives up.

#include <chrono>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Ended {
  std::string output;
  int exit_code = -1;
  double elapsed_s = 0;
};

Ended mpirun(int ranks, const std::string& scenario, const std::string& fault = "") {
  // A process that ignores its end, or is left behind, keeps the pipe open and fails `timeout`.
  const std::string command = "UNDERKEEL_FAULT='" + fault +
                              "' timeout -k 5 60 " UNDERKEEL_MPIRUN " -n " + std::to_string(ranks) +
                              " " UNDERKEEL_SCENARIO " " + scenario + " 2>&1";
  const auto begin = std::chrono::steady_clock::now();
  Ended ended;
  std::FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  for (std::size_t size; (size = std::fread(part, 1, sizeof part, pipe)) > 0;)
    ended.output.append(part, size);
  ended.exit_code = WEXITSTATUS(pclose(pipe));
  ended.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

TEST(MpiRun, EndsWithTheNameOfTheRankThatDoesNotCome) {
  const Ended ended = mpirun(3, "save", "rank=1 phase=save step=2 delay=600s");

  EXPECT_THAT(ended.output, AllOf(HasSubstr("error: rank 1 did not arrive within "),
                                  HasSubstr("where: save at step 2, barrier of rank ")));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_LT(ended.elapsed_s, 50);
}

// Long before the time limit of ten minutes: mpirun itself sees the death.
TEST(MpiRun, EndsAtOnceWhenARankIsKilled) {
  const Ended ended = mpirun(3, "patient_save", "rank=1 phase=save step=2 kill");

  EXPECT_THAT(ended.output, HasSubstr("process rank 1"));
  EXPECT_THAT(ended.output, HasSubstr("exited on signal 9"));
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_LT(ended.elapsed_s, 50);
}

TEST(MpiRun, EndsWhenARankFailsByItself) {
  const Ended ended = mpirun(2, "save", "rank=1 phase=save fail");

  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 1: error: fault injected on rank 1"),
                                  HasSubstr("rank 0: error: rank 1 gave up: fault injected")));
  EXPECT_EQ(ended.exit_code, 3);
}

TEST(MpiRun, WaitsForASlowWriterAndShowsHowFarItIs) {
  const Ended ended = mpirun(2, "write");

  EXPECT_THAT(ended.output, AllOf(HasSubstr("waiting for rank 0 to write (12.3 of 40.0 MB)"),
                                  HasSubstr("rank 0: done"), HasSubstr("rank 1: done")));
  EXPECT_EQ(ended.exit_code, 0);
}

TEST(MpiRun, GivesTheReasonOfAnAbortToAllRanks) {
  const Ended ended = mpirun(3, "abort");

  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 0: error: rank 1 gave up: loss is nan"),
                                  HasSubstr("rank 1: error: loss is nan"),
                                  HasSubstr("rank 2: error: rank 1 gave up: loss is nan")));
  EXPECT_EQ(ended.exit_code, 4);
}

TEST(MpiRun, EndsAPendingCallWhenAnotherThreadOfTheRankAborts) {
  const Ended ended = mpirun(2, "thread");

  EXPECT_THAT(ended.output, HasSubstr("rank 1: error: disk full"));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_LT(ended.elapsed_s, 25);
}

TEST(MpiRun, DoesNotHangWhenARankLeavesEarly) {
  const Ended ended = mpirun(2, "leave");

  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 1: done"),
                                  HasSubstr("rank 0: error: rank 1 did not arrive within ")));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_LT(ended.elapsed_s, 50);
}

}  // namespace
