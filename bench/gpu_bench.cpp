// The CUDA kernels on the shapes of Llama-2-7B (8,192 tokens in four sequences): time, rate of floating-point
// operations, bytes that must be moved over time. Random operands; each operation alone, queued many times.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "device/gpu.h"
#include "kernels/facts/facts.h"
#include "kernels/kernels.h"

namespace {

using namespace underkeel;
using namespace underkeel::kernels;

constexpr std::int64_t tokens = 8192;
constexpr std::int64_t sequence = 2048;
constexpr std::int64_t width = 4096;
constexpr std::int64_t feed_forward = 11008;
constexpr std::int64_t heads = 32;
constexpr std::int64_t head_width = 128;
constexpr std::int64_t vocabulary = 32000;
constexpr std::int64_t chunk = 2048;
constexpr std::int64_t layer_elements = 202'375'168;

template <class T>
T value_of(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", to_text(result.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Device memory full of numbers around 0 that are valid as bf16 and as f32.
class Memory {
 public:
  Memory(device::Gpu& gpu, device::Queue& queue, std::int64_t size_bytes)
      : begin_(static_cast<std::byte*>(value_of(gpu.allocate(size_bytes)))), size_(size_bytes) {
    std::vector<BFloat16> block(std::size_t{1} << 24);
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] = to_bf16(2 * random_uniform(7, 0, i) - 1);
    const auto block_bytes = static_cast<std::int64_t>(block.size() * sizeof block[0]);
    for (std::int64_t at = 0; at < size_; at += block_bytes)
      value_of(gpu.copy(begin_ + at, block.data(), std::min(block_bytes, size_ - at), queue));
    value_of(gpu.synchronize(queue));
  }
  TensorView matrix(DType type, std::int64_t rows, std::int64_t columns) {
    const TensorView view = underkeel::matrix(begin_ + used_, type, rows, columns);
    used_ += (bytes_of(type, rows * columns) + 255) / 256 * 256;
    if (used_ > size_) {
      std::fprintf(stderr, "the benchmark takes too little memory\n");
      std::exit(1);
    }
    return view;
  }
  TensorView integers(device::Gpu& gpu, device::Queue& queue, std::vector<std::int32_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    const TensorView view = matrix(DType::i32, 1, count);
    value_of(gpu.copy(view.data, values.data(), 4 * count, queue));
    value_of(gpu.synchronize(queue));
    return view;
  }
  void reuse() { used_ = 0; }

 private:
  std::byte* begin_;
  std::int64_t size_;
  std::int64_t used_ = 0;
};

TensorView columns_of(TensorView view, std::int64_t begin, std::int64_t count) {
  view.data = static_cast<std::byte*>(view.data) + bytes_of(view.type, begin);
  view.columns = count;
  return view;
}

class Bench {
 public:
  Bench(device::Gpu& gpu, device::Queue& queue) : gpu_(gpu), queue_(queue) {}

