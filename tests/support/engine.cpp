#include "support/engine.h"

#include <stdexcept>
#include <thread>

#include "support/value_of.h"
#include "tensor/dtype.h"
#include "train/model_source.h"

namespace underkeel::test {

void run_ranks(const plan::Plan& plan, const EngineOptions& options,
               const std::function<void(Rank&)>& body) {
  const int world = static_cast<int>(plan.world_size);
  const auto collectives = comm::make_thread_group(world);
  const auto controls = comm::make_thread_group(world);
  const auto links = comm::make_thread_group(world);
  const kernels::KernelTable& kernels =
      options.kernels ? *options.kernels : kernels::reference_kernels();
  std::vector<std::string> failures(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      try {
        exec::ExecutorOptions own = options.executor;
        std::shared_ptr<device::Gpu> gpu;
        std::unique_ptr<comm::DeviceCollectives> joined;
        if (options.on_gpus) {
          gpu = value_of(device::open_gpu(r));
          if (world > 1) joined = value_of(comm::join_gpus(*controls[i], *links[i], gpu));
          own.gpu = gpu.get();
          own.device_collectives = joined.get();
        }
        const auto executor = value_of(exec::Executor::make(plan, kernels, *collectives[i], own));
        Rank rank{plan, *executor, *controls[i], r};
        body(rank);
        value_of(executor->drain());
      } catch (const std::exception& error) {
        failures[i] = error.what();
        const Error reason{ErrorCode::peer_lost, failures[i], "", ""};
        collectives[i]->abort(reason);
        controls[i]->abort(reason);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures)
    if (!failure.empty()) throw std::runtime_error(failure);
}

exec::Inputs inputs_of(const FlatBatch& batch, std::int64_t window_targets) {
  exec::Inputs inputs;
  inputs.tokens = batch.tokens;
  inputs.targets = batch.targets;
  inputs.positions = batch.positions;
  inputs.sequence_starts = batch.sequence_starts;
  inputs.gradient_scale = static_cast<float>(1.0 / static_cast<double>(window_targets));
  return inputs;
}

void load_weights(Rank& rank, const std::filesystem::path& model_folder) {
  io::FileSystem files;
  train::ModelFolderSource source(files,
                                  value_of(io::open_model_files(files, model_folder.string())));
  exec::Inputs inputs;
  inputs.source = &source;
  value_of(rank.executor.run(plan::SegmentKind::load, inputs));
}

std::vector<float> whole_values(const Rank& rank, const std::string& parameter,
                                plan::BufferId plan::Unit::*what) {
  for (const plan::Unit& unit : rank.plan.schedule.units)
    for (const plan::UnitTensor& tensor : unit.tensors) {
      if (tensor.name != parameter) continue;
      const plan::Buffer& buffer = rank.plan.schedule.buffer(unit.*what);
      const std::vector<std::byte> bytes = rank.executor.read_buffer(unit.*what);
      std::vector<float> values(static_cast<std::size_t>(tensor.element_count));
      train::widen(bytes.data() + bytes_of(buffer.type, tensor.begin), buffer.type,
                   tensor.element_count, values.data());
      return values;
    }
  throw std::runtime_error("no parameter " + parameter);
}

planner::Request request_for(const spec::ModelSpec& model, std::int64_t max_rows) {
  planner::Request request{.model = model};
  request.max_rows = max_rows;
  request.recompute = spec::Recompute::none;
  return request;
}

}  // namespace underkeel::test
