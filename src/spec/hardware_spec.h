#pragma once
// The machines that a plan is made for: this one, or one described in a hardware.yaml.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace underkeel::spec {

struct HardwareSpec {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 0;  // 0: CPU ranks
  std::string gpu_name;
  std::int64_t gpu_mem_bytes = 0;
  std::int64_t gpu_joining_bytes =
      0;  // of a card, that joining it with others has taken beside gpu_mem_bytes
  std::int64_t host_ram_bytes = 0;  // of one node; the cgroup's limit where it is lower
  std::optional<std::int64_t> memlock_bytes;
  std::optional<std::int64_t> swap_free_bytes;
  std::optional<std::int64_t> out_free_bytes;
  std::optional<std::string> compute_capability;
  int cores = 1;
  // Measured or assumed rates; the source says which.
  double link_bytes_per_s = 5e9;  // between ranks of a node, each way
  double link_latency_s = 5e-6;
  double network_bytes_per_s = 1e9;  // of one rank to other nodes, each way
  double network_latency_s = 5e-5;  // what each further node adds to a gather, all of them to a sum
  double memory_bytes_per_s = 1e10;
  double disk_bytes_per_s = 1e9;
  double matmul_flops_per_s = 1e11;
  bool rates_are_measured = false;
};

/// Reads a hardware.yaml (or JSON): nodes, gpus_per_node, gpu_name, gpu_mem_gib, host_ram_gib
/// (required), memlock_gib ("unlimited" is the default), swap_free_gib, out_free_gib,
/// compute_capability, cores, link_bytes_per_s, link_latency_s, network_bytes_per_s, network_latency_s,
/// memory_bytes_per_s, disk_bytes_per_s, matmul_flops_per_s and rates_are_measured. Rates that are not given are round numbers, of a
/// data-centre GPU where there are GPUs.
/// Errors:  all problems of the file in one; unknown keys name the nearest known one.
Result<HardwareSpec> read_hardware_file(const std::filesystem::path& file);
/// This machine: the cores that the process may use, memory (the tightest limit of its control
/// groups where that is lower) and the limit for page-locked memory. GPUs and rates are not looked
/// at; both disks stay unknown.
HardwareSpec this_machine();

}  // namespace underkeel::spec
