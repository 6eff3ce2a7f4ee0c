#pragma once
// An event file as TensorBoard reads it: records of protobuf messages with CRC-32C checksums. One
// file a process; TensorBoard shows the files of a folder as one run.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/file.h"
#include "train/trainer_state.h"

namespace underkeel::train {

/// CRC-32C (Castagnoli), as iSCSI and TFRecord have it.
std::uint32_t crc32c(std::span<const std::byte> bytes);

class TensorboardFile {
 public:
  /// Makes `folder` and a file "events.out.tfevents.TIME.HOST.PID.0" in it, which begins with the
  /// version record. `now_s`: seconds since 1970.
  static Result<TensorboardFile> create(io::FileSystem& files, const std::string& folder,
                                        double now_s);

  /// The values of a log entry under the Trainer's tags: train/loss, eval/loss, train/epoch, ...
  /// One record, one write at the end of the file.
  Result<void> append(const LogEntry& entry, double now_s);

 private:
  explicit TensorboardFile(io::File file) : file_(std::move(file)) {}
  Result<void> write(std::string_view event);

  io::File file_;
  std::int64_t end_bytes_ = 0;
};

}  // namespace underkeel::train
