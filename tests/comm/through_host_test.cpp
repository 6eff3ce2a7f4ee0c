// Collectives through host memory: values and bits, on a GPU that is host memory itself.

#include <array>
#include <barrier>
#include <cstdlib>

#include <gtest/gtest.h>

#include "comm/device_collectives.h"
#include "comm/rank_inputs.h"

namespace underkeel::comm {
namespace {

using namespace testing;

/// Its memory is the host's and its queue is always done.
class HostGpu final : public device::Gpu {
 public:
  const device::GpuFacts& facts() const override { return facts_; }
  Result<void> use() override { return {}; }
  Result<std::int64_t> free_bytes() override { return 0; }
  Result<void*> allocate(std::int64_t size_bytes) override {
    return std::malloc(static_cast<std::size_t>(size_bytes));
  }
  void release(void* data) override { std::free(data); }
  Result<void> pin(void* begin, std::int64_t /*size_bytes*/) override {
    pinned_.push_back(begin);
    return {};
  }
  void unpin(void* begin) override { std::erase(pinned_, begin); }
  Result<device::Queue> make_queue() override { return device::Queue::on_cuda(nullptr); }
  Result<device::EventId> make_event() override { return device::EventId{}; }
  Result<void> record(device::EventId, const device::Queue&) override { return {}; }
  Result<void> wait(device::EventId, const device::Queue&) override { return {}; }
  Result<void> wait(const Gpu&, device::EventId, const device::Queue&) override { return {}; }
  Result<void> wait_on_host(device::EventId) override { return {}; }
  Result<void> synchronize(const device::Queue&) override { return {}; }
  Result<void> reach(const Gpu&) override { return {}; }
  Result<void> copy(void* to, const void* from, std::int64_t size_bytes,
                    const device::Queue&) override {
    std::memmove(to, from, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Result<void> fill(void* begin, std::int64_t size_bytes, std::uint8_t value,
                    const device::Queue&) override {
    std::memset(begin, value, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Result<void> begin_capture(const device::Queue&) override { return {}; }
  Result<device::GraphId> end_capture(const device::Queue&) override { return device::GraphId{}; }
  Result<void> launch(device::GraphId, const device::Queue&) override { return {}; }
  Result<void> check_launches() override { return {}; }
  std::size_t pinned_count() const { return pinned_.size(); }

 private:
  device::GpuFacts facts_;
  std::vector<void*> pinned_;
};

struct HostRank {
  DeviceCollectives& group;
  int rank;
  int world_size;
  device::Queue queue = device::Queue::on_cuda(nullptr);
};

class ThroughHost : public ::testing::TestWithParam<int> {
 protected:
  void on_ranks(const std::function<void(HostRank&)>& body) const {
    on_threads(make_thread_group(GetParam()), [&](Communicator& link) {
      const auto gpu = std::make_shared<HostGpu>();
      {
        const auto group = make_through_host(link, gpu);
        ASSERT_TRUE(group) << to_text(group.error());
        HostRank rank{**group, link.rank(), link.world_size()};
        body(rank);
      }
      EXPECT_EQ(gpu->pinned_count(), 0u);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, ThroughHost, ::testing::Values(1, 2, 3, 4));

// Beyond one round for every rank.
constexpr std::int64_t several_rounds = 3 * 262'144 * 4 + 4'321;

TEST_P(ThroughHost, AllGatherPutsEveryShardInItsPlaceAlsoInPlace) {
  on_ranks([](HostRank& rank) {
    for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{16'384},
                                    std::int64_t{65'537}, several_rounds}) {
      SCOPED_TRACE(size);
      std::vector<float> expected(static_cast<std::size_t>(size));
      for (std::int64_t i = 0; i < size; ++i) expected[i] = static_cast<float>(i % 9'973);
      const ShardRange own = shard_of(size, rank.world_size, rank.rank);
      const std::vector<float> shard(expected.begin() + own.begin, expected.begin() + own.end);
      std::vector<float> full(static_cast<std::size_t>(size), -1.0f);
      const TensorView full_view = vector(full.data(), DType::f32, size);

      ASSERT_TRUE(rank.group.all_gather(
          vector(const_cast<float*>(shard.data()), DType::f32, own.size()), full_view, rank.queue));
      EXPECT_EQ(full, expected);

      std::fill(full.begin(), full.end(), -1.0f);
      std::copy(shard.begin(), shard.end(), full.begin() + own.begin);
      ASSERT_TRUE(rank.group.all_gather(vector(full.data() + own.begin, DType::f32, own.size()),
                                        full_view, rank.queue));
      EXPECT_EQ(full, expected);
    }
  });
}

TEST_P(ThroughHost, ReduceScatterAddsInRankOrderAndRoundsOnceIntoAHomeOrInPlace) {
  on_ranks([](HostRank& rank) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t size : {std::int64_t{1}, std::int64_t{40'000}, most_elements}) {
        const ShardRange own = shard_of(size, rank.world_size, rank.rank);
        const Bytes sums = part_of(sum_of_ranks(rank.world_size, type, size), type, own);
        Bytes staging(static_cast<std::size_t>(bytes_of(type, rank.world_size)));
        const auto reduce = [&](Bytes& full, const SumHome& home) {
          return rank.group.reduce_scatter(
              vector(full.data(), type, size),
              vector(staging.data(), DType::u8, static_cast<std::int64_t>(staging.size())), home,
              rank.queue);
        };
        Bytes full = values_of_rank(rank.rank, type, size);
        ASSERT_TRUE(reduce(full, {}));
        EXPECT_EQ(part_of(full, type, own), sums) << name_of(type) << " x " << size;
        for (const DType home_type : {DType::f32, DType::bf16, DType::f16})
          for (const bool adds : {false, true}) {
            SCOPED_TRACE(::testing::Message() << name_of(type) << " into " << name_of(home_type)
                                              << (adds ? " added" : "") << " x " << size);
            full = values_of_rank(rank.rank, type, size);
            const Bytes before = values_of_rank(3, home_type, own.size());
            Bytes home = before;
            ASSERT_TRUE(
                reduce(full, {.into = vector(home.data(), home_type, own.size()), .adds = adds}));
            Bytes expected(before.size());
            for (std::int64_t i = 0; i < own.size(); ++i) {
              const float sum = read(sums.data(), type, i);
              write(expected.data(), home_type, i,
                    adds ? read(before.data(), home_type, i) + sum : sum);
            }
            EXPECT_EQ(home, expected);
          }
      }
  });
}

TEST_P(ThroughHost, AllReduceGivesTheSameSumToEveryRankOverSeveralRounds) {
  on_ranks([](HostRank& rank) {
    std::vector<float> full(several_rounds);
    for (std::int64_t i = 0; i < several_rounds; ++i)
      full[i] = static_cast<float>((i + 1) % 1'021 * (rank.rank + 1));
    std::vector<float> staging(16);

    ASSERT_TRUE(rank.group.all_reduce(vector(full.data(), DType::f32, several_rounds),
                                      vector(staging.data(), DType::f32, 16), rank.queue));

    const auto ranks = static_cast<std::int64_t>(rank.world_size);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < several_rounds; ++i)
      wrong += full[i] != static_cast<float>((i + 1) % 1'021 * (ranks * (ranks + 1) / 2)) ? 1 : 0;
    EXPECT_EQ(wrong, 0);
  });
}

TEST_P(ThroughHost, GathersValuesInRankOrderAndSaysWhenARankGaveUp) {
  std::barrier all_have_gathered(GetParam());
  on_ranks([&](HostRank& rank) {
    const std::array<double, 2> own = {rank.rank + 0.5, -1.0};
    std::vector<double> all(2 * static_cast<std::size_t>(rank.world_size));
    EXPECT_TRUE(rank.group.all_gather_values(own.data(), all.data(), 2, rank.queue));
    for (int from = 0; from < rank.world_size; ++from) {
      EXPECT_EQ(all[2 * static_cast<std::size_t>(from)], from + 0.5);
      EXPECT_EQ(all[2 * static_cast<std::size_t>(from) + 1], -1.0);
    }
    EXPECT_TRUE(rank.group.check());
    all_have_gathered.arrive_and_wait();
    if (rank.world_size == 1) return;
    if (rank.rank == 0) rank.group.abort();
    EXPECT_FALSE(rank.group.all_gather_values(own.data(), all.data(), 2, rank.queue));
    EXPECT_FALSE(rank.group.check());
  });
}

}  // namespace
}  // namespace underkeel::comm
