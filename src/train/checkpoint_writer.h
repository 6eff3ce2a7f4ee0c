#pragma once
// One save of all ranks: every rank writes its own ranges into shared files; rank 0 makes it complete.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/agree.h"
#include "comm/communicator.h"
#include "exec/state_io.h"
#include "io/checkpoint.h"
#include "io/model_files.h"
#include "train/checkpoint_files.h"
#include "train/text_file.h"

namespace underkeel::train {

/// A small file that goes into the folder as it is: config.json, tokenizer files.
struct ExtraFile {
  std::string name;
  std::string text;
  /// In place of `text`, for one that need not be small: hands its pieces to the sink.
  std::function<Result<void>(const TextSink&)> write = {};
};

struct SaveRequest {
  std::string output;  // folder that holds checkpoint-N
  std::int64_t step = 0;
  std::string plan_hash;
  std::string state;  // the trainer's JSON
  std::vector<ExtraFile> extra;
  /// A checkpoint-N folder; else the model's files go into `output` itself, as the result of a run.
  bool is_checkpoint = true;
  /// Told after every piece how many bytes this rank has written, from the disk lane.
  std::function<void(std::int64_t written_bytes)> report = {};
};

/// begin() and commit() are called by all ranks together; write() by the executor's disk lane. A write that
/// fails ends the save, not the run: commit() tells all ranks of it.
class CheckpointWriter : public exec::StateSink {
 public:
  static Result<std::unique_ptr<CheckpointWriter>> begin(io::FileSystem& files,
                                                         comm::Communicator& control,
                                                         const CheckpointFiles& layout,
                                                         SaveRequest request);

  /// A part that the layout does not hold (weights-only saves) is passed over.
  Result<void> write(const plan::UnitTensor& tensor, plan::StatePart part, std::int64_t begin,
                     std::int64_t end, DType type, const void* from) override;

  /// Syncs this rank's writes, collects everybody's checksums, and makes the folder a checkpoint.
  /// After an error nothing is complete and the older checkpoints are as they were.
  Result<void> commit(comm::Communicator& control);
  /// Rank 0 removes what was written.
  void abandon(comm::Communicator& control);

  std::int64_t step() const { return request_.step; }
  std::int64_t written_bytes() const { return written_bytes_; }

 private:
  CheckpointWriter(io::FileSystem& files, const CheckpointFiles& layout, SaveRequest request);
  std::string folder() const;
  Result<void> make_files();
  Result<void> write_range(const CheckpointFiles::Place& place, std::int64_t first_byte,
                           std::span<const std::byte> bytes);
  Result<void> finish_on_rank_0(const std::vector<std::string>& part_texts);
  Result<void> move_into_output();

  io::FileSystem& files_;
  const CheckpointFiles& layout_;
  SaveRequest request_;
  std::vector<io::File> open_;  // by file of the layout
  std::unordered_map<std::string, CheckpointFiles::Place> places_;
  io::RankParts parts_;
  std::int64_t written_bytes_ = 0;
  std::optional<Error> write_error_;
};

}  // namespace underkeel::train
