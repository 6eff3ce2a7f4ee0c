#pragma once
// Saves of one rank: a checkpoint that streams out under the following steps, and the final model.

#include <functional>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "train/job.h"
#include "train/memory_report.h"
#include "train/run_log.h"

namespace underkeel::train {

/// Every call but is_pending() and is_written() is made by all ranks together. A save that fails for the
/// disk's sake does not end the training: it is told, the older checkpoints stay, and the next save tries
/// again. error() then stays until a save succeeds.
class Saver {
 public:
  /// Both groups are told how far this rank's writes are: peers wait for a slow one in either.
  Saver(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
        comm::Communicator& control, exec::Executor& executor, RunLog& log, MemoryReport& memory);

  /// Starts the save of `progress.step`, with the trainer's state of now; an earlier one is ended first. Returns while it is being written, unless
  /// the run asks for saves that are waited for.
  Result<void> begin(Progress progress);
  bool is_pending() const { return writer_ != nullptr; }
  /// This rank has written all its pieces.
  bool is_written() const { return writer_ != nullptr && executor_.idle(); }
  /// Waits for the pieces, makes the folder a checkpoint, removes old ones. Nothing when none is pending.
  Result<void> end();
  /// The model's files in the output folder itself.
  Result<void> save_model(std::int64_t step);

  std::int64_t last_step() const { return last_step_; }
  void resumed_at(std::int64_t step) { last_step_ = step; }
  /// The checkpoint of `step` stays whatever save_total_limit says; 0: none.
  void protect(std::int64_t step) { protected_step_ = step; }
  const std::optional<Error>& error() const { return error_; }

 private:
  Result<void> enter(std::string_view phase, std::int64_t step);
  Result<void> tell(const Error& error);
  std::function<void(std::int64_t)> reports_of(const CheckpointFiles& layout);

  const Job& job_;
  io::FileSystem& files_;
  comm::Communicator& collectives_;
  comm::Communicator& control_;
  exec::Executor& executor_;
  RunLog& log_;
  MemoryReport& memory_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::int64_t last_step_ = -1;
  std::int64_t protected_step_ = 0;
  double began_s_ = 0;
  double waited_s_ = 0;
  std::optional<Error> error_;
};

}  // namespace underkeel::train
