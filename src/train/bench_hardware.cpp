#include "train/bench_hardware.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "device/thread_pool.h"
#include "exec/arena.h"
#include "exec/noise.h"
#include "io/file.h"
#include "kernels/facts/facts.h"
#include "kernels/kernels.h"
#include "train/bench_link.h"
#include "train/matmul_memory.h"
#include "train/rank_device.h"

namespace underkeel::train {

namespace {

/// Seconds of one call: calls for about `seconds`, after one that is not counted. Each returns once done.
Result<double> seconds_of(double seconds, const std::function<Result<void>()>& call) {
  UK_TRY_VOID(call());
  const double began_s = steady_now_s();
  std::int64_t count = 0;
  while (count == 0 || steady_now_s() - began_s < seconds) {
    UK_TRY_VOID(call());
    ++count;
  }
  return (steady_now_s() - began_s) / static_cast<double>(count);
}

struct Product {
  const char* name;
  std::int64_t m, n, k;
};
// A layer of Llama-2-7B at 8,192 tokens, and of a model that a CPU trains at 1,024.
constexpr std::array gpu_products = {Product{"8192 x 12288 x 4096", 8192, 12288, 4096},
                                     Product{"8192 x 4096 x 4096", 8192, 4096, 4096},
                                     Product{"8192 x 22016 x 4096", 8192, 22016, 4096},
                                     Product{"8192 x 4096 x 11008", 8192, 4096, 11008}};
constexpr std::array cpu_products = {Product{"1024 x 2048 x 2048", 1024, 2048, 2048},
                                     Product{"1024 x 2048 x 5504", 1024, 2048, 5504}};

class Measurement {
 public:
  Measurement(const BenchHardwareRequest& request, device::Gpu* gpu, int cores)
      : request_(request), gpu_(gpu), pool_(cores) {}

  Result<BenchHardwareReport> run(spec::HardwareSpec machine) {
    report_.machine = std::move(machine);
    report_.machine.rates_are_measured = true;
    UK_TRY_VOID(host_memory());
    UK_TRY_VOID(gpu_ != nullptr ? with_gpu_memory() : cpu_arithmetic());
    if (gpu_ != nullptr) UK_TRY_VOID(between_gpus());
    UK_TRY_VOID(disk());
    return report_;
  }

 private:
  double add(std::string name, double amount, double seconds, bool is_arithmetic = false) {
    report_.rates.push_back({std::move(name), amount / seconds, is_arithmetic});
    return amount / seconds;
  }

  /// A copy in memory by all cores, bytes read and written counted.
  Result<void> host_memory() {
    constexpr std::int64_t size_bytes = 256 * mebibyte;
    constexpr std::int64_t tile_bytes = 4 * mebibyte;
    UK_TRY(memory, exec::Arena::make(2 * size_bytes, "memory to copy"));
    const std::byte* const from = memory.data();
    std::byte* const to = memory.data() + size_bytes;
    UK_TRY(s, seconds_of(request_.seconds, [&]() -> Result<void> {
             pool_.parallel_for(size_bytes / tile_bytes, [&](std::int64_t tile) {
               std::memcpy(to + tile * tile_bytes, from + tile * tile_bytes,
                           static_cast<std::size_t>(tile_bytes));
             });
             return {};
           }));
    report_.machine.memory_bytes_per_s = add("host memory, copy by all cores", 2.0 * size_bytes, s);
    return {};
  }

  template <std::size_t N>
  Result<void> products(const std::array<Product, N>& all, const kernels::KernelTable& table,
                        std::byte* memory, DType type, device::Queue& queue) {
    double flops = 0;
    double seconds = 0;
    for (const Product& product : all) {
      const TensorView a = matrix(memory, type, product.m, product.k);
      std::byte* next = memory + bytes_of(type, product.m * product.k);
      const TensorView b = matrix(next, type, product.n, product.k);
      next += bytes_of(type, product.n * product.k);
      const TensorView c = matrix(next, type, product.m, product.n);
      next += bytes_of(type, product.m * product.n);
      const TensorView room = matrix(next, DType::u8, 1, kernels::cuda_matmul_workspace_bytes);
      constexpr int calls = 16;  // for one wait
      UK_TRY(s, seconds_of(request_.seconds, [&]() -> Result<void> {
               for (int i = 0; i < (gpu_ != nullptr ? calls : 1); ++i)
                 table.matmul({.a = a, .b = b, .c = c, .transpose_b = true, .scratch = room},
                              queue);
               return gpu_ != nullptr ? gpu_->synchronize(queue) : Result<void>{};
             }));
      const double one_s = gpu_ != nullptr ? s / calls : s;
      const auto one = static_cast<double>(kernels::matmul_flops(product.m, product.n, product.k));
      add(fmt::format("product {}, {}", product.name, name_of(type)), one, one_s, true);
      flops += one;
      seconds += one_s;
    }
    report_.machine.matmul_flops_per_s = flops / seconds;
    return {};
  }
  template <std::size_t N>
  static std::int64_t bytes_for(const std::array<Product, N>& all, DType type) {
    std::int64_t most = 0;
    for (const Product& p : all)
      most = std::max(most, bytes_of(type, p.m * p.k + p.n * p.k + p.m * p.n));
    return most + kernels::cuda_matmul_workspace_bytes;
  }

