// What a group of threads does when one of its ranks is late, leaves, gives up or is slow.

#include <atomic>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/rank_inputs.h"

namespace underkeel::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ThreadFailure, NamesTheRanksThatDidNotArriveAndThePhase) {
  auto group = make_thread_group(4);
  group[0]->set_time_limit(0.02);
  group[0]->set_phase("save at step 2");
  std::thread arrives([&] { (void)group[2]->barrier(); });

  // Rank 0 must find rank 2 there, however late that thread starts.
  while (!group[2]->waiting()) std::this_thread::yield();
  const auto result = group[0]->barrier();

  arrives.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::peer_lost);
  EXPECT_THAT(result.error().what, StartsWith("ranks 1, 3 did not arrive within "));
  EXPECT_EQ(result.error().where, "save at step 2, barrier of rank 0 of 4");
}

TEST(ThreadFailure, MakesEveryLaterCallFailWithTheFirstReason) {
  auto group = make_thread_group(2);
  group[0]->set_time_limit(0.0);
  const auto first = group[0]->barrier();
  ASSERT_FALSE(first);

  const auto own = group[0]->all_gather_text("late");
  const auto other = group[1]->barrier();

  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().what, first.error().what);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().what, "rank 0 gave up: " + first.error().what);
}

TEST(ThreadFailure, TellsWaitingRanksWhyAnotherAborted) {
  auto group = make_thread_group(3);
  std::vector<std::future<Result<void>>> waiting;
  for (int rank = 0; rank < 2; ++rank)
    waiting.push_back(std::async(std::launch::async, [&, rank] { return group[rank]->barrier(); }));

  group[2]->abort(
      {.code = ErrorCode::io, .what = "disk full", .where = "out/x", .fix = "free 1 GB"});

  for (auto& pending : waiting) {
    const auto result = pending.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::io);
    EXPECT_EQ(result.error().what, "rank 2 gave up: disk full");
    EXPECT_EQ(result.error().where, "out/x");
    EXPECT_EQ(result.error().fix, "free 1 GB");
  }
  EXPECT_EQ(group[2]->barrier().error().what, "disk full");
}

TEST(ThreadFailure, NoticesAtOnceThatARankHasLeft) {
  auto group = make_thread_group(2);
  auto pending = std::async(std::launch::async, [&] { return group[0]->barrier(); });

  group[1].reset();

  const auto result = pending.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "rank 1 has left the group");
}

TEST(ThreadFailure, LetsTheOthersFinishTheLastCallOfARankThatLeaves) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    auto group = make_thread_group(3);
    std::vector<std::thread> threads;
    for (auto& comm : group)
      threads.emplace_back([&comm] {
        EXPECT_TRUE(comm->barrier());
        comm.reset();
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ThreadFailure, NeverFreesABufferThatAnotherRankReads) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto group = make_thread_group(3);
    std::thread stopper([&group] { group[1]->abort({.code = ErrorCode::io, .what = "stop"}); });
    std::vector<std::thread> threads;
    for (auto& comm : group)
      threads.emplace_back([&comm] {
        while (testing::reduced_everywhere(*comm, DType::bf16, 60'000, 1)) {
        }
      });
    for (std::thread& thread : threads) thread.join();
    stopper.join();
  }
}

TEST(ThreadWait, TellsWhomACallWaitsForAndWhatThatRankDoes) {
  auto group = make_thread_group(2);
  group[1]->set_phase("update 3");
  EXPECT_FALSE(group[1]->waiting());
  auto pending = std::async(std::launch::async, [&] { return group[1]->barrier(); });
  while (!group[1]->waiting()) std::this_thread::yield();

  const auto before = group[1]->waiting();
  group[0]->report_progress("write", 12'300'000, 40'000'000);
  const auto during = group[1]->waiting();
  group[0]->report_progress("write", 40'000'000, 40'000'000);
  const auto after = group[1]->waiting();

  EXPECT_EQ(before->rank, 0);
  EXPECT_THAT(to_text(*before), HasSubstr("waiting for rank 0 for 0."));
  EXPECT_THAT(to_text(*before), HasSubstr("(update 3)"));
  EXPECT_EQ(to_text(*during), "waiting for rank 0 to write (12.3 of 40.0 MB)");
  EXPECT_EQ(after->total_bytes, 0);
  EXPECT_TRUE(group[0]->barrier());
  EXPECT_TRUE(pending.get());
}

/// Rank 1 waits one and a half time limits for rank 0, which reports all the while. Returns how
/// rank 1's call ended, or nothing when a busy machine kept two reports further apart than the
/// limit allows.
std::optional<Result<void>> wait_for_a_slow_rank(std::chrono::duration<double> time_limit) {
  using Clock = std::chrono::steady_clock;
  auto group = make_thread_group(2);
  group[1]->set_time_limit(time_limit.count());
  auto pending = std::async(std::launch::async, [&] { return group[1]->barrier(); });
  const auto begin = Clock::now();
  auto before_last = begin;
  bool on_time = true;
  for (std::int64_t bytes = 0; Clock::now() - begin < 1.5 * time_limit; ++bytes) {
    const auto before = Clock::now();
    group[0]->report_progress("write", bytes, 1'000'000'000);
    on_time = on_time && Clock::now() - before_last < time_limit;
    before_last = before;
    std::this_thread::yield();
  }
  (void)group[0]->barrier();
  on_time = on_time && Clock::now() - before_last < time_limit;
  const auto result = pending.get();
  if (!on_time) return std::nullopt;
  return result;
}

TEST(ThreadWait, IsNotOverdueWhileTheSlowRankReportsProgress) {
  std::optional<Result<void>> result;
  for (int attempt = 0; attempt < 5 && !result; ++attempt)
    result = wait_for_a_slow_rank(std::chrono::milliseconds(150));

  if (!result) GTEST_SKIP() << "the machine is too busy to report every 150 ms";
  EXPECT_TRUE(result->has_value());
}

}  // namespace
}  // namespace underkeel::comm
