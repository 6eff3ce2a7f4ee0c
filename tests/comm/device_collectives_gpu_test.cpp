// Values and bits of collectives on GPUs, by NCCL and by copies between peers, with two ranks and more where there are as many GPUs.

#include <algorithm>
#include <barrier>

#include <gtest/gtest.h>

#include "comm/device_collectives.h"
#include "comm/rank_inputs.h"
#include "device/gpu.h"

namespace underkeel::comm {
namespace {

using namespace testing;

int gpu_count() {
  const auto gpus = device::find_gpus();
  return gpus ? static_cast<int>(gpus->size()) : 0;
}

/// One rank's GPU with a piece of memory, and its end of the group.
struct GpuRank {
  device::Gpu& gpu;
  DeviceCollectives& group;
  device::Queue queue;
  int rank;
  int world_size;
  std::byte* memory;  // for `full`, then a shard, then staging
  static constexpr std::int64_t part_bytes = 4 * most_elements + 4096;

  std::byte* full() const { return memory; }
  std::byte* shard() const { return memory + part_bytes / 256 * 256; }
  std::byte* staging() const { return memory + 2 * (part_bytes / 256 * 256); }
  void put(std::byte* to, const Bytes& from) const {
    ASSERT_TRUE(gpu.copy(to, from.data(), static_cast<std::int64_t>(from.size()), queue));
  }
  Bytes take(const std::byte* from, std::int64_t size_bytes) const {
    Bytes into(static_cast<std::size_t>(size_bytes));
    EXPECT_TRUE(gpu.copy(into.data(), from, size_bytes, queue));
    EXPECT_TRUE(gpu.synchronize(queue));
    return into;
  }
};

enum class Link { nccl, peers, host };

struct World {
  Link link = Link::nccl;
  int size = 1;
};

void on_gpus(World world, const std::function<void(const GpuRank&)>& body) {
  const auto links = make_thread_group(world.size);
  on_threads(make_thread_group(world.size), [&](Communicator& control) {
    // Ranks beyond the GPUs share them, where the host links them.
    auto opened = device::open_gpu(control.rank() % gpu_count());
    ASSERT_TRUE(opened);
    const std::shared_ptr<device::Gpu> gpu = std::move(*opened);
    const auto group =
        world.link == Link::nccl ? make_nccl(control)
        : world.link == Link::peers
            ? make_peers(control, gpu)
            : make_through_host(*links[static_cast<std::size_t>(control.rank())], gpu);
    ASSERT_TRUE(group) << to_text(group.error());
    const auto queue = gpu->make_queue();
    const auto memory = gpu->allocate(8 * GpuRank::part_bytes);
    ASSERT_TRUE(queue && memory);
    body({*gpu, **group, *queue, control.rank(), world.size, static_cast<std::byte*>(*memory)});
    EXPECT_TRUE(control.barrier());  // the others may still read
    gpu->release(*memory);
  });
}

class GpuGroup : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    const int needed = GetParam().link == Link::host ? 1 : GetParam().size;
    if (gpu_count() < needed) GTEST_SKIP() << gpu_count() << " GPUs; " << needed << " are needed";
  }
};
std::string name_of_world(const ::testing::TestParamInfo<World>& info) {
  const char* const link = info.param.link == Link::nccl    ? "nccl_"
                           : info.param.link == Link::peers ? "peers_"
                                                            : "host_of_";
  return link + std::to_string(info.param.size);
}
INSTANTIATE_TEST_SUITE_P(Worlds, GpuGroup,
                         ::testing::Values(World{Link::nccl, 1}, World{Link::nccl, 2},
                                           World{Link::nccl, 4}, World{Link::nccl, 8},
                                           World{Link::peers, 1}, World{Link::peers, 2},
                                           World{Link::peers, 4}, World{Link::peers, 8},
                                           World{Link::host, 2}, World{Link::host, 3}),
                         name_of_world);

