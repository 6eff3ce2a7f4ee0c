// The MPI transport against the threads transport, bit for bit, and its own behaviour.

#include <gtest/gtest.h>

#include "comm/mpi/world.h"
#include "comm/rank_inputs.h"

namespace underkeel::comm {
namespace {

using namespace testing;

const DType sum_types[] = {DType::f32, DType::bf16, DType::f16};
// One element: the least. 1,000: several rounds and a rest. 100,000: one round.
const std::int64_t chunk_sizes[] = {1'000, 100'000};

/// What the threads transport gives to this rank.
template <class Collective>
Bytes by_threads(Collective collective) {
  Bytes own;
  on_threads(make_thread_group(mpi_group(0).world_size()), [&](Communicator& comm) {
    const auto result = collective(comm);
    if (comm.rank() == mpi_group(0).rank()) own = *result;
  });
  return own;
}

TEST(Mpi, KnowsItsTransportAndItsNode) {
  EXPECT_EQ(mpi_group(0).transport(), "mpi");
  EXPECT_EQ(mpi_group(1).ranks_on_node(), mpi_group(0).world_size());
  EXPECT_TRUE(started_by_mpi());
}

TEST(Mpi, ReduceScatterGivesTheBitsOfThreads) {
  for (const DType type : sum_types) {
    for (const std::int64_t size : awkward_sizes) {
      const Bytes expected =
          by_threads([&](Communicator& comm) { return reduced_range(comm, type, size, 1); });
      for (const std::int64_t chunk : chunk_sizes) {
        const auto own = reduced_range(mpi_group(0), type, size, chunk);
        ASSERT_TRUE(own) << own.error().what;
        EXPECT_EQ(*own, expected) << name_of(type) << " x " << size << " by " << chunk;
      }
    }
  }
}

TEST(Mpi, ReduceScatterNeedsNoMoreThanOneElementOfStagingPerRank) {
  const auto own = reduced_range(mpi_group(0), DType::bf16, 401, 1);

  ASSERT_TRUE(own) << own.error().what;
  EXPECT_EQ(*own, by_threads(
                      [](Communicator& comm) { return reduced_range(comm, DType::bf16, 401, 1); }));
}

TEST(Mpi, AllReduceGivesTheBitsOfThreads) {
  for (const DType type : sum_types) {
    for (const std::int64_t size : awkward_sizes) {
      const auto full = reduced_everywhere(mpi_group(0), type, size, 5'000);
      ASSERT_TRUE(full) << full.error().what;
      EXPECT_EQ(*full, by_threads([&](Communicator& comm) {
        return reduced_everywhere(comm, type, size, 1);
      })) << name_of(type)
          << " x " << size;
    }
  }
}

TEST(Mpi, AllGatherPutsEveryShardInItsPlace) {
  for (const std::int64_t size : awkward_sizes) {
    for (const bool in_place : {false, true}) {
      const auto full = gathered(mpi_group(0), DType::bf16, size, in_place);
      ASSERT_TRUE(full) << full.error().what;
      EXPECT_EQ(*full, values_of_rank(0, DType::bf16, size)) << size << " in place " << in_place;
    }
  }
}

TEST(Mpi, SendsShardsLargerThanOneMessage) {
  const int world_size = mpi_group(0).world_size();
  const std::int64_t size = 3'000'001 * world_size;
  const ShardRange own = shard_of(size, world_size, mpi_group(0).rank());
  std::vector<std::int32_t> full(static_cast<std::size_t>(size), -1);
  for (std::int64_t i = own.begin; i < own.end; ++i)
    full[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i);

  ASSERT_TRUE(mpi_group(0).all_gather(vector(full.data() + own.begin, DType::i32, own.size()),
                                      vector(full.data(), DType::i32, size)));

  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < size; ++i) wrong += full[static_cast<std::size_t>(i)] != i;
  EXPECT_EQ(wrong, 0);
}

TEST(Mpi, GathersValuesAndTextsInRankOrder) {
  const auto rank = static_cast<std::size_t>(mpi_group(0).rank());
  const std::vector<double> own = {1.5 * static_cast<double>(rank), -2.0};
  std::vector<double> all(2 * static_cast<std::size_t>(mpi_group(0).world_size()));

  ASSERT_TRUE(mpi_group(0).all_gather_values(own, all));
  const auto texts = mpi_group(0).all_gather_text(std::string(rank * 3'000, 'x'));

  ASSERT_TRUE(texts);
  for (std::size_t peer = 0; peer < texts->size(); ++peer) {
    EXPECT_EQ(all[2 * peer], 1.5 * static_cast<double>(peer));
    EXPECT_EQ(all[2 * peer + 1], -2.0);
    EXPECT_EQ((*texts)[peer], std::string(peer * 3'000, 'x'));
  }
  EXPECT_TRUE(mpi_group(0).all_gather_values({}, {}));
}

TEST(Mpi, LanesUseTheirGroupsAtTheSameTime) {
  const Bytes expected = by_threads(
      [](Communicator& comm) { return reduced_everywhere(comm, DType::f32, 50'021, 1); });

  std::thread control([] {
    for (int round = 0; round < 50; ++round) ASSERT_TRUE(mpi_group(1).barrier());
  });
  for (int round = 0; round < 10; ++round) {
    const auto full = reduced_everywhere(mpi_group(0), DType::f32, 50'021, 700);
    ASSERT_TRUE(full) << full.error().what;
    EXPECT_EQ(*full, expected);
  }
  control.join();
}

}  // namespace
}  // namespace underkeel::comm
