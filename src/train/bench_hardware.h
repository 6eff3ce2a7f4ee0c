#pragma once
// Measures what a plan's times depend on: arithmetic of matrix products, memory, the link to a GPU, a disk.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/hardware_spec.h"

namespace underkeel::train {

struct BenchHardwareRequest {
  std::string device = "auto";                      // as RunConfig::device
  std::string folder = ".";                         // on the disk that is measured
  double seconds = 1;                               // for each measurement, about
  std::int64_t file_bytes = std::int64_t{1} << 30;  // of the file that is written, read and removed
};

struct MeasuredRate {
  std::string name;
  double per_s = 0;
  bool is_arithmetic = false;  // floating-point operations, else bytes
};

struct BenchHardwareReport {
  spec::HardwareSpec machine;  // with the rates that plans use
  std::vector<MeasuredRate> rates;
  std::string link;  // between ranks: how it was measured; empty: it was not
};

/// Errors:  does_not_fit, io: room for the file or on the GPU; those of choosing a device.
Result<BenchHardwareReport> bench_hardware(const BenchHardwareRequest& request);

/// hardware.yaml as spec::read_hardware_file() reads it; single rates stand beside as comments.
std::string hardware_yaml(const BenchHardwareReport& report);

}  // namespace underkeel::train