TEST_P(GpuGroup, ReduceScatterAddsInRankOrderAndRoundsOnce) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t size : awkward_sizes)
        for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{100}, std::int64_t{5'000}}) {
          if (chunk == 1 && size > 3'000) continue;
          if (rank.world_size > most_ranks) continue;
          rank.put(rank.full(), values_of_rank(rank.rank, type, size));
          const std::int64_t staging_bytes = reduce_staging_bytes(rank.world_size, chunk, type);
          ASSERT_TRUE(rank.group.reduce_scatter(vector(rank.full(), type, size),
                                                vector(rank.staging(), DType::u8, staging_bytes),
                                                {}, rank.queue));
          const ShardRange own = shard_of(size, rank.world_size, rank.rank);
          EXPECT_EQ(rank.take(rank.full() + bytes_of(type, own.begin), bytes_of(type, own.size())),
                    part_of(sum_of_ranks(rank.world_size, type, size), type, own))
              << name_of(type) << " x " << size << " in " << chunk << " on rank " << rank.rank;
        }
  });
}

TEST_P(GpuGroup, ReduceScatterAddsTheRoundedSumToAHome) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    if (rank.world_size > most_ranks || rank.world_size == 1) return;
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      for (const DType home_type : {DType::f32, DType::bf16, DType::f16})
        for (const bool adds : {false, true})
          for (const std::int64_t size : awkward_sizes) {
            SCOPED_TRACE(::testing::Message() << name_of(type) << " into " << name_of(home_type)
                                              << (adds ? " added" : "") << " x " << size);
            const ShardRange own = shard_of(size, rank.world_size, rank.rank);
            rank.put(rank.full(), values_of_rank(rank.rank, type, size));
            const Bytes before = values_of_rank(3, home_type, own.size());
            rank.put(rank.shard(), before);
            const std::int64_t staging_bytes = reduce_staging_bytes(rank.world_size, 3'000, type);

            ASSERT_TRUE(rank.group.reduce_scatter(
                vector(rank.full(), type, size), vector(rank.staging(), DType::u8, staging_bytes),
                {.into = vector(rank.shard(), home_type, own.size()), .adds = adds}, rank.queue));

            const Bytes sums = part_of(sum_of_ranks(rank.world_size, type, size), type, own);
            Bytes expected(before.size());
            for (std::int64_t i = 0; i < own.size(); ++i) {
              const float sum = read(sums.data(), type, i);
              write(expected.data(), home_type, i,
                    adds ? read(before.data(), home_type, i) + sum : sum);
            }
            EXPECT_EQ(rank.take(rank.shard(), bytes_of(home_type, own.size())), expected);
          }
  });
}

TEST_P(GpuGroup, AllReduceGivesTheSameSumToEveryRank) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    if (rank.world_size > most_ranks) return;
    for (const std::int64_t size : awkward_sizes) {
      rank.put(rank.full(), values_of_rank(rank.rank, DType::bf16, size));
      const std::int64_t staging_bytes = reduce_staging_bytes(rank.world_size, 4'096, DType::bf16);
      ASSERT_TRUE(rank.group.all_reduce(vector(rank.full(), DType::bf16, size),
                                        vector(rank.staging(), DType::u8, staging_bytes),
                                        rank.queue));
      EXPECT_EQ(rank.take(rank.full(), bytes_of(DType::bf16, size)),
                sum_of_ranks(rank.world_size, DType::bf16, size))
          << size << " on rank " << rank.rank;
    }
  });
}

TEST_P(GpuGroup, AllGatherPutsEveryShardInItsPlace) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    for (const std::int64_t size : awkward_sizes)
      for (const bool in_place : {false, true}) {
        const Bytes whole = values_of_rank(0, DType::bf16, size);
        const ShardRange own = shard_of(size, rank.world_size, rank.rank);
        std::byte* const shard =
            in_place ? rank.full() + bytes_of(DType::bf16, own.begin) : rank.shard();
        ASSERT_TRUE(rank.gpu.clear(rank.full(), GpuRank::part_bytes / 256 * 256, rank.queue));
        rank.put(shard, part_of(whole, DType::bf16, own));
        ASSERT_TRUE(rank.group.all_gather(vector(shard, DType::bf16, own.size()),
                                          vector(rank.full(), DType::bf16, size), rank.queue));
        EXPECT_EQ(rank.take(rank.full(), bytes_of(DType::bf16, size)), whole)
            << size << " in place " << in_place;
      }
  });
}

