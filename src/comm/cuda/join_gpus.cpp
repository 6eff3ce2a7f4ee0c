#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "comm/agree.h"
#include "comm/device_collectives.h"
#include "tensor/shard.h"

namespace underkeel::comm {

namespace {

/// Calls of every kind, small and large: a library that makes its connections when they are first used, and takes memory
/// for them, makes them all now.
Result<void> connect(DeviceCollectives& group, Communicator& control, device::Gpu& gpu) {
  const std::int64_t world_size = control.world_size();
  const std::int64_t fewest = world_size * shard_alignment_elements;
  const std::int64_t size_bytes = std::max(32 * mebibyte, bytes_of(DType::f32, fewest));
  const auto release = [&gpu](void* data) { gpu.release(data); };
  auto taken = gpu.allocate(2 * size_bytes);
  UK_TRY_VOID(agree(control, taken ? Result<void>{} : tl::unexpected(taken.error())));
  const std::unique_ptr<void, decltype(release)> memory(*taken, release);
  auto* const first = static_cast<std::byte*>(memory.get());
  std::byte* const second = first + size_bytes;
  UK_TRY(queue, gpu.make_queue());
  const std::int64_t most = size_bytes / bytes_of(DType::f32, fewest) * fewest;
  // Equal shards and unequal ones go by different calls.
  for (const std::int64_t count : {fewest, most, most - 1}) {
    const ShardRange own = shard_of(count, world_size, control.rank());
    UK_TRY_VOID(group.all_gather(vector(second, DType::f32, own.size()),
                                 vector(first, DType::f32, count), queue));
    UK_TRY_VOID(group.all_reduce(vector(first, DType::f32, count),
                                 vector(second, DType::f32, count), queue));
  }
  UK_TRY_VOID(group.all_gather_values(reinterpret_cast<const double*>(second),
                                      reinterpret_cast<double*>(first), 1, queue));
  return gpu.synchronize(queue);
}

}  // namespace

Result<GpuLink> link_of_gpus(bool ranks_are_threads, int rank_count) {
  constexpr const char* variable = "UNDERKEEL_GPU_LINK";
  const char* const asked = std::getenv(variable);
  const std::string_view link = asked == nullptr ? "" : asked;
  if (link == "nccl") return GpuLink::nccl;
  if (!link.empty())
    return fail(ErrorCode::bad_config, fmt::format("{} is `{}`", variable, link), variable,
                "set it to nccl, or leave it unset");
  if (!ranks_are_threads) return GpuLink::nccl;
  UK_TRY(reach, device::gpus_reach_one_another(rank_count));
  return reach ? GpuLink::copies : GpuLink::nccl;
}

Result<std::unique_ptr<DeviceCollectives>> join_gpus(Communicator& control,
                                                     std::shared_ptr<device::Gpu> gpu) {
  UK_TRY(link, link_of_gpus(control.transport() == "threads", control.world_size()));
  if (link == GpuLink::copies) return make_peers(control, std::move(gpu));
  UK_TRY(group, make_nccl(control));
  UK_TRY_VOID(connect(*group, control, *gpu));
  return group;
}

}  // namespace underkeel::comm
