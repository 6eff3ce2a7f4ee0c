#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "comm/agree.h"
#include "comm/device_collectives.h"
#include "tensor/shard.h"

namespace underkeel::comm {

namespace {

constexpr const char* link_variable = "UNDERKEEL_GPU_LINK";

/// Ends a group's calls when a rank is lost, while another thread waits for its GPU to come to their end.
class Watch {
 public:
  Watch(DeviceCollectives& group, Communicator& control)
      : thread_([&group, &control](const std::stop_token& stop) {
          constexpr auto interval = std::chrono::milliseconds(20);
          while (!stop.stop_requested()) {
            if (!control.check() || !group.check()) return group.abort();
            std::this_thread::sleep_for(interval);
          }
        }) {}

 private:
  std::jthread thread_;
};

/// What a rank holds while connections are made.
struct Scratch {
  device::Gpu* gpu = nullptr;
  device::Queue queue;
  std::byte* data = nullptr;
  ~Scratch() {
    if (data != nullptr) gpu->release(data);
  }
};

/// Calls of every kind, small and large: a library that makes its connections when they are first used, and takes memory
/// for them, makes them all now.
Result<void> connect(DeviceCollectives& group, Communicator& control, device::Gpu& gpu) {
  const std::int64_t world_size = control.world_size();
  const std::int64_t fewest = world_size * shard_alignment_elements;
  const std::int64_t size_bytes = std::max(32 * mebibyte, bytes_of(DType::f32, fewest));
  Scratch scratch{.gpu = &gpu, .queue = device::Queue::on_cuda(nullptr)};
  const auto take = [&]() -> Result<void> {
    UK_TRY(queue, gpu.make_queue());
    UK_TRY(data, gpu.allocate(2 * size_bytes));
    scratch.queue = queue;
    scratch.data = static_cast<std::byte*>(data);
    return {};
  };
  UK_TRY_VOID(agree(control, take()));
  const auto call_all = [&]() -> Result<void> {
    std::byte* const first = scratch.data;
    std::byte* const second = first + size_bytes;
    const std::int64_t most = size_bytes / bytes_of(DType::f32, fewest) * fewest;
    // Equal shards and unequal ones go by different calls.
    for (const std::int64_t count : {fewest, most, most - 1}) {
      const ShardRange own = shard_of(count, world_size, control.rank());
      UK_TRY_VOID(group.all_gather(vector(second, DType::f32, own.size()),
                                   vector(first, DType::f32, count), scratch.queue));
      UK_TRY_VOID(group.all_reduce(vector(first, DType::f32, count),
                                   vector(second, DType::f32, count), scratch.queue));
    }
    UK_TRY_VOID(group.all_gather_values(reinterpret_cast<const double*>(second),
                                        reinterpret_cast<double*>(first), 1, scratch.queue));
    const Watch watch(group, control);
    UK_TRY_VOID(gpu.synchronize(scratch.queue));
    return group.check();
  };
  Result<void> called = call_all();
  if (called) return called;
  // The others wait in their GPUs: their watches learn it from the control group.
  group.abort();
  control.abort(called.error());
  return called;
}

/// The link of every rank; one that has another would make other calls.
Result<GpuLink> agree_on_link(Communicator& control) {
  const auto own = link_of_gpus(control.transport() == "threads", control.world_size());
  UK_TRY_VOID(agree(control, own));
  const auto number = static_cast<double>(*own);
  std::vector<double> all(static_cast<std::size_t>(control.world_size()));
  UK_TRY_VOID(control.all_gather_values(std::span(&number, 1), all));
  const auto other =
      std::find_if(all.begin(), all.end(), [&](double link) { return link != all[0]; });
  if (other == all.end()) return *own;
  return fail(ErrorCode::bad_config,
              fmt::format("rank {} joins GPUs by another link than rank 0", other - all.begin()),
              link_variable, "give every rank the same value, or none");
}

}  // namespace

Result<GpuLink> link_of_gpus(bool ranks_are_threads, int rank_count) {
  const char* const asked = std::getenv(link_variable);
  const std::string_view link = asked == nullptr ? "" : asked;
  if (link == "nccl") return GpuLink::nccl;
  if (link == "host") return GpuLink::host;
  if (!link.empty())
    return fail(ErrorCode::bad_config, fmt::format("{} is `{}`", link_variable, link),
                link_variable, "set it to nccl or host, or leave it unset");
  if (!ranks_are_threads) return GpuLink::nccl;
  UK_TRY(reach, device::gpus_reach_one_another(rank_count));
  return reach ? GpuLink::copies : GpuLink::nccl;
}

Result<std::unique_ptr<DeviceCollectives>> join_gpus(Communicator& control, Communicator& through,
                                                     std::shared_ptr<device::Gpu> gpu) {
  UK_TRY(link, agree_on_link(control));
  if (link == GpuLink::host) return make_through_host(through, std::move(gpu));
  if (link == GpuLink::copies) return make_peers(control, std::move(gpu));
  UK_TRY(group, make_nccl(control));
  UK_TRY_VOID(connect(*group, control, *gpu));
  return group;
}

}  // namespace underkeel::comm