TEST_P(GpuGroup, GathersValuesInRankOrder) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    const double own[3] = {rank.rank + 0.5, -1.0 * rank.rank, 7.0};
    Bytes bytes(sizeof own);
    std::memcpy(bytes.data(), own, sizeof own);
    rank.put(rank.shard(), bytes);
    ASSERT_TRUE(rank.group.all_gather_values(reinterpret_cast<const double*>(rank.shard()),
                                             reinterpret_cast<double*>(rank.full()), 3,
                                             rank.queue));
    const Bytes all = rank.take(rank.full(), 24 * rank.world_size);
    for (int peer = 0; peer < rank.world_size; ++peer) {
      double theirs[3];
      std::memcpy(theirs, all.data() + 24 * peer, sizeof theirs);
      EXPECT_EQ(theirs[0], peer + 0.5);
      EXPECT_EQ(theirs[1], -1.0 * peer);
    }
  });
}

TEST_P(GpuGroup, KeepsTheOrderOfManyCallsWithoutWaiting) {
  on_gpus(GetParam(), [](const GpuRank& rank) {
    // Each gather reads what the one before has put together, into the other of two places.
    constexpr std::int64_t size = 30'000;
    std::byte* const places[] = {rank.full(), rank.staging()};
    const ShardRange own = shard_of(size, rank.world_size, rank.rank);
    const Bytes whole = values_of_rank(1, DType::bf16, size);
    ASSERT_TRUE(rank.gpu.clear(rank.full(), GpuRank::part_bytes / 256 * 256, rank.queue));
    rank.put(places[0] + bytes_of(DType::bf16, own.begin), part_of(whole, DType::bf16, own));
    for (int call = 0; call < 200; ++call)
      ASSERT_TRUE(rank.group.all_gather(
          vector(places[call % 2] + bytes_of(DType::bf16, own.begin), DType::bf16, own.size()),
          vector(places[(call + 1) % 2], DType::bf16, size), rank.queue));
    EXPECT_EQ(rank.take(places[0], bytes_of(DType::bf16, size)), whole);
  });
}

TEST_P(GpuGroup, EndsACallThatAnotherRankDoesNotComeTo) {
  if (GetParam().size != 2) GTEST_SKIP() << "one pair is enough";
  std::barrier both_came(2);
  on_gpus(GetParam(), [&](const GpuRank& rank) {
    const auto gather = [&] {
      return rank.group.all_gather(vector(rank.shard(), DType::bf16, 16'384),
                                   vector(rank.full(), DType::bf16, 32'768), rank.queue);
    };
    const auto first = gather();
    const auto ended = rank.gpu.synchronize(rank.queue);
    // A rank that is through may end the group while the other still takes its part.
    both_came.arrive_and_wait();
    ASSERT_TRUE(first);
    ASSERT_TRUE(ended);
    if (rank.rank == 1) {
      rank.group.abort();
      return;
    }
    // NCCL queues the call, and its end is to be asked for; peers wait for the rank, and learn that it will not come.
    if (GetParam().link == Link::nccl) {
      ASSERT_TRUE(gather());
      EXPECT_TRUE(rank.group.check());
      rank.group.abort();
    } else {
      const auto alone = gather();
      ASSERT_FALSE(alone);
      EXPECT_EQ(alone.error().code, ErrorCode::peer_lost);
      EXPECT_FALSE(rank.group.check());
    }
    (void)rank.gpu.synchronize(rank.queue);
    EXPECT_FALSE(rank.group.all_gather_values(nullptr, nullptr, 0, rank.queue));
  });
}

}  // namespace
}  // namespace underkeel::comm
