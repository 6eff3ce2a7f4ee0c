#include "train/bench_link.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "comm/device_collectives.h"
#include "exec/arena.h"
#include "tensor/shard.h"

namespace underkeel::train {

namespace {

/// One GPU's end of the measurement.
class LinkRank {
 public:
  LinkRank(comm::Communicator& control, comm::Communicator& link)
      : control_(control), link_(link) {}

  Result<LinkRate> run(double seconds) {
    UK_TRY(opened, device::open_gpu(control_.rank()));
    const std::shared_ptr<device::Gpu> gpu = std::move(opened);
    UK_TRY(group, comm::join_gpus(control_, link_, gpu));
    UK_TRY(queue, gpu->make_queue());
    // A layer of Llama-2-7B in bf16, its shard, and what the gather puts together.
    constexpr std::int64_t elements = 202'375'168;
    const std::int64_t shard = shard_elements(elements, control_.world_size());
    const std::int64_t full_bytes = round_up(bytes_of(DType::bf16, elements), gpu_alignment);
    UK_TRY(memory, exec::Arena::make_on_gpu(full_bytes + bytes_of(DType::bf16, shard),
                                            "memory to gather in", *gpu));
    const auto gathers = [&](std::int64_t count, int calls) -> Result<double> {
      const ShardRange own = shard_of(count, control_.world_size(), control_.rank());
      UK_TRY_VOID(control_.barrier());
      const double began_s = steady_now_s();
      for (int i = 0; i < calls; ++i)
        UK_TRY_VOID(group->all_gather(vector(memory.data() + full_bytes, DType::bf16, own.size()),
                                      vector(memory.data(), DType::bf16, count), queue));
      UK_TRY_VOID(gpu->synchronize(queue));
      return (steady_now_s() - began_s) / calls;
    };
    const auto measured = [&]() -> Result<LinkRate> {
      // As many calls on every rank: from the first rank's time of a few.
      UK_TRY(trial_s, gathers(elements, 8));
      std::vector<double> trials(static_cast<std::size_t>(control_.world_size()));
      UK_TRY_VOID(control_.all_gather_values(std::span(&trial_s, 1), trials));
      const int calls = std::clamp(static_cast<int>(seconds / trials.front()), 8, 100'000);
      UK_TRY(large_s, gathers(elements, calls));
      UK_TRY(small_s, gathers(shard_granule * control_.world_size(), 1000));
      const auto received = static_cast<double>(bytes_of(DType::bf16, elements - shard));
      return LinkRate{.bytes_per_s = received / large_s, .latency_s = small_s};
    };
    return measured();
  }

 private:
  static constexpr std::int64_t gpu_alignment = device::gpu_alignment_bytes;
  static constexpr std::int64_t shard_granule =
      16'384;  // elements: a small shard that no rank lacks
  comm::Communicator& control_;
  comm::Communicator& link_;
};

}  // namespace

Result<LinkRate> measure_link(int gpu_count, double seconds) {
  const auto ranks = comm::make_thread_group(gpu_count);
  const auto links = comm::make_thread_group(gpu_count);
  std::vector<Result<LinkRate>> rates(static_cast<std::size_t>(gpu_count));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < rates.size(); ++rank)
    threads.emplace_back([&, rank] {
      rates[rank] = LinkRank(*ranks[rank], *links[rank]).run(seconds);
      if (!rates[rank]) ranks[rank]->abort(rates[rank].error());
    });
  for (std::thread& thread : threads) thread.join();
  // All wait for the slowest.
  Result<LinkRate> slowest = rates.front();
  for (Result<LinkRate>& rate : rates) {
    if (!rate) return rate;
    if (rate->bytes_per_s < slowest->bytes_per_s) slowest = rate;
  }
  return slowest;
}

}  // namespace underkeel::train
