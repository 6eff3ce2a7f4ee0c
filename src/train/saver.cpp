#include "train/saver.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/fault.h"
#include "plan/stored_name.h"
#include "train/matmul_memory.h"
#include "train/model_card.h"

namespace underkeel::train {

namespace {

/// The save's own time limit while it lives.
class TimeLimit {
 public:
  TimeLimit(comm::Communicator& control, const spec::RunConfig& run)
      : control_(control), usual_s_(run.collective_time_limit_s) {
    control_.set_time_limit(run.save_time_limit_s);
  }
  ~TimeLimit() { control_.set_time_limit(usual_s_); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  comm::Communicator& control_;
  double usual_s_;
};

// What one rank writes of a save: its shard of every part that the files hold.
std::int64_t own_bytes(const plan::Plan& plan, const CheckpointFiles& layout, int rank) {
  std::int64_t size_bytes = 0;
  for (const plan::Unit& unit : plan.schedule.units) {
    const ShardRange own = shard_of(unit.element_count, plan.world_size, rank);
    for (const plan::UnitTensor& tensor : unit.tensors) {
      const ShardRange range = intersect({tensor.begin, tensor.begin + tensor.element_count}, own);
      for (const plan::StatePart part : {plan::StatePart::weights, plan::StatePart::master,
                                         plan::StatePart::moment1, plan::StatePart::moment2})
        if (const auto place = layout.find(plan::stored_name(part, tensor.name)))
          size_bytes += bytes_of(*place->entry->type, range.size());
    }
  }
  return size_bytes;
}

// A full disk, a failing one, a folder that is not what was written: the training can go on.
bool is_of_the_disk(const Error& error) {
  return error.code == ErrorCode::io || error.code == ErrorCode::bad_file ||
         error.code == ErrorCode::does_not_fit;
}

}  // namespace

Saver::Saver(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
             comm::Communicator& control, exec::Executor& executor, RunLog& log,
             MemoryReport& memory)
    : job_(job),
      files_(files),
      collectives_(collectives),
      control_(control),
      executor_(executor),
      log_(log),
      memory_(memory) {}

Result<void> Saver::enter(std::string_view phase, std::int64_t step) {
  control_.set_phase(fmt::format("{} at step {}", phase, step));
  return comm::fault_point(control_.rank(), phase, step);
}

std::function<void(std::int64_t)> Saver::reports_of(const CheckpointFiles& layout) {
  const std::int64_t total_bytes = own_bytes(job_.plan, layout, control_.rank());
  auto report = [this, total_bytes](std::int64_t written_bytes) {
    collectives_.report_progress("write", written_bytes, total_bytes);
    control_.report_progress("write", written_bytes, total_bytes);
  };
  report(0);
  return report;
}

Result<void> Saver::tell(const Error& error) {
  error_ = error;
  if (control_.rank() == 0)
    log(LogLevel::error, "save failed; training goes on\n" + to_text(error));
  return log_.notice("save failed: " + error.what);
}

Result<void> Saver::begin(Progress progress) {
  const std::int64_t step = progress.step;
  UK_TRY_VOID(end());
  const TimeLimit limit(control_, job_.run);
  UK_TRY_VOID(enter("save", step));
  began_s_ = steady_now_s();
  UK_TRY_VOID(memory_.begin(MemoryPhase::save, step));
  SaveRequest request{.output = job_.output(), .step = step};
  if (control_.rank() == 0) {
    UK_TRY(extra, job_.folder_files(files_));
    request.extra = std::move(extra);
    if (job_.is_on_gpus)
      request.extra.push_back({matmul_file, to_json(kernels::cuda_matmul_choices())});
    const TrainerState& state = log_.state();
    request.extra.push_back({"trainer_state.json", "",
                             [&state](const TextSink& sink) { return state.write_json(sink); }});
    progress.trainer_state = state.without_history().to_json();
    progress.data = job_.data_identity();
    progress.sequences_per_step = job_.sequences_per_step();
    progress.evaluation = job_.datasets.evaluation_identity;
    request.state = progress.to_json();
  }
  request.report = reports_of(job_.checkpoint_files);
  UK_TRY_VOID(log_.save_begin(step, io::checkpoint_path(job_.output(), step)));
  auto writer =
      CheckpointWriter::begin(files_, control_, job_.checkpoint_files, std::move(request));
  if (!writer)
    return is_of_the_disk(writer.error()) ? tell(writer.error()) : tl::unexpected(writer.error());
  writer_ = std::move(*writer);
  exec::Inputs inputs;
  inputs.sink = writer_.get();
  UK_TRY_VOID(executor_.run(plan::SegmentKind::save, inputs));
  waited_s_ = steady_now_s() - began_s_;
  UK_TRY_VOID(memory_.sample());
  return job_.run.save.asynchronous ? Result<void>{} : end();
}

Result<void> Saver::end() {
  if (!writer_) return {};
  const double waits_since_s = steady_now_s();
  UK_TRY_VOID(executor_.drain());
  const TimeLimit limit(control_, job_.run);
  UK_TRY_VOID(memory_.sample());
  const std::int64_t step = writer_->step();
  UK_TRY_VOID(enter("commit", step));
  Result<void> committed = writer_->commit(control_);
  if (!committed) {
    if (!is_of_the_disk(committed.error())) return committed;
    writer_->abandon(control_);
    writer_.reset();
    return tell(committed.error());
  }
  writer_.reset();
  last_step_ = step;
  error_.reset();
  UK_TRY_VOID(on_rank_0(control_, [&]() -> Result<void> {
    io::Rotation rotation{.save_total_limit = job_.run.save.total_limit.value_or(0),
                          .protected_steps = {}};
    if (protected_step_ > 0) rotation.protected_steps.push_back(protected_step_);
    UK_TRY_VOID(io::remove_old_checkpoints(files_, job_.output(), rotation));
    return {};
  }));
  UK_TRY_VOID(memory_.end());
  const double now_s = steady_now_s();
  return log_.save_end({.step = step,
                        .folder = io::checkpoint_path(job_.output(), step),
                        .size_bytes = job_.checkpoint_files.size_bytes(),
                        .elapsed_s = now_s - began_s_,
                        .waited_s = waited_s_ + now_s - waits_since_s});
}

Result<void> Saver::save_model(std::int64_t step) {
  UK_TRY_VOID(end());
  const TimeLimit limit(control_, job_.run);
  UK_TRY_VOID(enter("export", step));
  SaveRequest request{.output = job_.output(), .step = step, .is_checkpoint = false};
  if (control_.rank() == 0) {
    UK_TRY(extra, job_.folder_files(files_));
    request.extra = std::move(extra);
    request.extra.push_back({"README.md", model_card(job_, log_.state())});
  }
  request.report = reports_of(job_.final_files);
  UK_TRY(writer, CheckpointWriter::begin(files_, control_, job_.final_files, std::move(request)));
  exec::Inputs inputs;
  inputs.sink = writer.get();
  UK_TRY_VOID(executor_.run(plan::SegmentKind::save, inputs));
  UK_TRY_VOID(executor_.drain());
  Result<void> committed = writer->commit(control_);
  if (!committed) writer->abandon(control_);
  return committed;
}

}  // namespace underkeel::train
