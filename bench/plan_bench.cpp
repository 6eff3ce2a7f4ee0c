// How long it takes to plan, verify and simulate Llama-3.1-405B on 1,024 ranks at stage 3.

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "plan/listing.h"
#include "planner/planner.h"
#include "simulate/simulate.h"
#include "verify/verify.h"

namespace underkeel {
namespace {

planner::Request llama_405b() {
  spec::ModelSpec model;
  model.architecture = "LlamaForCausalLM";
  model.model_type = "llama";
  model.vocabulary = 128'256;
  model.width = 16'384;
  model.feed_forward = 53'248;
  model.layers = 126;
  model.query_heads = 128;
  model.key_heads = 8;
  model.head_width = 128;
  model.windows.assign(126, 0);
  planner::Request request{.model = model};
  request.world_size = 1024;
  request.stage = 3;
  request.weight_type = DType::bf16;
  request.max_rows = 8192;
  request.max_evaluation_rows = 8192;
  request.accumulation_steps = 4;
  return request;
}

void make_plan(benchmark::State& state) {
  const planner::Request request = llama_405b();
  std::size_t operations = 0;
  for (auto _ : state) {
    const plan::Plan plan = planner::make_plan(request);
    operations = 0;
    for (const plan::Segment& segment : plan.schedule.segments) operations += segment.ops.size();
  }
  state.counters["operations"] = static_cast<double>(operations);
}
BENCHMARK(make_plan)->Unit(benchmark::kMillisecond);

void verify_plan(benchmark::State& state) {
  const plan::Plan plan = planner::make_plan(llama_405b());
  const auto violations = verify::check(plan);
  UK_CHECK(violations.empty(), verify::to_text(plan.schedule, violations[0]));
  for (auto _ : state) benchmark::DoNotOptimize(verify::check(plan));
}
BENCHMARK(verify_plan)->Unit(benchmark::kMillisecond);

void simulate_plan(benchmark::State& state) {
  const plan::Plan plan = planner::make_plan(llama_405b());
  for (auto _ : state) benchmark::DoNotOptimize(simulate::simulate(plan, {}));
}
BENCHMARK(simulate_plan)->Unit(benchmark::kMillisecond);

void list_plan(benchmark::State& state) {
  const plan::Plan plan = planner::make_plan(llama_405b());
  for (auto _ : state) benchmark::DoNotOptimize(plan::listing(plan));
}
BENCHMARK(list_plan)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace underkeel

BENCHMARK_MAIN();
