// Machines: hardware.yaml, and this one as the operating system describes it.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>

#include "base/units.h"
#include "spec/cgroup.h"
#include "spec/fields.h"
#include "spec/hardware_spec.h"
#include "spec/named_file.h"
#include "spec/run_config.h"
#include "spec/yaml_reader.h"

namespace underkeel::spec {
namespace {

constexpr double most_gib = 1 << 30;  // an exbibyte
constexpr std::int64_t most_gpus = 1 << 20;

// Far above what there is (a GPU of 288 GiB, a node of 32 TiB): what is larger was written in another unit.
constexpr double most_gib_of_gpu = 2048, most_gib_of_host = 32768;
// Below what runs there at all (a GPU's driver takes 1 GiB, this process alone 64 MiB): a slip, or another unit.
constexpr double least_gib_of_gpu = 1, least_gib_of_host = 0.0625;

/// "80 in place of 81920": the number in the largest smaller unit that makes it one of this world.
std::string meant_size(std::string_view key, double size, double most) {
  struct Smaller {
    std::string_view unit;
    double per_gib;
  };
  constexpr Smaller units[] = {{"MiB", 0x1p10}, {"KiB", 0x1p20}, {"bytes", 0x1p30}};
  for (const auto& [unit, per_gib] : units)
    if (size / per_gib <= most)
      return fmt::format("if it is in {}, write {}: {:.6g}", unit, key, size / per_gib);
  return {};
}

/// What a part of this kind may have; what is beyond it was written in another unit. Nothing at all may be allowed.
struct Plausible {
  double least = 0;
  double most = most_gib;
};
std::optional<std::int64_t> gibibytes(Fields& fields, std::string_view key, bool zero_is_allowed,
                                      const Plausible& plausible = {}) {
  const auto [least, most] = plausible;
  const Value* given = fields.take(key);
  const auto written =
      given != nullptr && (given->kind == ValueKind::number || given->kind == ValueKind::text)
          ? parse_double(given->text)
          : std::nullopt;
  if (written && *written > most) {
    fields.problem(key, fmt::format("{:.12g} GiB are more than there are in any machine", *written),
                   meant_size(key, *written, most));
    return std::nullopt;
  }
  if (written && *written > 0 && *written < least) {
    fields.problem(
        key,
        fmt::format("{:.6g} GiB are {}, less than a run can start in", *written,
                    format_bytes(std::llround(*written * static_cast<double>(gibibyte)))),
        fmt::format("the number is in GiB: from {:.4g} on{}", least,
                    *written * 1024 >= least && *written * 1024 <= most
                        ? fmt::format("; if it is in TiB, write {}: {:.6g}", key, *written * 1024)
                        : ""));
    return std::nullopt;
  }
  const auto size =
      fields.number(key, {.least = 0, .most = most, .least_is_allowed = zero_is_allowed});
  if (!size) return std::nullopt;
  return std::llround(*size * static_cast<double>(gibibyte));
}

// What a GPU of this kind does, in round numbers, for those who name none: products of bf16, memory, a link to its
// neighbours.
void assume_gpu_rates(HardwareSpec& machine) {
  machine.matmul_flops_per_s = 4e14;
  machine.memory_bytes_per_s = 2.5e12;
  machine.link_bytes_per_s = 2e11;
  machine.link_latency_s = 2e-5;
  machine.network_bytes_per_s = 2.5e10;
  // A gather by NCCL's ring, by its own table of latencies: a hop over the network 14 us, seven within a node of 3.4 us each.
  machine.network_latency_s = 3.8e-5;
}

// Far below what there is (a hard disk's 1e8 bytes, a core's 1e10 operations): what is slower was written in another unit.
constexpr double least_rate = 1e6;

void read_rates(Fields& fields, HardwareSpec& machine) {
  if (machine.gpus_per_node > 0) assume_gpu_rates(machine);
  const auto rate = [&](std::string_view key, double fallback) {
    const auto given = fields.number(key, {.least = 0, .most = 1e21, .least_is_allowed = false});
    if (given && *given < least_rate) {
      const bool is_arithmetic = key == "matmul_flops_per_s";
      fields.problem(
          key,
          fmt::format("{:.6g} {} a second are fewer than any machine has", *given,
                      is_arithmetic ? "operations" : "bytes"),
          fmt::format("if it is in {}, write {}: {:.6g}", is_arithmetic ? "TFLOP/s" : "GB/s", key,
                      *given * (is_arithmetic ? 1e12 : 1e9)));
    }
    return given.value_or(fallback);
  };
  machine.link_bytes_per_s = rate("link_bytes_per_s", machine.link_bytes_per_s);
  const auto latency = [&](std::string_view key, double fallback) {
    return fields.number(key, {.most = 10}).value_or(fallback);
  };
  machine.link_latency_s = latency("link_latency_s", machine.link_latency_s);
  machine.network_bytes_per_s = rate("network_bytes_per_s", machine.network_bytes_per_s);
  machine.network_latency_s = latency("network_latency_s", machine.network_latency_s);
  machine.memory_bytes_per_s = rate("memory_bytes_per_s", machine.memory_bytes_per_s);
  machine.disk_bytes_per_s = rate("disk_bytes_per_s", machine.disk_bytes_per_s);
  machine.matmul_flops_per_s = rate("matmul_flops_per_s", machine.matmul_flops_per_s);
  machine.rates_are_measured = fields.boolean("rates_are_measured").value_or(false);
}

std::optional<std::string> content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// MemTotal of /proc/meminfo; 0 when it is not there.
std::int64_t total_memory_bytes() {
  std::ifstream stream("/proc/meminfo");
  std::string key, unit;
  std::int64_t size_kib = 0;
  while (stream >> key >> size_kib) {
    if (key == "MemTotal:") return size_kib * kibibyte;
    std::getline(stream, unit);
  }
  return 0;
}

/// Cores that this process may run on.
int allowed_cores() {
  // Grows until the kernel's mask fits: machines beyond 1,024 cores exist.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    const std::size_t size_bytes = CPU_ALLOC_SIZE(capacity);
    const bool known = sched_getaffinity(0, size_bytes, set) == 0;
    const int cores = known ? CPU_COUNT_S(size_bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, cores);
  }
  return 1;
}

}  // namespace

