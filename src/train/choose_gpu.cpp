#include "train/choose_gpu.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "comm/device_collectives.h"

namespace underkeel::train {

namespace {

struct Choice {
  bool is_gpu = false;
  std::vector<device::GpuFacts> gpus;
};

// Whether the run goes to GPUs, one for each rank of the node.
Result<Choice> choose(const spec::RunConfig& run, int ranks_on_node) {
  if (run.device == "cpu") return Choice{};
  auto gpus = device::find_gpus();
  if (!gpus && run.device == "auto") return Choice{};
  if (!gpus) return tl::unexpected(gpus.error());
  const auto count = static_cast<int>(gpus->size());
  if (count >= ranks_on_node) return Choice{true, std::move(*gpus)};
  if (run.device == "cuda")
    return fail(ErrorCode::unsupported,
                fmt::format("{} ranks on a node with {} GPU{}: each rank needs one", ranks_on_node,
                            count, count == 1 ? "" : "s"),
                "underkeel.device",
                fmt::format("use {} rank{}, or set it to cpu", count, count == 1 ? "" : "s"));
  return Choice{false, std::move(*gpus)};
}

// Context and libraries take about this much between asking what is free and the end of start-up; fit.h
// sets 1 GiB aside of a card's whole memory.
constexpr std::int64_t taken_at_start_bytes = 512 * mebibyte;
// Buffers and connections of NCCL between GPUs of a node (measured with 2.28 on two H200).
constexpr std::int64_t taken_by_nccl_bytes = 768 * mebibyte;

}  // namespace

Result<std::shared_ptr<device::Gpu>> choose_gpu(const spec::RunConfig& run, PlaceOnNode place,
                                                std::vector<std::string>& notes) {
  UK_TRY(choice, choose(run, place.rank_count));
  if (!choice.is_gpu) {
    if (!choice.gpus.empty())
      notes.push_back(
          fmt::format("device auto: the CPU, since {} ranks would share {} ({})", place.rank_count,
                      choice.gpus.size() == 1 ? std::string("one GPU")
                                              : fmt::format("{} GPUs", choice.gpus.size()),
                      choice.gpus.front().name));
    return std::shared_ptr<device::Gpu>();
  }
  UK_TRY(gpu, device::open_gpu(place.rank));
  return std::shared_ptr<device::Gpu>(std::move(gpu));
}

Result<spec::HardwareSpec> machine_for(const spec::RunConfig& run, int ranks_on_node) {
  spec::HardwareSpec machine = spec::this_machine();
  UK_TRY(choice, choose(run, ranks_on_node));
  if (!choice.is_gpu) return machine;
  machine.gpus_per_node = static_cast<std::int64_t>(choice.gpus.size());
  machine.gpu_name = choice.gpus.front().name;
  machine.gpu_mem_bytes = choice.gpus.front().total_bytes;
  return machine;
}

Result<spec::HardwareSpec> with_gpu(spec::HardwareSpec machine, device::Gpu& gpu, int ranks_on_node,
                                    bool ranks_are_threads) {
  UK_TRY(link, comm::link_of_gpus(ranks_are_threads, ranks_on_node));
  const bool joins_with_nccl = ranks_on_node > 1 && link == comm::GpuLink::nccl;
  UK_TRY(free_now, gpu.free_bytes());
  machine.gpus_per_node = ranks_on_node;
  machine.gpu_name = gpu.facts().name;
  machine.gpu_mem_bytes = std::min(gpu.facts().total_bytes, free_now + taken_at_start_bytes) -
                          (joins_with_nccl ? taken_by_nccl_bytes : 0);
  return machine;
}

}  // namespace underkeel::train
