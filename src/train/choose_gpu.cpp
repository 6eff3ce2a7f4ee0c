#include "train/choose_gpu.h"

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
  UK_TRY(link, comm::link_of_gpus(false, ranks_on_node));
  if (link == comm::GpuLink::host) return Choice{true, std::move(*gpus)};
  if (run.device == "cuda")
    return fail(ErrorCode::unsupported,
                fmt::format("{} ranks on a node with {} GPU{}: each rank needs one", ranks_on_node,
                            count, count == 1 ? "" : "s"),
                "underkeel.device",
                fmt::format("use {} rank{}, or set it to cpu; to try things out, "
                            "UNDERKEEL_GPU_LINK=host lets ranks share a GPU, slowly",
                            count, count == 1 ? "" : "s"));
  return Choice{false, std::move(*gpus)};
}

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
  return open_gpu_of(place.rank);
}

Result<std::shared_ptr<device::Gpu>> open_gpu_of(int rank_on_node) {
  UK_TRY(gpus, device::find_gpus());
  UK_TRY(gpu, device::open_gpu(rank_on_node % static_cast<int>(gpus.size())));
  return std::shared_ptr<device::Gpu>(std::move(gpu));
}

int most_ranks_on_card(int ranks_on_node) {
  const auto gpus = device::find_gpus();
  const int count = gpus ? static_cast<int>(gpus->size()) : 0;
  return count == 0 ? 1 : static_cast<int>(ceil_div(ranks_on_node, count));
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

}  // namespace underkeel::train