Result<HardwareSpec> read_hardware_file(const std::filesystem::path& file) {
  UK_TRY(text, read_named_file(file));
  UK_TRY(root, read_yaml(text, file.string()));
  if (root.kind != ValueKind::mapping)
    return fail(ErrorCode::bad_file,
                fmt::format("a mapping of keys is wanted, {} was found", shown(root)),
                file.string());
  Problems problems;
  Fields fields(root, "", problems, QuotedValues::accept);
  HardwareSpec machine;
  machine.nodes = fields.integer("nodes", {1, 1 << 20}).value_or(1);
  machine.gpus_per_node = fields.integer("gpus_per_node", {0, 1024}).value_or(0);
  if (machine.nodes * machine.gpus_per_node > most_gpus)
    fields.problem(
        "nodes",
        fmt::format("{} nodes of {} GPUs are {}; {} GPUs are the most that a run is judged for",
                    machine.nodes, machine.gpus_per_node, machine.nodes * machine.gpus_per_node,
                    most_gpus));
  machine.gpu_name = fields.text("gpu_name").value_or("");
  const auto gpu_mem_bytes =
      gibibytes(fields, "gpu_mem_gib", true, {least_gib_of_gpu, most_gib_of_gpu});
  machine.gpu_mem_bytes = gpu_mem_bytes.value_or(0);
  machine.host_ram_bytes =
      gibibytes(fields, "host_ram_gib", false, {least_gib_of_host, most_gib_of_host}).value_or(0);
  const Value* lock = fields.take("memlock_gib");
  if (lock == nullptr || lock->kind != ValueKind::text || lock->text != "unlimited")
    machine.memlock_bytes = gibibytes(fields, "memlock_gib", true, {.most = most_gib_of_host});
  machine.swap_free_bytes = gibibytes(fields, "swap_free_gib", true);
  machine.out_free_bytes = gibibytes(fields, "out_free_gib", true);
  machine.compute_capability = fields.text("compute_capability");
  machine.cores = static_cast<int>(fields.integer("cores", {1, 1 << 20}).value_or(1));
  read_rates(fields, machine);
  if (!fields.has("host_ram_gib")) fields.problem("host_ram_gib", "the key is missing");
  const bool has_problem =
      !gpu_mem_bytes && fields.has("gpu_mem_gib") && !fields.is_null("gpu_mem_gib");
  if (machine.gpus_per_node > 0 && machine.gpu_mem_bytes == 0 && !has_problem)
    fields.problem("gpu_mem_gib",
                   fmt::format("{} GPUs per node need their memory's size", machine.gpus_per_node));
  const std::vector<std::string> known = fields.asked();
  fields.refuse_unread([&](const Entry& entry) -> Fields::Refusal {
    const std::string nearest = nearest_word(entry.key, known);
    return {"unknown key", nearest.empty() ? fmt::format("there are: {}", fmt::join(known, ", "))
                                           : fmt::format("the nearest is `{}`", nearest)};
  });
  if (!problems.empty()) return tl::unexpected(problems.to_error(file.string()));
  return machine;
}

HardwareSpec this_machine() {
  HardwareSpec machine;
  machine.cores = allowed_cores();
  machine.host_ram_bytes = total_memory_bytes();
  const auto limit =
      tightest_memory_limit_bytes(content_of("/proc/self/cgroup").value_or(""),
                                  content_of("/proc/self/mountinfo").value_or(""), content_of);
  if (limit && (machine.host_ram_bytes == 0 || *limit < machine.host_ram_bytes))
    machine.host_ram_bytes = *limit;
  rlimit lock{};
  if (getrlimit(RLIMIT_MEMLOCK, &lock) == 0 && lock.rlim_cur != RLIM_INFINITY)
    machine.memlock_bytes = static_cast<std::int64_t>(lock.rlim_cur);
  return machine;
}

}  // namespace underkeel::spec
