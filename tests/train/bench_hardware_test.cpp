#include "train/bench_hardware.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "support/value_of.h"

namespace underkeel::train {
namespace {

using test::value_of;

TEST(BenchHardware, MeasuresTheCpuAndWritesWhatPlanReads) {
  const test::TemporaryFolder folder;
  const BenchHardwareRequest request{.device = "cpu",
                                     .folder = folder.path().string(),
                                     .seconds = 0.001,
                                     .file_bytes = std::int64_t{32} << 20};

  const BenchHardwareReport report = value_of(bench_hardware(request));

  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the measured file is gone";
  EXPECT_GE(report.rates.size(), 6u);
  for (const MeasuredRate& rate : report.rates) EXPECT_GT(rate.per_s, 0) << rate.name;
  const auto file = folder / "hardware.yaml";
  std::ofstream(file) << hardware_yaml(report);
  const spec::HardwareSpec read = value_of(spec::read_hardware_file(file));
  EXPECT_TRUE(read.rates_are_measured);
  EXPECT_EQ(read.cores, report.machine.cores);
  EXPECT_EQ(read.gpus_per_node, 0);
  const auto near = [](double value) { return testing::DoubleNear(value, value * 1e-3); };
  EXPECT_THAT(read.matmul_flops_per_s, near(report.machine.matmul_flops_per_s));
  EXPECT_THAT(read.memory_bytes_per_s, near(report.machine.memory_bytes_per_s));
  EXPECT_THAT(read.disk_bytes_per_s, near(report.machine.disk_bytes_per_s));
  EXPECT_THAT(static_cast<double>(read.host_ram_bytes),
              near(static_cast<double>(report.machine.host_ram_bytes)));
}

TEST(BenchHardware, DescribesAGpuToPlan) {
  BenchHardwareReport report;
  report.machine.gpus_per_node = 2;
  report.machine.link_bytes_per_s = 3.7e11;
  report.machine.link_latency_s = 2e-5;
  report.link = "a gather over 2 GPUs";
  report.machine.gpu_name = "NVIDIA H200";
  report.machine.gpu_mem_bytes = std::int64_t{139} << 30;
  report.machine.compute_capability = "9.0";
  report.machine.host_ram_bytes = std::int64_t{128} << 30;
  report.machine.matmul_flops_per_s = 6.7e14;
  const test::TemporaryFolder folder;
  const auto file = folder / "hardware.yaml";

  std::ofstream(file) << hardware_yaml(report);

  const spec::HardwareSpec read = value_of(spec::read_hardware_file(file));
  EXPECT_EQ(read.gpu_name, "NVIDIA H200");
  EXPECT_EQ(read.gpu_mem_bytes, std::int64_t{139} << 30);
  EXPECT_EQ(read.compute_capability, "9.0");
  EXPECT_EQ(read.matmul_flops_per_s, 6.7e14);
  EXPECT_EQ(read.gpus_per_node, 2);
  EXPECT_EQ(read.link_bytes_per_s, 3.7e11);
  EXPECT_EQ(read.link_latency_s, 2e-5);
}

}  // namespace
}  // namespace underkeel::train
