#include "train/choose_gpu.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::train {

namespace {

// Whether the run goes to a GPU, when there is one.
Result<bool> wants_gpu(const spec::RunConfig& run, int world_size) {
  if (run.device == "cpu") return false;
  if (world_size == 1) return true;
  if (run.device == "cuda")
    return fail(ErrorCode::unsupported,
                fmt::format("{} ranks on GPUs are not built yet", world_size), "underkeel.device",
                "use one rank, or set it to cpu");
  return false;
}

// Context and libraries take about this much between asking what is free and the end of start-up; fit.h
// sets 1 GiB aside of a card's whole memory.
constexpr std::int64_t taken_at_start_bytes = 512 * mebibyte;

}  // namespace

Result<std::shared_ptr<device::Gpu>> choose_gpu(const spec::RunConfig& run, int world_size,
                                                std::vector<std::string>& notes) {
  UK_TRY(wanted, wants_gpu(run, world_size));
  if (run.device == "cpu") return std::shared_ptr<device::Gpu>();
  const auto gpus = device::find_gpus();
  if (!gpus) {
    if (run.device == "auto") return std::shared_ptr<device::Gpu>();
    return tl::unexpected(gpus.error());
  }
  if (!wanted) {
    notes.push_back(
        fmt::format("device auto: the CPU, since {} ranks on GPUs are not built yet ({} "
                    "is there)",
                    world_size, gpus->front().name));
    return std::shared_ptr<device::Gpu>();
  }
  UK_TRY(gpu, device::open_gpu(0));
  return std::shared_ptr<device::Gpu>(std::move(gpu));
}

Result<spec::HardwareSpec> machine_for(const spec::RunConfig& run, int world_size) {
  spec::HardwareSpec machine = spec::this_machine();
  UK_TRY(wanted, wants_gpu(run, world_size));
  if (!wanted) return machine;
  const auto gpus = device::find_gpus();
  if (!gpus && run.device == "auto") return machine;
  if (!gpus) return tl::unexpected(gpus.error());
  machine.gpus_per_node = static_cast<std::int64_t>(gpus->size());
  machine.gpu_name = gpus->front().name;
  machine.gpu_mem_bytes = gpus->front().total_bytes;
  return machine;
}

Result<spec::HardwareSpec> with_gpu(spec::HardwareSpec machine, device::Gpu& gpu) {
  UK_TRY(free_now, gpu.free_bytes());
  machine.gpus_per_node = 1;
  machine.gpu_name = gpu.facts().name;
  machine.gpu_mem_bytes = std::min(gpu.facts().total_bytes, free_now + taken_at_start_bytes);
  return machine;
}

}  // namespace underkeel::train