  Result<void> cpu_arithmetic() {
    device::Queue queue = device::Queue::on_cpu(pool_);
    const DType type = DType::f32;
    UK_TRY(memory, exec::Arena::make(bytes_for(cpu_products, type), "memory of products"));
    auto* const values = reinterpret_cast<float*>(memory.data());
    for (std::int64_t i = 0; i < memory.size_bytes() / 4; ++i)
      values[i] = static_cast<float>(static_cast<double>(i % 1009) / 1009 - 0.5);
    return products(cpu_products, kernels::cpu_kernels(), memory.data(), type, queue);
  }

  Result<void> with_gpu_memory() {
    constexpr std::int64_t copied_bytes = std::int64_t{1} << 30;
    const std::int64_t size_bytes =
        std::max(2 * copied_bytes, bytes_for(gpu_products, DType::bf16));
    UK_TRY(memory, exec::Arena::make_on_gpu(size_bytes, "memory of products", *gpu_));
    return gpu(memory.data(), size_bytes, copied_bytes);
  }

  Result<void> gpu(std::byte* memory, std::int64_t size_bytes, std::int64_t copied_bytes) {
    UK_TRY(queue, gpu_->make_queue());
    UK_TRY_VOID(exec::fill_with_noise(*gpu_, memory, size_bytes, queue));
    const kernels::KernelTable& table = kernels::cuda_kernels();
    io::FileSystem files;
    std::vector<std::string> notes;
    constexpr double limit_s = 30;
    UK_TRY_VOID(recall_matmuls(files, nullptr, matmul_cache_folder(), limit_s, notes));
    // Twice: the first time chooses algorithms and takes the card from rest to the clocks that it holds under load.
    const auto rates = report_.rates;
    kernels::cuda_time_matmuls(limit_s);
    const Result<void> made = products(gpu_products, table, memory, DType::bf16, queue);
    kernels::cuda_time_matmuls(0);
    UK_TRY_VOID(made);
    keep_matmuls(files, matmul_cache_folder());
    report_.rates = rates;
    UK_TRY_VOID(products(gpu_products, table, memory, DType::bf16, queue));

    const TensorView from = matrix(memory, DType::f32, 1, copied_bytes / 4);
    const TensorView to = matrix(memory + copied_bytes, DType::f32, 1, copied_bytes / 4);
    UK_TRY(s, seconds_of(request_.seconds, [&]() -> Result<void> {
             table.copy({from, to}, queue);
             return gpu_->synchronize(queue);
           }));
    report_.machine.memory_bytes_per_s =
        add("GPU memory, copy", 2.0 * static_cast<double>(copied_bytes), s);
    return link(memory, queue);
  }

  /// Pages locked in host memory to the GPU, back, and both at once.
  Result<void> link(std::byte* memory, device::Queue& queue) {
    constexpr std::int64_t size_bytes = 256 * mebibyte;
    UK_TRY(host, exec::Arena::make_pinned(2 * size_bytes, "memory to copy over the link", *gpu_));
    UK_TRY(other, gpu_->make_queue());
    const auto run = [&](bool to_gpu, bool from_gpu) {
      return seconds_of(request_.seconds, [&, to_gpu, from_gpu]() -> Result<void> {
        if (to_gpu) UK_TRY_VOID(gpu_->copy(memory, host.data(), size_bytes, queue));
        if (from_gpu)
          UK_TRY_VOID(gpu_->copy(host.data() + size_bytes, memory + size_bytes, size_bytes, other));
        UK_TRY_VOID(gpu_->synchronize(queue));
        return gpu_->synchronize(other);
      });
    };
    UK_TRY(to_s, run(true, false));
    UK_TRY(from_s, run(false, true));
    UK_TRY(both_s, run(true, true));
    add("host to GPU", size_bytes, to_s);
    add("GPU to host", size_bytes, from_s);
    add("both ways at once, in all", 2.0 * size_bytes, both_s);
    return {};
  }

  /// Of a machine with several.
  Result<void> between_gpus() {
    UK_TRY(gpus, device::find_gpus());
    const auto count = static_cast<int>(gpus.size());
    report_.machine.gpus_per_node = count;
    if (count < 2) return {};
    const Result<LinkRate> rate = measure_link(count, request_.seconds);
    if (!rate && rate.error().code != ErrorCode::unsupported) return tl::unexpected(rate.error());
    report_.link =
        rate ? fmt::format("a gather over {} GPUs: what each receives, and a small one", count)
             : "nothing was measured, since " + rate.error().what;
    if (!rate) return {};
    report_.machine.link_bytes_per_s = rate->bytes_per_s;
    report_.machine.link_latency_s = rate->latency_s;
    return {};
  }

