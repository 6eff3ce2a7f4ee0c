#include "train/bench_step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/check.h"
#include "base/nearest_word.h"
#include "base/random.h"
#include "comm/communicator.h"
#include "exec/executor.h"
#include "kernels/kernels.h"
#include "planner/fit.h"
#include "train/choose_gpu.h"
#include "train/learning_rate.h"
#include "verify/verify.h"

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

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

plan::SegmentKind kind_of(std::int64_t micro, std::int64_t count) {
  if (count == 1) return plan::SegmentKind::micro_only;
  if (micro == 0) return plan::SegmentKind::micro_first;
  return micro + 1 == count ? plan::SegmentKind::micro_last : plan::SegmentKind::micro_middle;
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

Result<BenchStepReport> bench_step(const BenchStepRequest& request) {
  BenchStepReport report;
  const double began_s = now_s();
  spec::RunConfig run = request.run;
  run.sequences_per_micro_batch = request.sequences_per_micro_batch;
  run.data.cutoff_tokens = request.sequence_tokens;
  run.accumulation_steps = request.accumulation_steps;
  run.evaluation.strategy = spec::Cadence::no;
  std::vector<std::string> notes;
  UK_TRY(gpu, choose_gpu(run, 1, notes));
  spec::HardwareSpec machine = spec::this_machine();
  if (gpu) {
    UK_TRY(with_its_gpu, with_gpu(machine, *gpu));
    machine = std::move(with_its_gpu);
  }
  report.device = gpu ? gpu->facts().name : fmt::format("{} CPU cores", machine.cores);
  const planner::FitQuestion question{
      .model = request.model, .run = run, .machine = machine, .placement = {}};
  const plan::Plan plan = planner::make_plan_on(question);
  UK_TRY_VOID(planner::check_fit(plan, question));
  for (const verify::Violation& violation : verify::check(plan))
    UK_CHECK(false, verify::to_text(plan.schedule, violation));

  std::int64_t free_before = 0;
  if (gpu) {
    UK_TRY(bytes, gpu->free_bytes());
    free_before = bytes;
  }
  const auto group = comm::make_single();
  exec::ExecutorOptions options;
  options.thread_count = run.threads_per_rank > 0 ? run.threads_per_rank : machine.cores;
  options.gpu = gpu.get();
  UK_TRY(executor,
         exec::Executor::make(plan, gpu ? kernels::cuda_kernels() : kernels::cpu_kernels(), *group,
                              options));
  std::int64_t free_sealed = 0;
  if (gpu) {
    UK_TRY(bytes, gpu->free_bytes());
    free_sealed = bytes;
  }
  RepeatedSource source(request.model);
  exec::Inputs load;
  load.source = &source;
  UK_TRY_VOID(executor->run(plan::SegmentKind::load, load));
  report.start_s = now_s() - began_s;

  std::vector<Batch> batches;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < request.accumulation_steps; ++i) {
    batches.emplace_back(request, i);
    targets += std::count_if(batches.back().targets.begin(), batches.back().targets.end(),
                             [](std::int32_t target) { return target >= 0; });
  }
  double step_flops = 0;
  for (std::int64_t step = 0; step <= request.steps; ++step) {
    const double step_began_s = now_s();
    for (std::int64_t i = 0; i < request.accumulation_steps; ++i) {
      const Batch& batch = batches[static_cast<std::size_t>(i)];
      exec::Inputs inputs;
      inputs.tokens = batch.tokens;
      inputs.targets = batch.targets;
      inputs.positions = batch.positions;
      inputs.sequence_starts = batch.starts;
      inputs.gradient_scale = static_cast<float>(1.0 / static_cast<double>(targets));
      const plan::SegmentKind kind = kind_of(i, request.accumulation_steps);
      UK_TRY_VOID(executor->run(kind, inputs));
      if (step == 0) step_flops += flops_of(plan.schedule, kind);
    }
    exec::Inputs update;
    update.step_values = step_values(run.optimizer, step, request.steps + 1);
    UK_TRY(outputs, executor->run(plan::SegmentKind::update, update));
    if (step > 0) report.step_s.push_back(now_s() - step_began_s);
    report.losses.push_back(outputs.totals[plan::total_loss] / static_cast<double>(targets));
  }
  std::vector<double> sorted = report.step_s;
  std::sort(sorted.begin(), sorted.end());
  report.median_step_s = sorted[sorted.size() / 2];
  report.tokens_per_step =
      request.accumulation_steps * request.sequences_per_micro_batch * request.sequence_tokens;
  report.tokens_per_s = static_cast<double>(report.tokens_per_step) / report.median_step_s;
  report.flops_per_s = step_flops / report.median_step_s;
  report.device_bytes = plan.layout.size_bytes[index(plan::MemorySpace::device)];
  if (gpu) {
    UK_TRY(free_now, gpu->free_bytes());
    report.driver_bytes = free_before - free_now;
    report.driver_growth_bytes = free_sealed - free_now;
  }
  return report;
}

}  // namespace underkeel::train