  /// Median of five rounds of about 50 ms each.
  void run(const std::string& name, double flops, double moved_bytes,
           const std::function<void()>& call) {
    const double one_s = time(call, 2) / 2;
    const int count = std::max(3, static_cast<int>(0.05 / std::max(one_s, 1e-6)));
    std::vector<double> rounds;
    for (int round = 0; round < 5; ++round) rounds.push_back(time(call, count) / count);
    std::sort(rounds.begin(), rounds.end());
    const double s = rounds[2];
    std::printf("%-44s %9.4f ms", name.c_str(), s * 1e3);
    if (flops > 0) std::printf("  %8.1f TFLOP/s", flops / s * 1e-12);
    if (moved_bytes > 0) std::printf("  %8.0f GB/s", moved_bytes / s * 1e-9);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  double time(const std::function<void()>& call, int count) {
    value_of(gpu_.synchronize(queue_));
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) call();
    value_of(gpu_.check_launches());
    value_of(gpu_.synchronize(queue_));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  device::Gpu& gpu_;
  device::Queue& queue_;
};

struct AttentionShape {
  std::string name;
  std::vector<std::int64_t> lengths;
  std::int64_t query_heads;
  std::int64_t key_heads;
  std::int64_t head_width;
};

/// Micro-batches of the four models of `bench step`, and one of packed texts of 30 to 570 tokens.
std::vector<AttentionShape> attention_shapes() {
  std::vector<std::int64_t> texts;
  for (std::int64_t left = tokens; left > 0; left -= texts.back())
    texts.push_back(std::min<std::int64_t>(left, 30 + random_word(3, 0, texts.size()) % 540));
  const auto equal = [](std::size_t count, std::int64_t length) {
    return std::vector<std::int64_t>(count, length);
  };
  return {{"llama-2-7b, 4 x 2048", equal(4, 2048), 32, 32, 128},
          {"llama-3.1-8b, 2 x 4096", equal(2, 4096), 32, 8, 128},
          {"qwen2.5-7b, 8 x 1024", equal(8, 1024), 28, 4, 128},
          {"llama-3.2-1b, 8 x 2048", equal(8, 2048), 32, 8, 64},
          {"llama-2-7b, texts", texts, 32, 32, 128}};
}

/// Forward and backward of one layer, on the packed matrix of queries, keys and values.
void bench_attention(Bench& bench, Memory& memory, device::Gpu& gpu, device::Queue& queue,
                     const AttentionShape& shape) {
  memory.reuse();
  std::vector<std::int32_t> starts;
  std::int64_t rows = 0;
  double flops = 0;
  for (const std::int64_t length : shape.lengths) {
    starts.push_back(static_cast<std::int32_t>(rows));
    rows += length;
    flops += static_cast<double>(
        attention_forward_flops(length, shape.query_heads, shape.head_width, 0));
  }
  starts.resize(static_cast<std::size_t>(rows) + 1, static_cast<std::int32_t>(rows));
  const std::int64_t q_width = shape.query_heads * shape.head_width;
  const std::int64_t k_width = shape.key_heads * shape.head_width;
  const auto part = [&](const TensorView& packed, int which) {
    return columns_of(packed, which == 0 ? 0 : q_width + (which - 1) * k_width,
                      which == 0 ? q_width : k_width);
  };
  const TensorView qkv = memory.matrix(DType::bf16, rows, q_width + 2 * k_width);
  const TensorView dqkv = memory.matrix(DType::bf16, rows, q_width + 2 * k_width);
  const TensorView out = memory.matrix(DType::bf16, rows, q_width);
  const TensorView dout = memory.matrix(DType::bf16, rows, q_width);
  const TensorView lse = memory.matrix(DType::f32, rows, shape.query_heads);
  const TensorView scratch = memory.matrix(
      DType::u8, 1,
      attention_backward_scratch_bytes(rows, shape.query_heads, shape.key_heads, shape.head_width));
  const TensorView sequence_starts = memory.integers(gpu, queue, starts);
  const TensorView cosine = memory.matrix(DType::f32, rows, shape.head_width / 2);
  const TensorView sine = memory.matrix(DType::f32, rows, shape.head_width / 2);
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_width));
  bench.run("attention forward, " + shape.name, flops, 0, [&] {
    cuda_kernels().attention_forward({.q = part(qkv, 0),
                                      .k = part(qkv, 1),
                                      .v = part(qkv, 2),
                                      .sequence_starts = sequence_starts,
                                      .out = out,
                                      .lse = lse,
                                      .query_heads = shape.query_heads,
                                      .key_heads = shape.key_heads,
                                      .head_width = shape.head_width,
                                      .scale = scale},
                                     queue);
  });
  for (const bool turns_back : {false, true})
    bench.run(
        std::string("attention backward, ") + shape.name + (turns_back ? ", turned back" : ""),
        2.5 * flops, 0, [&] {
          cuda_kernels().attention_backward({.q = part(qkv, 0),
                                             .k = part(qkv, 1),
                                             .v = part(qkv, 2),
                                             .sequence_starts = sequence_starts,
                                             .out = out,
                                             .lse = lse,
                                             .dout = dout,
                                             .dq = part(dqkv, 0),
                                             .dk = part(dqkv, 1),
                                             .dv = part(dqkv, 2),
                                             .scratch = scratch,
                                             .cosine = turns_back ? cosine : TensorView{},
                                             .sine = turns_back ? sine : TensorView{},
                                             .query_heads = shape.query_heads,
                                             .key_heads = shape.key_heads,
                                             .head_width = shape.head_width,
                                             .scale = scale},
                                            queue);
        });
}

}  // namespace

