#include <map>

#include "spec/cgroup.h"
#include "spec/hardware_spec.h"
#include "spec/run_files.h"

namespace underkeel::spec {
namespace {

class Hardware : public RunFiles {
 protected:
  Result<HardwareSpec> read_machine(const std::string& text) {
    return read_hardware_file(write("hardware.yaml", text));
  }
  std::string error_of(const std::string& text) {
    const auto machine = read_machine(text);
    return machine ? "accepted" : to_text(machine.error());
  }
};

TEST_F(Hardware, ReadsEveryKey) {
  const auto machine = read_machine(R"({"nodes": 2, "gpus_per_node": 8, "gpu_name": "H100",
    "gpu_mem_gib": 79.5, "host_ram_gib": 512, "memlock_gib": 8, "swap_free_gib": 100,
    "out_free_gib": 6, "compute_capability": "9.0", "cores": 64, "link_bytes_per_s": 1e11,
    "link_latency_s": 1e-6, "network_bytes_per_s": 4e10, "network_latency_s": 2e-5, "memory_bytes_per_s": 7.2e10, "disk_bytes_per_s": 1.2e9,
    "matmul_flops_per_s": 7.5e14, "rates_are_measured": true})");

  ASSERT_TRUE(machine.has_value()) << to_text(machine.error());
  EXPECT_EQ(machine->nodes, 2);
  EXPECT_EQ(machine->gpus_per_node, 8);
  EXPECT_EQ(machine->gpu_name, "H100");
  EXPECT_EQ(machine->gpu_mem_bytes, (std::int64_t{159} << 30) / 2);
  EXPECT_EQ(machine->host_ram_bytes, std::int64_t{512} << 30);
  EXPECT_EQ(machine->memlock_bytes, std::int64_t{8} << 30);
  EXPECT_EQ(machine->swap_free_bytes, std::int64_t{100} << 30);
  EXPECT_EQ(machine->out_free_bytes, std::int64_t{6} << 30);
  EXPECT_EQ(machine->compute_capability, "9.0");
  EXPECT_EQ(machine->cores, 64);
  EXPECT_EQ(machine->link_bytes_per_s, 1e11);
  EXPECT_EQ(machine->link_latency_s, 1e-6);
  EXPECT_EQ(machine->network_bytes_per_s, 4e10);
  EXPECT_EQ(machine->network_latency_s, 2e-5);
  EXPECT_EQ(machine->memory_bytes_per_s, 7.2e10);
  EXPECT_EQ(machine->disk_bytes_per_s, 1.2e9);
  EXPECT_EQ(machine->matmul_flops_per_s, 7.5e14);
  EXPECT_TRUE(machine->rates_are_measured);
}

TEST_F(Hardware, LeavesUnknownWhatTheFileDoesNotSay) {
  const auto machine = read_machine("host_ram_gib: 16\nmemlock_gib: unlimited\n");

  ASSERT_TRUE(machine.has_value()) << to_text(machine.error());
  EXPECT_EQ(machine->nodes, 1);
  EXPECT_EQ(machine->gpus_per_node, 0);
  EXPECT_FALSE(machine->memlock_bytes.has_value());
  EXPECT_FALSE(machine->swap_free_bytes.has_value());
  EXPECT_FALSE(machine->rates_are_measured);
}

TEST_F(Hardware, SaysWhichUnitASizeBeyondAnyMachineIsIn) {
  const auto refuses = [&](const std::string& line, const std::string& what,
                           const std::string& fix) {
    const std::string more = line.starts_with("host") ? "" : "host_ram_gib: 64\n";
    const std::string error = error_of(more + line + "\n");
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_NE(error.find(fix), std::string::npos) << error;
    EXPECT_EQ(error.find("need their memory"), std::string::npos) << error;
  };
  refuses("gpus_per_node: 8\ngpu_mem_gib: 81920",
          "81920 GiB are more than there are in any machine",
          "if it is in MiB, write gpu_mem_gib: 80");
  refuses("gpu_mem_gib: 24564", "24564 GiB", "write gpu_mem_gib: 23.9883");
  refuses("gpu_mem_gib: 83886080", "83886080 GiB", "if it is in KiB, write gpu_mem_gib: 80");
  refuses("gpu_mem_gib: 85899345920", "85899345920 GiB",
          "if it is in bytes, write gpu_mem_gib: 80");
  refuses("host_ram_gib: 524288", "524288 GiB", "if it is in MiB, write host_ram_gib: 512");
  refuses("memlock_gib: 65536", "65536 GiB", "if it is in MiB, write memlock_gib: 64");

  refuses("host_ram_gib: 64\ngpus_per_node: 1\ngpu_mem_gib: 0.08",
          "0.08 GiB are 81.9 MiB, less than a run can start in",
          "if it is in TiB, write gpu_mem_gib: 81.92");
  refuses("host_ram_gib: 0.001", "0.001 GiB are 1.0 MiB, less than a run can start in",
          "the number is in GiB: from 0.0625 on");

  EXPECT_EQ(error_of("host_ram_gib: 0.0625\ngpus_per_node: 1\ngpu_mem_gib: 1\n"), "accepted");
  EXPECT_EQ(error_of("host_ram_gib: 32768\ngpus_per_node: 1\ngpu_mem_gib: 1024\n"), "accepted");
  EXPECT_EQ(error_of("host_ram_gib: 64\nswap_free_gib: 500000\nout_free_gib: 500000\n"),
            "accepted");
}

TEST_F(Hardware, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(error_of("gpus_per_node: 2\ngpu_mem_gb: 80\nhost_ram_gib: 0\n"),
            "error: 3 problems\n"
            "  host_ram_gib (line 3): 0 is out of range: more than 0 and at most 32768 is "
            "wanted\n"
            "  gpu_mem_gib: 2 GPUs per node need their memory's size\n"
            "  gpu_mem_gb (line 2): unknown key; the nearest is `gpu_mem_gib`\n"
            "where: " +
                (root_ / "hardware.yaml").string());
  EXPECT_NE(error_of("nodes: 1\n").find("the key is missing"), std::string::npos);
  EXPECT_NE(error_of("host_ram_gib: 1\nmatmul_flops_per_s: 312\n")
                .find("if it is in TFLOP/s, write matmul_flops_per_s: 3.12e+14"),
            std::string::npos);
  EXPECT_NE(error_of("host_ram_gib: 1\nnetwork_bytes_per_s: 50\n")
                .find("if it is in GB/s, write network_bytes_per_s: 5e+10"),
            std::string::npos);
  EXPECT_NE(error_of("host_ram_gib: 1\nnodes: 1000000\ngpus_per_node: 1024\ngpu_mem_gib: 80\n")
                .find("1000000 nodes of 1024 GPUs are 1024000000"),
            std::string::npos);
  EXPECT_NE(error_of("host_ram_gib: 1\nnodes: 0\n").find("0 is out of range"), std::string::npos);
  EXPECT_NE(error_of("- 1\n").find("a mapping of keys is wanted"), std::string::npos);
}

TEST(ThisMachine, HasCoresAndMemory) {
  const HardwareSpec machine = this_machine();

  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.host_ram_bytes, std::int64_t{1} << 28);
  EXPECT_LT(machine.host_ram_bytes, std::int64_t{1} << 50);
}

