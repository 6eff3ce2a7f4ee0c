#include "train/read_state.h"

#include "base/units.h"
#include "train/checkpoint_source.h"
#include "train/f16_range.h"
#include "train/model_source.h"
#include "train/standing_checkpoints.h"

namespace underkeel::train {

namespace {

using plan::SegmentKind;

constexpr std::int64_t largest_state_bytes = 4 * gibibyte;

struct Origin {
  exec::StateSource& source;
  std::string name;  // for messages
};

Result<void> read_from(const Origin& origin, const Job& job, exec::Executor& executor,
                       SegmentKind segment) {
  F16RangeSource in_range(origin.source, origin.name);
  exec::Inputs inputs;
  inputs.source = &origin.source;
  if (job.run.precision == spec::Precision::f16) inputs.source = &in_range;
  UK_TRY_VOID(executor.run(segment, inputs));
  return {};
}

}  // namespace

Result<std::int64_t> read_state(const Job& job, io::FileSystem& files, comm::Communicator& control,
                                exec::Executor& executor) {
  if (job.resume) {
    if (job.resume->weights_only) return read_weights(job, files, job.resume->checkpoint, executor);
    UK_TRY_VOID(verify_checkpoint(files, control, job.resume->checkpoint));
    CheckpointSource source(files, job.resume->checkpoint);
    UK_TRY_VOID(
        read_from({source, job.resume->checkpoint.folder}, job, executor, SegmentKind::resume));
    return source.bytes_read();
  }
  if (job.run.train_from_scratch) {
    FreshSource source(job.model, job.run.seed);
    UK_TRY_VOID(read_from({source, "new weights"}, job, executor, SegmentKind::load));
    return 0;
  }
  UK_TRY(model_files, io::open_model_files(files, job.model_folder.string()));
  // Where a GPU computes, the process's threads have nothing else to do, and the link is faster than one of them reads.
  ModelFolderSource source(files, std::move(model_files),
                           job.is_on_gpus ? job.threads_per_rank : 1);
  UK_TRY_VOID(read_from({source, job.model_folder.string()}, job, executor, SegmentKind::load));
  return source.bytes_read();
}

Result<std::int64_t> read_weights(const Job& job, io::FileSystem& files,
                                  io::FoundCheckpoint checkpoint, exec::Executor& executor) {
  const std::string folder = checkpoint.folder;
  CheckpointSource source(files, std::move(checkpoint));
  UK_TRY_VOID(read_from({source, folder}, job, executor, SegmentKind::load));
  return source.bytes_read();
}

Result<TrainerState> read_trainer_state(io::FileSystem& files, const Resume& resume,
                                        bool wants_history) {
  const std::string& folder = resume.checkpoint.folder;
  UK_TRY(state, TrainerState::from_json(resume.progress.trainer_state, folder));
  const std::string path = io::join_path(folder, "trainer_state.json");
  if (!wants_history || !state.history.empty() || !files.exists(path)) return state;
  UK_TRY(text, files.read_text(path, largest_state_bytes));
  UK_TRY(whole, TrainerState::from_json(text, path));
  state.history = std::move(whole.history);
  return state;
}

}  // namespace underkeel::train
