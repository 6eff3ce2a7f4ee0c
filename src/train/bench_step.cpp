#include "train/bench_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/nearest_word.h"
#include "base/random.h"
#include "comm/communicator.h"
#include "exec/executor.h"
#include "kernels/kernels.h"
#include "planner/fit.h"
#include "simulate/simulate.h"
#include "train/learning_rate.h"
#include "train/matmul_memory.h"
#include "train/rank_device.h"
#include "train/rank_threads.h"

namespace underkeel::train {

namespace {

struct Shape {
  std::string_view name;
  std::string_view config;
};
constexpr std::array shapes = {
    Shape{"llama-2-7b",
          R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
              "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
              "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096,
              "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false})"},
    Shape{"llama-3.1-8b",
          R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
              "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
              "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
              "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
              "tie_word_embeddings": false})"},
    Shape{"llama-3.2-1b",
          R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
              "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
              "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
              "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
              "hidden_act": "silu", "tie_word_embeddings": true})"},
    Shape{"qwen2.5-7b",
          R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584,
              "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
              "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 131072,
              "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu",
              "tie_word_embeddings": false})"}};

/// Normal numbers of deviation 0.02, norms of one: a block of them over and over, since a large model's
/// weights would take longer to draw than to train on. Never zeros: products of zeros run faster.
class RepeatedSource final : public exec::StateSource {
 public:
  explicit RepeatedSource(const spec::ModelSpec& model) : block_(std::size_t{1} << 20) {
    for (std::size_t i = 0; i + 1 < block_.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log(1 - random_uniform(11, 0, i)));
      const double angle = 6.283185307179586 * random_uniform(11, 1, i);
      block_[i] = static_cast<float>(0.02 * radius * std::cos(angle));
      block_[i + 1] = static_cast<float>(0.02 * radius * std::sin(angle));
    }
    for (const spec::Parameter& parameter : spec::parameters_of(model))
      if (parameter.role == spec::ParameterRole::norm) norms_.push_back(parameter.name);
    std::sort(norms_.begin(), norms_.end());
  }
  Result<void> read(const plan::UnitTensor& tensor, plan::StatePart, std::int64_t begin,
                    std::int64_t end, float* into) override {
    const auto count = static_cast<std::size_t>(end - begin);
    if (std::binary_search(norms_.begin(), norms_.end(), tensor.name)) {
      std::fill_n(into, count, 1.0f);
      return {};
    }
    // Tensors begin at different places of the block, so that no two are equal.
    std::size_t at =
        (std::hash<std::string>{}(tensor.name) + static_cast<std::size_t>(begin)) % block_.size();
    for (std::size_t done = 0; done < count;) {
      const std::size_t here = std::min(count - done, block_.size() - at);
      std::copy_n(block_.data() + at, here, into + done);
      done += here;
      at = 0;
    }
    return {};
  }

 private:
  std::vector<float> block_;
  std::vector<std::string> norms_;
};

/// One micro-batch of random tokens; all of them are trained on but each sequence's last.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> starts;

  Batch(const BenchStepRequest& request, std::int64_t number) {
    for (std::int64_t sequence = 0; sequence < request.sequences_per_micro_batch; ++sequence) {
      starts.push_back(static_cast<std::int32_t>(tokens.size()));
      for (std::int64_t i = 0; i < request.sequence_tokens; ++i) {
        const auto place = static_cast<std::uint64_t>(tokens.size());
        tokens.push_back(
            static_cast<std::int32_t>(random_word(5, static_cast<std::uint32_t>(number), place) %
                                      static_cast<std::uint32_t>(request.model.vocabulary)));
        positions.push_back(static_cast<std::int32_t>(i));
      }
    }
    starts.push_back(static_cast<std::int32_t>(tokens.size()));
    targets.assign(tokens.begin() + 1, tokens.end());
    targets.push_back(kernels::ignore_target);
    for (const std::int32_t start : starts)
      if (start > 0) targets[static_cast<std::size_t>(start) - 1] = kernels::ignore_target;
  }
};

