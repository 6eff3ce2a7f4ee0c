#include "train/loop.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/last_resort.h"
#include "train/log_options.h"
#include "train/matmul_memory.h"
#include "train/rank_loop.h"
#include "train/read_state.h"
#include "train/standing_checkpoints.h"
#include "train/wait_teller.h"

namespace underkeel::train {

void RankLoop::give_up(const Error& error) {
  // Ranks that are threads are ended by the thread that waits for them.
  constexpr double grace_s = 10;
  if (device_.collectives && job_.ranks_in_process == 1) end_process_after(grace_s, error);
  collectives_.abort(error);
  control_.abort(error);
  if (device_.collectives) device_.collectives->abort();
}

Result<void> RankLoop::load() {
  UK_TRY_VOID(enter("load"));
  exec::ExecutorOptions options;
  options.thread_count = job_.threads_per_rank;
  if (device_.gpu) UK_TRY_VOID(device_.gpu->use());
  options.gpu = device_.gpu.get();
  options.device_collectives = device_.collectives.get();
  const kernels::KernelTable& kernels =
      device_.gpu ? kernels::cuda_kernels() : kernels::cpu_kernels();
  // Rank 0 chooses for all.
  const bool chooses = device_.gpu != nullptr && is_first();
  if (chooses) {
    std::vector<std::string> notes;
    options.matmul_timing_s = job_.run.matmul_timing_s;
    UK_TRY_VOID(recall_matmuls(files_, job_.resume ? &*job_.resume : nullptr, matmul_cache_folder(),
                               options.matmul_timing_s, notes));
    for (const std::string& note : notes) UK_TRY_VOID(log_.notice(note));
  }
  UK_TRY(executor, exec::Executor::make(job_.plan, kernels, collectives_, options));
  executor_ = std::move(executor);
  if (options.matmul_timing_s > 0) keep_matmuls(files_, matmul_cache_folder());
  const std::int64_t evaluations =
      job_.run.evaluation.strategy == spec::Cadence::no ? 1 : job_.total_steps;
  memory_.emplace(job_.plan, MemorySource::of(*executor_),
                  MemoryReportOptions{.rank = control_.rank(),
                                      .ranks_in_process = job_.ranks_in_process,
                                      .planned_process_bytes = job_.planned_process_bytes,
                                      .joining_bytes = job_.joining_bytes,
                                      .expected_phases = std::min<std::int64_t>(
                                          1024, job_.total_steps + evaluations + 2)});
  saver_ =
      std::make_unique<Saver>(job_, files_, collectives_, control_, *executor_, log_, *memory_);
  if (job_.resume) UK_TRY_VOID(memory_->begin(MemoryPhase::resume, job_.resume->progress.step));
  const double reading_since_s = steady_now_s();
  UK_TRY(bytes, read_state(job_, files_, control_, *executor_));
  UK_TRY_VOID(log_.loaded(bytes, steady_now_s() - reading_since_s));
  if (job_.resume && job_.resume->weights_only && is_first())
    UK_TRY_VOID(log_.notice("resumed with weights only: the optimizer's moments start from zero"));
  return memory_->end();
}

std::string RankLoop::how_to_go_on() const {
  if (step_ == 0) return "run the same command again";
  const std::string& from = job_.run.resume_from;
  if (from.empty() && !job_.run.overwrite_output)
    return "run the same command again to go on from there";
  const bool begins_anew = from.empty() || from == "none";
  return fmt::format("run the same command with {} to go on from there",
                     begins_anew && job_.run.overwrite_output
                         ? std::string("overwrite_output_dir=false")
                         : "resume_from_checkpoint=" + io::checkpoint_path(job_.output(), step_));
}

Result<void> RankLoop::run() {
  control_.set_time_limit(job_.run.collective_time_limit_s);
  collectives_.set_time_limit(job_.run.collective_time_limit_s);
  if (is_first())
    UK_TRY_VOID(files_.write_text_durably(io::join_path(job_.output(), values_file),
                                          spec::values_json(job_.run)));
  UK_TRY_VOID(load());
  if (is_first() && !job_.resume) UK_TRY_VOID(leave_earlier_run(files_, job_.output()));
  if (job_.resume) {
    step_ = job_.resume->progress.step;
    first_step_ = step_;
    saver_->resumed_at(step_);
    position_ = job_.resume->progress.position;
    overflows_.resume(job_.resume->progress);
    UK_TRY(state, read_trainer_state(files_, *job_.resume, is_first() || follows_plateau()));
    if (job_.resume->compares_evaluations) best_ = state.best;
    for (const LogEntry& entry : state.history)
      if (job_.resume->compares_evaluations && entry.kind == LogEntry::Kind::evaluation)
        plateau_.add(entry.value("eval_loss"));
    UK_TRY_VOID(log_.begin(ResumePoint{job_.resume->checkpoint.folder, std::move(state)}));
  } else {
    UK_TRY_VOID(log_.begin(std::nullopt));
  }
  return train_steps();
}

Result<void> RankLoop::train_steps() {
  if (job_.run.evaluation.on_start && step_ == 0) UK_TRY_VOID(evaluate());
  while (step_ < job_.total_steps && !stops_early_) {
    UK_TRY(goes_on, one_step());
    if (goes_on) continue;
    if (step_ > 0 && saver_->last_step() != step_) UK_TRY_VOID(saver_->begin(progress_of_run()));
    UK_TRY_VOID(saver_->end());
    UK_TRY_VOID(log_.stopped("signal"));
    UK_TRY_VOID(write_memory_report(control_, files_, job_.output(), *memory_, has_trained()));
    progress_.end();
    if (saver_->error()) return tl::unexpected(*saver_->error());
    return fail(
        ErrorCode::stopped,
        step_ > 0 ? fmt::format("stopped by a signal after step {} of {}", step_, job_.total_steps)
                  : std::string("stopped by a signal before the first step"),
        job_.output(), how_to_go_on());
  }
  return finish();
}

// In LLaMA-Factory's order: the model, the results, and what is evaluated after them.
Result<void> RankLoop::finish() {
  UK_TRY_VOID(saver_->end());
  UK_TRY_VOID(load_best());
  if (job_.run.zero.gather_weights_on_save) UK_TRY_VOID(saver_->save_model(step_));
  UK_TRY_VOID(log_.finish(samples_seen_));
  if (job_.run.evaluation.at_end && last_evaluated_step_ != step_) UK_TRY_VOID(evaluate());
  UK_TRY_VOID(executor_->check_guards());
  progress_.end();
  UK_TRY_VOID(write_memory_report(control_, files_, job_.output(), *memory_, has_trained()));
  if (saver_->error()) return tl::unexpected(*saver_->error());
  if (!is_first()) return {};
  const bool has_model = job_.run.zero.gather_weights_on_save;
  log(LogLevel::info, fmt::format("{} steps{} in {}; the {} in {}", step_, overflows_.summary(),
                                  format_duration(log_.elapsed_s()),
                                  has_model ? "model is" : "checkpoints are", job_.output()));
  if (!has_model)
    log(LogLevel::info,
        "no weights file was written, as stage3_gather_16bit_weights_on_model_save is false; "
        "`underkeel export` makes a model folder of a checkpoint");
  return {};
}

// load_best_model_at_end: the weights of the best checkpoint take the place of the last ones.
Result<void> RankLoop::load_best() {
  if (!job_.run.evaluation.loads_best_at_end || best_.step == 0 || best_.step == step_) return {};
  const std::string folder = io::checkpoint_path(job_.output(), best_.step);
  UK_TRY_VOID(enter("load the best model"));
  auto manifest = io::read_manifest(files_, folder);
  if (!manifest) {
    Error error = std::move(manifest).error();
    error.fix =
        "the model of the last step is in the newest checkpoint; `underkeel export` makes "
        "a model folder of it";
    return tl::unexpected(std::move(error));
  }
  UK_TRY_VOID(read_weights(job_, files_, {folder, *std::move(manifest)}, *executor_));
  last_evaluated_step_ = -1;  // these are other weights
  const std::string note =
      fmt::format("the best model is that of step {}: eval_loss {:.6g}", best_.step, *best_.value);
  progress_.note(note);
  return log_.notice(note);
}

Result<void> run_rank(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
                      comm::Communicator& control, RankDevice device) {
  UK_TRY(sampler, data::Sampler::make(job.sampler_config(control.rank())));
  UK_TRY(log, RunLog::open(files, job.output(), log_options_of(job, control.rank())));
  std::optional<WaitTeller> teller;
  if (control.world_size() > 1 && control.rank() <= 1)
    teller.emplace(std::vector<const comm::Communicator*>{&collectives, &control});
  RankLoop loop(job, files, collectives, control, std::move(device), std::move(sampler),
                std::move(log));
  Result<void> result = loop.run();
  if (!result && result.error().code != ErrorCode::stopped) loop.give_up(result.error());
  return result;
}

}  // namespace underkeel::train
