#include "train/rank_device.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "comm/agree.h"
#include "train/rank_threads.h"

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

/// What is free on the card now, once every rank has learnt it of its own.
Result<std::int64_t> free_on_all(device::Gpu& card, comm::Communicator& control) {
  UK_TRY_VOID(control.barrier());
  const auto free_now = card.free_bytes();
  UK_TRY_VOID(comm::agree(control, free_now));
  return free_now;
}

Result<void> check_all_alike(comm::Communicator& control, bool has_gpu) {
  UK_TRY(with_gpus, of_all(control, has_gpu ? 1 : 0));
  const auto first = [&](double is_gpu) {
    return std::find(with_gpus.begin(), with_gpus.end(), is_gpu) - with_gpus.begin();
  };
  if (first(0) == control.world_size() || first(1) == control.world_size()) return {};
  return fail(
      ErrorCode::unsupported,
      fmt::format("rank {} has a GPU to run on, rank {} has none", first(1), first(0)),
      "underkeel.device",
      "give every rank the same underkeel.device and every node as many GPUs as ranks, or set "
      "it to cpu");
}

/// On the rank's own thread. `gpu`: null for the CPU; `ranks_on_card` share it. Free bytes and what joining took are those of
/// all ranks. Every step is agreed on, so that all ranks meet in the same calls.
Result<Started> start_rank(Result<std::shared_ptr<device::Gpu>> gpu, int ranks_on_card,
                           comm::Communicator& control, comm::Communicator& link) {
  Started started;
  const auto take = [&]() -> Result<void> {
    if (!gpu) return tl::unexpected(gpu.error());
    started.device.gpu = *std::move(gpu);
    return started.device.gpu ? started.device.gpu->use() : Result<void>{};
  };
  UK_TRY_VOID(comm::agree(control, take()));
  UK_TRY_VOID(check_all_alike(control, started.device.gpu != nullptr));
  if (!started.device.gpu) return started;
  device::Gpu& card = *started.device.gpu;
  UK_TRY(free_before, free_on_all(card, control));
  if (control.world_size() > 1) {
    UK_TRY(joined, comm::join_gpus(control, link, started.device.gpu));
    started.device.collectives = std::move(joined);
  }
  const auto measure = [&]() -> Result<void> {
    UK_TRY(free_now, free_on_all(card, control));
    UK_TRY(left, of_all(control, static_cast<double>(free_now / ranks_on_card)));
    UK_TRY(taken, of_all(control, static_cast<double>(free_before - free_now)));
    started.free_bytes = static_cast<std::int64_t>(*std::min_element(left.begin(), left.end()));
    if (control.world_size() > 1)
      started.joining_bytes = std::max<std::int64_t>(
          0, static_cast<std::int64_t>(*std::max_element(taken.begin(), taken.end())));
    return {};
  };
  if (Result<void> measured = measure(); !measured) {
    // Taking the group down would wait for ranks that are lost.
    if (started.device.collectives) started.device.collectives->abort();
    return tl::unexpected(measured.error());
  }
  return started;
}

}  // namespace

void RankDevices::abort() {
  for (RankDevice& rank : ranks)
    if (rank.collectives) rank.collectives->abort();
}

Result<RankDevices> start_devices(const spec::RunConfig& run, PlaceOnNode place,
                                  std::span<const std::unique_ptr<comm::Communicator>> controls,
                                  std::span<const std::unique_ptr<comm::Communicator>> links) {
  RankDevices devices;
  auto first = choose_gpu(run, place, devices.notes);
  const bool are_threads = controls.size() > 1;
  if (are_threads && !first) return tl::unexpected(first.error());
  if (are_threads && !*first) {
    // One process decides for all of its ranks: nothing is to be started or agreed on.
    devices.ranks.resize(controls.size());
    return devices;
  }
  for (const auto* group : {&controls, &links})
    for (const auto& end : *group) end->set_time_limit(run.collective_time_limit_s);
  const int ranks_on_card = most_ranks_on_card(place.rank_count);
  std::vector<Result<Started>> started(controls.size());
  if (!are_threads) {
    started.front() =
        start_rank(std::move(first), ranks_on_card, *controls.front(), *links.front());
  } else {
    const auto abort = [&](std::size_t i, const Error& reason) {
      controls[i]->abort(reason);
      links[i]->abort(reason);
    };
    RankThreads threads;
    const Result<void> all_run = threads.start(controls.size(), [&](std::size_t i) {
      started[i] =
          start_rank(i == 0 ? std::move(first) : open_gpu_of(place.rank + static_cast<int>(i)),
                     ranks_on_card, *controls[i], *links[i]);
      if (!started[i]) abort(i, started[i].error());
    });
    if (!all_run)
      for (std::size_t i = 0; i < controls.size(); ++i) abort(i, all_run.error());
    threads.join();
    UK_TRY_VOID(all_run);
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
  machine.gpu_joining_bytes = devices.joining_bytes;
  return machine;
}

}  // namespace underkeel::train
