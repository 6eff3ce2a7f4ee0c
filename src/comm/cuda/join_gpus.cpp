#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "comm/device_collectives.h"

namespace underkeel::comm {

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
  return link == GpuLink::copies ? make_peers(control, std::move(gpu)) : make_nccl(control);
}

}  // namespace underkeel::comm
