// Our matrix product beside oneDNN's on one thread, for the shapes of a 100M Llama. Machines are
// rarely quiet: run with --benchmark_enable_random_interleaving=true --benchmark_repetitions=8 and
// compare the fastest repetitions.

#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/kernels.h"

extern "C" void omp_set_num_threads(int count);

namespace {

using underkeel::DType;
using underkeel::matrix;

struct Shape {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};

constexpr Shape shapes[] = {{2048, 2304, 768, false, true}, {2048, 768, 768, false, true},
                            {2048, 768, 2048, false, true}, {2048, 768, 4096, false, false},
                            {4096, 768, 2048, true, false}, {512, 32000, 768, false, true}};

struct Operands {
  Operands(const Shape& shape, DType type)
      : a(static_cast<std::size_t>(shape.m * shape.k)),
        b(static_cast<std::size_t>(shape.k * shape.n)),
        c(static_cast<std::size_t>(shape.m * shape.n)) {
    // 0.25 in either type: a bf16 element is half as long, so the bits repeat.
    const float value = type == DType::f32 ? 0.25f : 0.25048828125f;
    for (float& element : a) element = value;
    for (float& element : b) element = value;
  }
  std::vector<float> a, b, c;
};

void count(benchmark::State& state, const Shape& shape) {
  state.counters["flops_per_s"] =
      benchmark::Counter(2.0 * static_cast<double>(shape.m * shape.n * shape.k),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void run_ours(benchmark::State& state, const Shape& shape, DType type) {
  Operands operands(shape, type);
  underkeel::device::ThreadPool pool(1);
  auto queue = underkeel::device::Queue::on_cpu(pool);
  const auto side = [&](float* data, std::int64_t rows, std::int64_t columns, bool transposed) {
    return transposed ? matrix(data, type, columns, rows) : matrix(data, type, rows, columns);
  };
  for (auto unused : state)
    underkeel::kernels::cpu_kernels().matmul(
        {.a = side(operands.a.data(), shape.m, shape.k, shape.transpose_a),
         .b = side(operands.b.data(), shape.k, shape.n, shape.transpose_b),
         .c = matrix(operands.c.data(), type, shape.m, shape.n),
         .transpose_a = shape.transpose_a,
         .transpose_b = shape.transpose_b},
        queue);
  count(state, shape);
}

void run_onednn(benchmark::State& state, const Shape& shape, DType type) {
  Operands operands(shape, type);
  omp_set_num_threads(1);
  using Memory = dnnl::memory;
  const auto data_type = type == DType::f32 ? Memory::data_type::f32 : Memory::data_type::bf16;
  const auto description = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return Memory::desc({rows, columns}, data_type,
                        transposed ? Memory::format_tag::ba : Memory::format_tag::ab);
  };
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto a = description(shape.m, shape.k, shape.transpose_a);
  const auto b = description(shape.k, shape.n, shape.transpose_b);
  const auto c = description(shape.m, shape.n, false);
  const dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine));
  Memory a_memory(a, engine, operands.a.data());
  Memory b_memory(b, engine, operands.b.data());
  Memory c_memory(c, engine, operands.c.data());
  for (auto unused : state) {
    product.execute(
        stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
    stream.wait();
  }
  count(state, shape);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : shapes) {
    for (const DType type : {DType::f32, DType::bf16}) {
      const std::string name = std::string(underkeel::name_of(type)) + " " +
                               (shape.transpose_a ? "T" : "N") + (shape.transpose_b ? "T" : "N") +
                               " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
                               std::to_string(shape.k);
      const auto add = [&](const char* library, auto run) {
        benchmark::RegisterBenchmark((name + " " + library).c_str(), [&shape, type, run](
                                                                         benchmark::State& state) {
          run(state, shape, type);
        })->Unit(benchmark::kMillisecond);
      };
      add("ours", run_ours);
      add("oneDNN", run_onednn);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
