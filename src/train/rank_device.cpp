#include "train/rank_device.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "comm/agree.h"

namespace underkeel::train {

namespace {

// Context and libraries take about this much between asking what is free and the end of start-up; fit.h
// sets 1 GiB aside of a card's whole memory.
constexpr std::int64_t taken_at_start_bytes = 512 * mebibyte;

struct Started {
  RankDevice device;
  std::int64_t free_bytes = 0;
  std::int64_t joining_bytes = 0;
};

/// One value of every rank, in rank order. Byte counts are exact below 2^53.
Result<std::vector<double>> of_all(comm::Communicator& control, double own) {
  std::vector<double> all(static_cast<std::size_t>(control.world_size()));
  UK_TRY_VOID(control.all_gather_values(std::span(&own, 1), all));
  return all;
}

/// On the rank's own thread. `gpu`: null for the CPU. Free bytes and what joining took are those of all ranks.
Result<Started> start_rank(Result<std::shared_ptr<device::Gpu>> gpu, comm::Communicator& control) {
  UK_TRY_VOID(comm::agree(control, gpu ? Result<void>{} : tl::unexpected(gpu.error())));
  Started started;
  started.device.gpu = *std::move(gpu);
  const bool has_gpu = started.device.gpu != nullptr;
  UK_TRY(with_gpus, of_all(control, has_gpu ? 1 : 0));
  if (const auto other = std::find(with_gpus.begin(), with_gpus.end(), has_gpu ? 0 : 1);
      other != with_gpus.end())
    return fail(
        ErrorCode::unsupported,
        fmt::format("rank {} has {}, rank {} has {}", control.rank(), has_gpu ? "a GPU" : "none",
                    other - with_gpus.begin(), has_gpu ? "none" : "a GPU"),
        "underkeel.device", "give every node as many GPUs as ranks, or set it to cpu");
  if (!has_gpu) return started;
  device::Gpu& card = *started.device.gpu;
  UK_TRY_VOID(card.use());
  UK_TRY(free_before, card.free_bytes());
  if (control.world_size() > 1) {
    UK_TRY(joined, comm::join_gpus(control, started.device.gpu));
    started.device.collectives = std::move(joined);
  }
  UK_TRY(free_now, card.free_bytes());
  UK_TRY(left, of_all(control, static_cast<double>(free_now)));
  UK_TRY(taken, of_all(control, static_cast<double>(free_before - free_now)));
  started.free_bytes = static_cast<std::int64_t>(*std::min_element(left.begin(), left.end()));
  started.joining_bytes = static_cast<std::int64_t>(*std::max_element(taken.begin(), taken.end()));
  return started;
}

}  // namespace

void RankDevices::abort() {
  for (RankDevice& rank : ranks)
    if (rank.collectives) rank.collectives->abort();
}

Result<RankDevices> start_devices(const spec::RunConfig& run, PlaceOnNode place,
                                  std::span<const std::unique_ptr<comm::Communicator>> controls) {
  RankDevices devices;
  auto first = choose_gpu(run, place, devices.notes);
  std::vector<Result<Started>> started(controls.size());
  if (controls.size() == 1) {
    started.front() = start_rank(std::move(first), *controls.front());
  } else {
    if (!first) return tl::unexpected(first.error());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < controls.size(); ++i)
      threads.emplace_back([&, i] {
        const auto open_own = [&]() -> Result<std::shared_ptr<device::Gpu>> {
          if (i == 0 || !*first) return *first;
          UK_TRY(own, device::open_gpu(place.rank + static_cast<int>(i)));
          return std::shared_ptr<device::Gpu>(std::move(own));
        };
        started[i] = start_rank(open_own(), *controls[i]);
        if (!started[i]) controls[i]->abort(started[i].error());
      });
    for (std::thread& thread : threads) thread.join();
  }
  for (Result<Started>& each : started) {
    if (!each) return tl::unexpected(std::move(each).error());
    devices.free_bytes = each->free_bytes;
    devices.joining_bytes = each->joining_bytes;
    devices.ranks.push_back(std::move(each->device));
  }
  if (devices.joining_bytes >= mebibyte)
    devices.notes.push_back(
        fmt::format("joining the GPUs took {} of a card before the plan was made",
                    format_bytes(devices.joining_bytes)));
  return devices;
}

spec::HardwareSpec with_gpus(spec::HardwareSpec machine, const RankDevices& devices,
                             int ranks_on_node) {
  if (!devices.are_gpus()) return machine;
  const device::GpuFacts& facts = devices.ranks.front().gpu->facts();
  machine.gpus_per_node = ranks_on_node;
  machine.gpu_name = facts.name;
  machine.gpu_mem_bytes = std::min(facts.total_bytes, devices.free_bytes + taken_at_start_bytes);
  return machine;
}

}  // namespace underkeel::train