int main() {
  const auto gpu = value_of(device::open_gpu(0));
  device::Queue queue = value_of(gpu->make_queue());
  Memory memory(*gpu, queue, std::int64_t{20} << 30);
  Bench bench(*gpu, queue);
  const KernelTable& table = cuda_kernels();
  const DType bf16 = DType::bf16;
  const DType f32 = DType::f32;
  std::printf("%s, %d multiprocessors\n", gpu->facts().name.c_str(),
              gpu->facts().multiprocessor_count);

  {
    memory.reuse();
    const TensorView from = memory.matrix(f32, 1, std::int64_t{1} << 29);
    const TensorView to = memory.matrix(f32, 1, std::int64_t{1} << 29);
    bench.run("copy 2 GiB", 0, 2.0 * 4 * (1 << 29), [&] { table.copy({from, to}, queue); });
  }
  struct Product {
    const char* name;
    std::int64_t n, k;
  };
  for (const Product& p :
       {Product{"qkv", 3 * width, width}, Product{"o", width, width},
        Product{"gate up", 2 * feed_forward, width}, Product{"down", width, feed_forward}}) {
    memory.reuse();
    const TensorView x = memory.matrix(bf16, tokens, p.k);
    const TensorView w = memory.matrix(bf16, p.n, p.k);
    const TensorView y = memory.matrix(bf16, tokens, p.n);
    const TensorView dw = memory.matrix(f32, p.n, p.k);
    const TensorView dw16 = memory.matrix(bf16, p.n, p.k);
    const TensorView room = memory.matrix(DType::u8, 1, cuda_matmul_workspace_bytes);
    const double flops = 2.0 * static_cast<double>(tokens * p.n * p.k);
    const std::string name(p.name);
    bench.run(name + " forward", flops, 0, [&] {
      table.matmul({.a = x, .b = w, .c = y, .transpose_b = true, .scratch = room}, queue);
    });
    bench.run(name + " d input", flops, 0,
              [&] { table.matmul({.a = y, .b = w, .c = x, .scratch = room}, queue); });
    bench.run(name + " d weight, bf16", flops, 0, [&] {
      table.matmul({.a = y, .b = x, .c = dw16, .transpose_a = true, .scratch = room}, queue);
    });
    bench.run(name + " d weight, f32 +=", flops, 0, [&] {
      table.matmul(
          {.a = y, .b = x, .c = dw, .transpose_a = true, .accumulate = true, .scratch = room},
          queue);
    });
  }
  {
    memory.reuse();
    const TensorView x = memory.matrix(bf16, chunk, width);
    const TensorView w = memory.matrix(bf16, vocabulary, width);
    const TensorView logits = memory.matrix(f32, chunk, vocabulary);
    const TensorView narrow = memory.matrix(bf16, chunk, vocabulary);
    const TensorView room = memory.matrix(DType::u8, 1, cuda_matmul_workspace_bytes);
    const TensorView loss = memory.matrix(DType::f64, 1, 1);
    const TensorView scale = memory.matrix(f32, 1, 1);
    const TensorView scratch = memory.matrix(DType::f64, 1, chunk);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < chunk; ++i)
      ids.push_back(static_cast<std::int32_t>(random_word(3, 0, i) % vocabulary));
    const TensorView targets = memory.integers(*gpu, queue, ids);
    bench.run("head chunk, f32 logits", 2.0 * chunk * vocabulary * width, 0, [&] {
      table.matmul({.a = x, .b = w, .c = logits, .transpose_b = true, .scratch = room}, queue);
    });
    for (const TensorView& view : {logits, narrow})
      bench.run("cross entropy, " + std::string(name_of(view.type)), 0,
                2.0 * static_cast<double>(bytes_of(view.type, chunk * vocabulary)), [&] {
                  table.cross_entropy({.logits = view,
                                       .targets = targets,
                                       .loss = loss,
                                       .gradient_scale = scale,
                                       .scratch = scratch},
                                      queue);
                });
  }
  {
    memory.reuse();
    const TensorView x = memory.matrix(bf16, tokens, width);
    const TensorView y = memory.matrix(bf16, tokens, width);
    const TensorView dx = memory.matrix(bf16, tokens, width);
    const TensorView w = memory.matrix(bf16, 1, width);
    const TensorView dw = memory.matrix(f32, 1, width);
    const TensorView rstd = memory.matrix(f32, tokens, 1);
    const TensorView scratch =
        memory.matrix(DType::u8, 1, rms_norm_backward_scratch_bytes(tokens, width));
    const double row = 2.0 * tokens * width;
    bench.run("rms norm forward", 0, 2 * row,
              [&] { table.rms_norm_forward({.x = x, .weight = w, .y = y, .rstd = rstd}, queue); });
    bench.run("rms norm backward, adds to dx", 0, 4 * row, [&] {
      table.rms_norm_backward({.x = x,
                               .weight = w,
                               .rstd = rstd,
                               .dy = y,
                               .dx = dx,
                               .dweight = dw,
                               .scratch = scratch,
                               .accumulate_dx = true},
                              queue);
    });
    const TensorView dy = memory.matrix(bf16, tokens, width);
    bench.run("rms norm backward, adds to dx, y again", 0, 5 * row, [&] {
      table.rms_norm_backward({.x = x,
                               .weight = w,
                               .rstd = rstd,
                               .dy = dy,
                               .dx = dx,
                               .dweight = dw,
                               .scratch = scratch,
                               .y = dy,
                               .accumulate_dx = true},
                              queue);
    });
    bench.run("copy of the residual", 0, 2 * row, [&] { table.copy({x, y}, queue); });
  }
  {
    memory.reuse();
    const TensorView qkv = memory.matrix(bf16, tokens, 3 * width);
    const TensorView cosine = memory.matrix(f32, tokens, head_width / 2);
    const TensorView sine = memory.matrix(f32, tokens, head_width / 2);
    const TensorView q = columns_of(qkv, 0, width);
    bench.run("rope q", 0, 4.0 * tokens * width, [&] {
      table.rope_apply({.x = q, .cosine = cosine, .sine = sine, .head_width = head_width}, queue);
    });
  }
  for (const AttentionShape& shape : attention_shapes())
    bench_attention(bench, memory, *gpu, queue, shape);
  {
    memory.reuse();
    const TensorView gate_up = memory.matrix(bf16, tokens, 2 * feed_forward);
    const TensorView act = memory.matrix(bf16, tokens, feed_forward);
    const TensorView gate = columns_of(gate_up, 0, feed_forward);
    const TensorView up = columns_of(gate_up, feed_forward, feed_forward);
    const double row = 2.0 * tokens * feed_forward;
    bench.run("swiglu forward", 0, 3 * row,
              [&] { table.swiglu_forward({.gate = gate, .up = up, .out = act}, queue); });
    bench.run("swiglu backward", 0, 5 * row, [&] {
      table.swiglu_backward({.gate = gate, .up = up, .dout = act, .dgate = gate, .dup = up}, queue);
    });
  }
  {
    memory.reuse();
    std::vector<std::int32_t> ids;  // every eighth token is the same one, as in text
    for (std::int64_t i = 0; i < tokens; ++i)
      ids.push_back(i % 8 == 0 ? 13 : static_cast<std::int32_t>(random_word(4, 0, i) % vocabulary));
    const TensorView row_ids = memory.integers(*gpu, queue, ids);
    const TensorView weight = memory.matrix(bf16, vocabulary, width);
    const TensorView dweight = memory.matrix(f32, vocabulary, width);
    const TensorView rows = memory.matrix(bf16, tokens, width);
    bench.run("embedding forward", 0, 4.0 * tokens * width, [&] {
      table.embedding_forward({.tokens = row_ids, .weight = weight, .out = rows}, queue);
    });
    bench.run("embedding backward", 0, 0, [&] {
      table.embedding_backward(
          {.tokens = row_ids, .dout = rows, .dweight = dweight, .accumulate = true}, queue);
    });
  }
  {
    memory.reuse();
    const auto run = [&](DType type) { return memory.matrix(type, 1, layer_elements); };
    const TensorView master = run(f32);
    const TensorView moment1 = run(f32);
    const TensorView moment2 = run(f32);
    const TensorView gradient = run(f32);
    const TensorView weight = run(bf16);
    const TensorView narrow = run(bf16);
    const TensorView step = memory.matrix(f32, 1, 4);
    const TensorView clip = memory.matrix(f32, 1, 4);
    const TensorView sum = memory.matrix(DType::f64, 1, 1);
    const TensorView scratch =
        memory.matrix(DType::u8, 1, sum_squares_scratch_bytes(layer_elements));
    const auto elements = static_cast<double>(layer_elements);
    bench.run("adamw of a layer", 0, 30 * elements, [&] {
      table.adamw({.master = master,
                   .moment1 = moment1,
                   .moment2 = moment2,
                   .gradient = gradient,
                   .weight = weight,
                   .step_values = step,
                   .clip = clip},
                  queue);
    });
    const TensorView narrow1 = run(bf16);
    const TensorView narrow2 = run(bf16);
    bench.run("adamw at random of a layer", 0, 14 * elements, [&] {
      table.adamw_at_random({.weight = weight,
                             .moment1 = narrow1,
                             .moment2 = narrow2,
                             .gradient = narrow,
                             .step_values = step,
                             .clip = clip},
                            queue);
    });
    bench.run("sum of squares of a layer", 0, 4 * elements,
              [&] { table.sum_squares({.x = gradient, .sum = sum, .scratch = scratch}, queue); });
    bench.run("f32 gradient += bf16", 0, 10 * elements,
              [&] { table.add({.from = narrow, .into = gradient}, queue); });
    bench.run("bf16 of f32", 0, 6 * elements,
              [&] { table.copy({.from = gradient, .to = narrow}, queue); });
  }
  return 0;
}
