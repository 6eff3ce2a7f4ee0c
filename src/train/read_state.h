#pragma once
// Where the weights and the optimizer's state of a run come from when it starts.

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "exec/executor.h"
#include "io/file.h"
#include "train/job.h"
#include "train/trainer_state.h"

namespace underkeel::train {

/// Fills the homes: from the checkpoint that the run goes on from, from the model's folder, or with new
/// weights. Called by all ranks together. Gives the bytes that this rank has read.
/// Errors:  those of the files; bad_file for a weight that an fp16 run cannot hold.
Result<std::int64_t> read_state(const Job& job, io::FileSystem& files, comm::Communicator& control,
                                exec::Executor& executor);

/// The weights alone, from a checkpoint that this run has written. Gives the bytes that this rank has read.
Result<std::int64_t> read_weights(const Job& job, io::FileSystem& files,
                                  io::FoundCheckpoint checkpoint, exec::Executor& executor);

/// The trainer's state of a checkpoint: what the manifest has, with the history of trainer_state.json if that
/// is wanted.
Result<TrainerState> read_trainer_state(io::FileSystem& files, const Resume& resume,
                                        bool wants_history);

}  // namespace underkeel::train