plan::SegmentKind kind_of(std::int64_t micro, std::int64_t count) {
  if (count == 1) return plan::SegmentKind::micro_only;
  if (micro == 0) return plan::SegmentKind::micro_first;
  return micro + 1 == count ? plan::SegmentKind::micro_last : plan::SegmentKind::micro_middle;
}

/// Of f16: what a run starts with by default would overflow at random weights, and every such step is passed over.
constexpr float f16_loss_scale = 1024;

exec::Inputs inputs_of(const Batch& batch, double targets) {
  exec::Inputs inputs;
  inputs.tokens = batch.tokens;
  inputs.targets = batch.targets;
  inputs.positions = batch.positions;
  inputs.sequence_starts = batch.starts;
  inputs.gradient_scale = static_cast<float>(1.0 / targets);
  return inputs;
}

double flops_of(const plan::Schedule& schedule, plan::SegmentKind kind) {
  double flops = 0;
  if (const plan::Segment* segment = schedule.find(kind))
    for (const plan::Op& op : segment->ops) flops += op.cost.flops;
  return flops;
}

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.emplace_back(shape.name);
  return names;
}

Result<spec::ModelSpec> shape_of(const std::string& name) {
  for (const Shape& shape : shapes)
    if (shape.name == name) return spec::parse_model_config(shape.config, shape.name);
  const std::string nearest = nearest_word(name, shape_names());
  return fail(ErrorCode::bad_config, fmt::format("unknown shape `{}`", name), "--shape",
              nearest.empty() ? fmt::format("write one of {}", fmt::join(shape_names(), ", "))
                              : fmt::format("the nearest is `{}`", nearest));
}

namespace {

/// One rank of the bench, on a thread of its own when there are several.
class BenchRank {
 public:
  BenchRank(const BenchStepRequest& request, const plan::Plan& plan, comm::Communicator& ranks,
            comm::Communicator& control)
      : request_(request), plan_(plan), ranks_(ranks), control_(control) {}

  Result<BenchStepReport> run(RankDevice device, int thread_count) {
    const double began_s = steady_now_s();
    UK_TRY_VOID(prepare(std::move(device), thread_count));
    report_.start_s = steady_now_s() - began_s;
    UK_TRY_VOID(take_steps());
    finish();
    if (gpu_) {
      UK_TRY(free_now, gpu_->free_bytes());
      report_.driver_bytes = free_before_ - free_now;
      report_.driver_growth_bytes = free_sealed_ - free_now;
    }
    if (is_alone_on_gpu() && request_.floor_s > 0) UK_TRY_VOID(measure_floor());
    return std::move(report_);
  }

 private:
  Result<void> prepare(RankDevice device, int thread_count) {
    gpu_ = std::move(device.gpu);
    device_collectives_ = std::move(device.collectives);
    if (gpu_) {
      UK_TRY_VOID(gpu_->use());
      UK_TRY(bytes, gpu_->free_bytes());
      free_before_ = bytes;
    }
    exec::ExecutorOptions options;
    options.thread_count = thread_count;
    options.gpu = gpu_.get();
    options.graphs = request_.graphs;
    options.device_collectives = device_collectives_.get();
    io::FileSystem files;
    if (gpu_ && ranks_.rank() == 0) {
      std::vector<std::string> notes;
      options.matmul_timing_s = request_.matmul_timing_s;
      UK_TRY_VOID(
          recall_matmuls(files, nullptr, matmul_cache_folder(), options.matmul_timing_s, notes));
    }
    UK_TRY(made,
           exec::Executor::make(plan_, gpu_ ? kernels::cuda_kernels() : kernels::cpu_kernels(),
                                ranks_, options));
    executor_ = std::move(made);
    report_.graph_count = executor_->graph_count();
    if (options.matmul_timing_s > 0) keep_matmuls(files, matmul_cache_folder());
    if (gpu_) {
      UK_TRY(bytes, gpu_->free_bytes());
      free_sealed_ = bytes;
    }
    RepeatedSource source(request_.model);
    exec::Inputs load;
    load.source = &source;
    UK_TRY_VOID(executor_->run(plan::SegmentKind::load, load));
    return {};
  }