std::optional<std::int64_t> limit_with(const std::string& groups, const std::string& mounts,
                                       const std::map<std::string, std::string>& files) {
  return tightest_memory_limit_bytes(
      groups, mounts, [&](const std::filesystem::path& path) -> std::optional<std::string> {
        const auto found = files.find(path.string());
        if (found == files.end()) return std::nullopt;
        return found->second;
      });
}

constexpr const char* version_2_mount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* version_1_mount =
    "36 32 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST(MemoryLimit, IsTheTightestOnTheWayUp) {
  const auto limit = limit_with("0::/user.slice/job.scope\n", version_2_mount,
                                {{"/sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n"},
                                 {"/sys/fs/cgroup/user.slice/memory.max", "4096000\n"},
                                 {"/sys/fs/cgroup/memory.max", "8192000\n"}});

  EXPECT_EQ(limit, 4096000);
}

TEST(MemoryLimit, ReadsVersionOneAndItsNumberForNone) {
  const std::map<std::string, std::string> files = {
      {"/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "1000000\n"}};

  EXPECT_EQ(limit_with("5:cpu,cpuacct:/x\n4:memory:/slurm/job\n", version_1_mount, files), 1000000);
}

TEST(MemoryLimit, TakesTheSmallerOfBothVersions) {
  EXPECT_EQ(limit_with("4:memory:/a\n0::/b\n", std::string(version_1_mount) + version_2_mount,
                       {{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500\n"},
                        {"/sys/fs/cgroup/b/memory.max", "300\n"}}),
            300);
}

TEST(MemoryLimit, StartsAtTheMountWhenAContainerShowsAPartOfTheTree) {
  const std::string mount = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
  const std::map<std::string, std::string> files = {{"/sys/fs/cgroup/memory.max", "700\n"},
                                                    {"/sys/fs/cgroup/in/memory.max", "600\n"}};

  EXPECT_EQ(limit_with("0::/docker/abc\n", mount, files), 700);
  EXPECT_EQ(limit_with("0::/docker/abc/in\n", mount, files), 600);
  EXPECT_EQ(limit_with("0::/docker/abcdef\n", mount, files), 700);
  EXPECT_EQ(limit_with("0::/../other\n", version_2_mount, files), 700);
}

TEST(MemoryLimit, IsNoneWithoutGroupsMountsOrFiles) {
  EXPECT_EQ(limit_with("", "", {}), std::nullopt);
  EXPECT_EQ(limit_with("0::/\n", version_2_mount, {}), std::nullopt);
  EXPECT_EQ(limit_with("garbage\n:::\n", "a - b\n", {}), std::nullopt);
}

}  // namespace
}  // namespace underkeel::spec
