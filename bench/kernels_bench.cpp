// Kernels on the shapes of a 100M Llama (width 768, 12 heads, F 2048, vocabulary 32,000; 2,048
// tokens), from the table of cases that the tests use. Threads: UNDERKEEL_BENCH_THREADS, default 1.

#include <cstdlib>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/cases.h"

namespace {

namespace cases = underkeel::kernels::cases;
namespace device = underkeel::device;

void run_case(benchmark::State& state, const cases::Case& item, int thread_count) {
  device::ThreadPool pool(thread_count);
  device::Queue queue = device::Queue::on_cpu(pool);
  cases::Instance instance(item);
  // The forward pass by the CPU backend: the reference would take minutes at this size.
  if (item.prepare) {
    for (std::size_t i = 0; i < item.operands.size(); ++i)
      if (item.operands[i].role == cases::Role::prepared)
        underkeel::kernels::cpu_kernels().fill(
            {.to = instance.view(static_cast<int>(i)), .value = 1}, queue);
  }
  double touched_bytes = 0;
  for (const underkeel::TensorView& view : instance.views())
    touched_bytes += static_cast<double>(underkeel::bytes_of(view.type, view.element_count()));

  for (auto unused : state) instance.run(underkeel::kernels::cpu_kernels(), queue);

  using benchmark::Counter;
  if (item.flops > 0)
    state.counters["flops_per_s"] = Counter(item.flops, Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_s"] = Counter(touched_bytes, Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  const char* threads = std::getenv("UNDERKEEL_BENCH_THREADS");
  const int thread_count = threads == nullptr ? 1 : std::atoi(threads);
  const std::vector<cases::Case> all = cases::all_cases();
  for (const cases::Case& item : all)
    if (item.benchmark)
      benchmark::RegisterBenchmark(
          full_name(item).c_str(),
          [&item, thread_count](benchmark::State& state) { run_case(state, item, thread_count); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