  Result<void> disk() {
    io::FileSystem files;
    const std::string path = io::join_path(request_.folder, fmt::format("bench-{}.tmp", getpid()));
    const Result<void> result = disk(files, path);
    static_cast<void>(files.remove_tree(path));
    return result;
  }

  Result<void> disk(io::FileSystem& files, const std::string& path) {
    constexpr std::int64_t piece_bytes = 16 * mebibyte;
    const std::int64_t pieces = std::max<std::int64_t>(1, request_.file_bytes / piece_bytes);
    const auto size = static_cast<double>(pieces * piece_bytes);
    const int readers = pool_.thread_count();
    UK_TRY(memory, exec::Arena::make(readers * piece_bytes, "memory to read into"));
    const std::span<std::byte> piece(memory.data(), static_cast<std::size_t>(piece_bytes));
    for (std::size_t i = 0; i < piece.size(); ++i)
      piece[i] = static_cast<std::byte>(i * 2654435761u >> 24);
    double began_s = steady_now_s();
    {
      UK_TRY(file, files.create(path));
      for (std::int64_t i = 0; i < pieces; ++i) UK_TRY_VOID(file.write(piece, i * piece_bytes));
      UK_TRY_VOID(file.sync());
      UK_TRY_VOID(file.close());
    }
    report_.machine.disk_bytes_per_s =
        add("disk, written and synced", size, steady_now_s() - began_s);
    // Pages that are on the disk can be dropped; where they are not, the rate is that of memory.
    if (const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); descriptor >= 0) {
      ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
      ::close(descriptor);
    }
    UK_TRY(file, files.open(path));
    const auto read_all = [&]() -> Result<void> {
      std::vector<Result<void>> results(static_cast<std::size_t>(readers));
      pool_.parallel_for(readers, [&](std::int64_t reader) {
        const std::span own(memory.data() + reader * piece_bytes,
                            static_cast<std::size_t>(piece_bytes));
        for (std::int64_t i = reader; i < pieces; i += readers)
          if (auto result = file.read(own, i * piece_bytes); !result)
            results[static_cast<std::size_t>(reader)] = result;
      });
      for (const Result<void>& result : results) UK_TRY_VOID(result);
      return {};
    };
    began_s = steady_now_s();
    UK_TRY_VOID(read_all());
    add("disk, read by all cores", size, steady_now_s() - began_s);
    UK_TRY(cached_s, seconds_of(request_.seconds, read_all));
    add("page cache, read by all cores", size, cached_s);
    return {};
  }

  const BenchHardwareRequest& request_;
  device::Gpu* gpu_;
  device::ThreadPool pool_;
  BenchHardwareReport report_;
};

}  // namespace

Result<BenchHardwareReport> bench_hardware(const BenchHardwareRequest& request) {
  spec::RunConfig run;
  run.device = request.device;
  UK_TRY(devices, start_devices(run, {}, comm::make_thread_group(1), comm::make_thread_group(1)));
  spec::HardwareSpec machine = with_gpus(spec::this_machine(), devices, 1);
  const int cores = machine.cores;
  return Measurement(request, devices.ranks.front().gpu.get(), cores).run(std::move(machine));
}

std::string hardware_yaml(const BenchHardwareReport& report) {
  const spec::HardwareSpec& machine = report.machine;
  const auto gibibytes = [](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(gibibyte);
  };
  std::string text =
      "# Written by `underkeel bench hardware`; `underkeel plan --hardware` reads it.\n";
  text += fmt::format("nodes: {}\ngpus_per_node: {}\n", machine.nodes, machine.gpus_per_node);
  if (machine.gpus_per_node > 0) {
    text += fmt::format("gpu_name: {}\ngpu_mem_gib: {:.6g}\n", machine.gpu_name,
                        gibibytes(machine.gpu_mem_bytes));
    if (machine.compute_capability)
      text += fmt::format("compute_capability: \"{}\"\n", *machine.compute_capability);
  }
  text += fmt::format("host_ram_gib: {:.6g}\ncores: {}\n", gibibytes(machine.host_ram_bytes),
                      machine.cores);
  text += fmt::format(
      "matmul_flops_per_s: {:.4g}\nmemory_bytes_per_s: {:.4g}\ndisk_bytes_per_s: {:.4g}\n",
      machine.matmul_flops_per_s, machine.memory_bytes_per_s, machine.disk_bytes_per_s);
  text += fmt::format("# Between ranks: {}.\nlink_bytes_per_s: {:.4g}\nlink_latency_s: {:.4g}\n",
                      report.link.empty() ? "nothing was measured" : report.link,
                      machine.link_bytes_per_s, machine.link_latency_s);
  text += "rates_are_measured: true\n# Single rates:\n";
  for (const MeasuredRate& rate : report.rates)
    text += fmt::format("#   {:<40} {:>10.4g} {}\n", rate.name,
                        rate.per_s * (rate.is_arithmetic ? 1e-12 : 1e-9),
                        rate.is_arithmetic ? "TFLOP/s" : "GB/s");
  return text;
}

}  // namespace underkeel::train
