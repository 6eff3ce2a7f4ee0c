// Values and bits of the collectives: one rank, and ranks that are threads.

#include <gtest/gtest.h>

#include "comm/rank_inputs.h"

namespace underkeel::comm {
namespace {

using namespace testing;

const DType sum_types[] = {DType::f32, DType::bf16, DType::f16};

TEST(Single, GatherCopiesTheShardUnlessItIsAlreadyThere) {
  const auto comm = make_single();

  EXPECT_EQ(*gathered(*comm, DType::bf16, 1'001, false), values_of_rank(0, DType::bf16, 1'001));
  EXPECT_EQ(*gathered(*comm, DType::bf16, 1'001, true), values_of_rank(0, DType::bf16, 1'001));
}

TEST(Single, ReductionsLeaveTheValuesAsTheyAre) {
  const auto comm = make_single();

  EXPECT_EQ(*reduced_range(*comm, DType::f16, 99, 1), values_of_rank(0, DType::f16, 99));
  EXPECT_EQ(*reduced_everywhere(*comm, DType::f32, 99, 1), values_of_rank(0, DType::f32, 99));
}

TEST(Single, FailsEveryCallAfterAbort) {
  const auto comm = make_single();

  comm->abort({.code = ErrorCode::io, .what = "disk full"});

  const auto result = comm->barrier();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "disk full");
}

class ThreadGroup : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ThreadGroup, ::testing::Values(1, 2, 3, 4));

TEST_P(ThreadGroup, ReduceScatterAddsInRankOrderAndRoundsOnce) {
  on_threads(make_thread_group(GetParam()), [](Communicator& comm) {
    for (const DType type : sum_types) {
      for (const std::int64_t size : awkward_sizes) {
        const auto own = reduced_range(comm, type, size, 1);
        ASSERT_TRUE(own);
        EXPECT_EQ(*own, part_of(sum_of_ranks(comm.world_size(), type, size), type,
                                shard_of(size, comm.world_size(), comm.rank())))
            << name_of(type) << " x " << size << " on rank " << comm.rank();
      }
    }
  });
}

TEST_P(ThreadGroup, AllReduceGivesTheSameSumToEveryRank) {
  on_threads(make_thread_group(GetParam()), [](Communicator& comm) {
    for (const DType type : sum_types) {
      for (const std::int64_t size : awkward_sizes) {
        const auto full = reduced_everywhere(comm, type, size, 1);
        ASSERT_TRUE(full);
        EXPECT_EQ(*full, sum_of_ranks(comm.world_size(), type, size))
            << name_of(type) << " x " << size << " on rank " << comm.rank();
      }
    }
  });
}

TEST_P(ThreadGroup, AllGatherPutsEveryShardInItsPlace) {
  on_threads(make_thread_group(GetParam()), [](Communicator& comm) {
    for (const std::int64_t size : awkward_sizes) {
      for (const bool in_place : {false, true}) {
        const auto full = gathered(comm, DType::bf16, size, in_place);
        ASSERT_TRUE(full);
        EXPECT_EQ(*full, values_of_rank(0, DType::bf16, size)) << size << " in place " << in_place;
      }
    }
  });
}

TEST_P(ThreadGroup, GathersValuesAndTextsInRankOrder) {
  on_threads(make_thread_group(GetParam()), [](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::vector<double> own = {1.5 * static_cast<double>(rank), -2.0};
    std::vector<double> all(2 * static_cast<std::size_t>(comm.world_size()));

    ASSERT_TRUE(comm.all_gather_values(own, all));
    const auto texts = comm.all_gather_text(std::string(rank * 3, 'x'));

    ASSERT_TRUE(texts);
    for (std::size_t peer = 0; peer < texts->size(); ++peer) {
      EXPECT_EQ(all[2 * peer], 1.5 * static_cast<double>(peer));
      EXPECT_EQ(all[2 * peer + 1], -2.0);
      EXPECT_EQ((*texts)[peer], std::string(peer * 3, 'x'));
    }
  });
}

TEST_P(ThreadGroup, TakesEmptyValueLists) {
  on_threads(make_thread_group(GetParam()),
             [](Communicator& comm) { EXPECT_TRUE(comm.all_gather_values({}, {})); });
}

// The race detector's food: buffers are rewritten the moment a call returns.
TEST_P(ThreadGroup, LeavesBuffersFreeOnReturn) {
  on_threads(make_thread_group(GetParam()), [](Communicator& comm) {
    constexpr std::int64_t size = 40'000;
    std::vector<float> full(size), staging(static_cast<std::size_t>(comm.world_size()));
    const ShardRange own = shard_of(size, comm.world_size(), comm.rank());
    const TensorView view = vector(full.data(), DType::f32, size);
    for (int round = 1; round <= 20; ++round) {
      std::fill(full.begin(), full.end(), static_cast<float>(round));
      ASSERT_TRUE(comm.reduce_scatter(
          view, vector(staging.data(), DType::f32, static_cast<std::int64_t>(staging.size()))));
      std::fill(full.begin(), full.begin() + own.begin, -1.0f);
      std::fill(full.begin() + own.end, full.end(), -1.0f);
      ASSERT_TRUE(comm.all_gather(vector(full.data() + own.begin, DType::f32, own.size()), view));
      for (const float value : full)
        ASSERT_EQ(value, static_cast<float>(round * comm.world_size()));
    }
  });
}

}  // namespace
}  // namespace underkeel::comm