  Result<void> take_steps() {
    std::vector<Batch>& batches = batches_;
    std::int64_t targets = 0;
    for (std::int64_t i = 0; i < request_.accumulation_steps; ++i) {
      batches.emplace_back(request_, ranks_.rank() * request_.accumulation_steps + i);
      targets += std::count_if(batches.back().targets.begin(), batches.back().targets.end(),
                               [](std::int32_t target) { return target >= 0; });
    }
    targets *= ranks_.world_size();  // the same on every rank
    const float loss_scale = request_.run.precision == spec::Precision::f16 ? f16_loss_scale : 1.0f;
    for (std::int64_t step = 0; step <= request_.steps; ++step) {
      const double began_s = steady_now_s();
      for (std::int64_t i = 0; i < request_.accumulation_steps; ++i) {
        const Batch& batch = batches[static_cast<std::size_t>(i)];
        const exec::Inputs inputs =
            inputs_of(batch, static_cast<double>(targets) / static_cast<double>(loss_scale));
        const plan::SegmentKind kind = kind_of(i, request_.accumulation_steps);
        UK_TRY_VOID(executor_->run(kind, inputs));
        if (step == 0) step_flops_ += flops_of(plan_.schedule, kind);
      }
      exec::Inputs update;
      update.step_values = step_values(request_.run.optimizer, step, request_.steps + 1);
      update.loss_scale = loss_scale;
      UK_TRY(outputs, executor_->run(plan::SegmentKind::update, update));
      if (step > 0) report_.step_s.push_back(steady_now_s() - began_s);
      double loss = 0;
      for (int rank = 0; rank < ranks_.world_size(); ++rank)
        loss +=
            outputs.totals[static_cast<std::size_t>(rank) * plan::total_count + plan::total_loss];
      report_.losses.push_back(loss / static_cast<double>(targets));
      if (outputs.clip[2] == 0) ++report_.skipped_steps;
    }
    return {};
  }

  bool is_alone_on_gpu() const { return gpu_ != nullptr && ranks_.world_size() == 1; }

  /// In as few pieces as numbers stay finite in.
  Result<void> measure_floor() {
    for (const int pieces : {1, 4, 16, 64}) {
      report_.floor_pieces = pieces;
      UK_TRY(is_finite, measure_floor(pieces));
      if (is_finite) return {};
    }
    report_.floor_overflowed = true;
    return {};
  }

  /// Rounds of all micro-steps for floor_s seconds, the first third of which is for clocks and power to settle; a mean
  /// of the rest. The first round looks for overflows; false: there are some.
  Result<bool> measure_floor(int pieces) {
    const double began_s = steady_now_s();
    double total_s = 0;
    std::int64_t rounds = 0;
    for (bool is_first = true; steady_now_s() - began_s < request_.floor_s || rounds == 0;
         is_first = false) {
      const bool counts = !is_first && steady_now_s() - began_s >= request_.floor_s / 3;
      for (std::size_t i = 0; i < batches_.size(); ++i) {
        const plan::SegmentKind kind =
            kind_of(static_cast<std::int64_t>(i), static_cast<std::int64_t>(batches_.size()));
        UK_TRY(took, executor_->run_products(kind, inputs_of(batches_[i], 1),
                                             {.pieces = pieces, .looks_for_overflow = is_first}));
        if (took.overflowed) return false;
        if (counts) total_s += took.seconds;
      }
      if (counts) ++rounds;
    }
    report_.floor_step_s = total_s / static_cast<double>(rounds);
    return true;
  }

