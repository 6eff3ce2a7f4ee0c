#pragma once
// State out of a native checkpoint: each rank reads the ranges it keeps, whoever wrote them.

#include <map>
#include <string>
#include <vector>

#include "exec/state_io.h"
#include "io/checkpoint.h"

namespace underkeel::train {

class CheckpointSource : public exec::StateSource {
 public:
  CheckpointSource(io::FileSystem& files, io::FoundCheckpoint checkpoint);
  /// Weights and master copy stand in for one another: an f32 run resumes from a bf16 run's master copy, a bf16
  /// run from an f32 run's weights.
  Result<void> read(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                    std::int64_t end, float* into) override;
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  io::FileSystem& files_;
  io::FoundCheckpoint checkpoint_;
  std::map<std::string, const io::CheckpointTensor*, std::less<>> tensors_;
  std::map<std::string, io::File> open_;
  std::vector<std::byte> chunk_;
  std::int64_t bytes_read_ = 0;
};

}  // namespace underkeel::train