  void finish() {
    std::vector<double> sorted = report_.step_s;
    std::sort(sorted.begin(), sorted.end());
    report_.median_step_s = sorted[sorted.size() / 2];
    report_.tokens_per_step = ranks_.world_size() * request_.accumulation_steps *
                              request_.sequences_per_micro_batch * request_.sequence_tokens;
    report_.tokens_per_s = static_cast<double>(report_.tokens_per_step) / report_.median_step_s;
    report_.flops_per_s = step_flops_ / report_.median_step_s;
    report_.device_bytes = plan_.layout.size_bytes[index(plan::MemorySpace::device)];
  }

  const BenchStepRequest& request_;
  const plan::Plan& plan_;
  comm::Communicator& ranks_;
  comm::Communicator& control_;
  std::shared_ptr<device::Gpu> gpu_;
  std::unique_ptr<comm::DeviceCollectives> device_collectives_;
  std::unique_ptr<exec::Executor> executor_;
  std::vector<Batch> batches_;
  std::int64_t free_before_ = 0;
  std::int64_t free_sealed_ = 0;
  double step_flops_ = 0;
  BenchStepReport report_;
};

}  // namespace

Result<BenchStepReport> bench_step(const BenchStepRequest& asked) {
  BenchStepRequest request = asked;
  spec::RunConfig& run = request.run;
  run.sequences_per_micro_batch = request.sequences_per_micro_batch;
  run.data.cutoff_tokens = request.sequence_tokens;
  run.accumulation_steps = request.accumulation_steps;
  run.evaluation.strategy = spec::Cadence::no;
  const auto ranks = comm::make_thread_group(request.ranks);
  const auto control = comm::make_thread_group(request.ranks);
  const auto links = comm::make_thread_group(request.ranks);
  UK_TRY(devices, start_devices(run, {.rank = 0, .rank_count = request.ranks}, control, links));
  const std::shared_ptr<device::Gpu> gpu = devices.ranks.front().gpu;
  const spec::HardwareSpec machine = with_gpus(spec::this_machine(), devices, request.ranks);
  const planner::FitQuestion question{
      .model = request.model,
      .run = run,
      .machine = machine,
      .placement = {.world_size = request.ranks, .ranks_on_node = request.ranks}};
  const plan::Plan plan = planner::make_plan_on(question);
  UK_TRY_VOID(planner::check_fit(plan, question));

  const int thread_count =
      run.threads_per_rank > 0 ? run.threads_per_rank : std::max(1, machine.cores / request.ranks);
  std::vector<Result<BenchStepReport>> reports(static_cast<std::size_t>(request.ranks));
  const auto give_up = [&](std::size_t rank, const Error& reason) {
    ranks[rank]->abort(reason);
    control[rank]->abort(reason);
  };
  RankThreads threads;
  const Result<void> all_run = threads.start(reports.size(), [&](std::size_t rank) {
    reports[rank] = BenchRank(request, plan, *ranks[rank], *control[rank])
                        .run(std::move(devices.ranks[rank]), thread_count);
    if (!reports[rank]) give_up(rank, reports[rank].error());
  });
  if (!all_run)
    for (std::size_t rank = 0; rank < reports.size(); ++rank) give_up(rank, all_run.error());
  threads.join();
  UK_TRY_VOID(all_run);
  BenchStepReport report;
  for (Result<BenchStepReport>& each : reports) {
    if (!each) return tl::unexpected(std::move(each).error());
    // The card with the least room is the one to look at.
    each->driver_bytes = std::max(each->driver_bytes + devices.joining_bytes, report.driver_bytes);
    each->driver_growth_bytes = std::max(each->driver_growth_bytes, report.driver_growth_bytes);
    report = *std::move(each);
  }
  report.device =
      gpu ? fmt::format("{}{}", request.ranks > 1 ? fmt::format("{} x ", request.ranks) : "",
                        gpu->facts().name)
          : fmt::format("{} CPU cores", machine.cores);
  if (!request.hardware.empty()) {
    UK_TRY(rated, spec::read_hardware_file(request.hardware));
    report.predicted_step_s = simulate::simulate(plan, rated).step_s;
  }
  return report;
}

}  // namespace underkeel::train
