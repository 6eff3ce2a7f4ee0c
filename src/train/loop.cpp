#include "train/loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/fault.h"
#include "data/batch.h"
#include "train/checkpoint_source.h"
#include "train/learning_rate.h"
#include "train/model_source.h"
#include "train/progress.h"
#include "train/saver.h"
#include "train/signals.h"
#include "train/wait_teller.h"

namespace underkeel::train {

namespace {

using plan::SegmentKind;

ProgressOptions progress_of_rank(int rank) {
  ProgressOptions options = progress_on(STDERR_FILENO);
  options.is_shown = rank == 0;
  return options;
}

// What a rank tells the others with each update (Input::control).
constexpr double save_is_written = 1;

std::int64_t cadence_steps(spec::Cadence strategy, std::int64_t steps, double fraction,
                           std::int64_t total_steps) {
  if (strategy != spec::Cadence::steps) return 0;
  if (fraction > 0)
    return static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(total_steps)));
  return steps;
}

class RankLoop {
 public:
  RankLoop(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
           comm::Communicator& control, data::Sampler sampler, RunLog log)
      : job_(job),
        files_(files),
        collectives_(collectives),
        control_(control),
        sampler_(std::move(sampler)),
        log_(std::move(log)),
        progress_(progress_of_rank(control.rank())) {}

  Result<void> run();

 private:
  bool is_first() const { return control_.rank() == 0; }
  Result<void> enter(std::string_view phase) {
    control_.set_phase(fmt::format("{} at step {}", phase, step_));
    collectives_.set_phase(fmt::format("{} at step {}", phase, step_));
    return comm::fault_point(control_.rank(), phase, step_);
  }

  Result<void> load();
  Result<void> read_state();
  Result<void> train_steps();
  Result<bool> one_step();  // false: a stop was agreed
  Result<exec::Outputs> run_window(const data::Window& window, double window_targets);
  Result<void> after_step(const data::Window& window);
  Result<void> evaluate();
  void show(const StepRecord& record, bool is_logged);
  Result<std::vector<double>> exchange(std::initializer_list<double> own);

  const Job& job_;
  io::FileSystem& files_;
  comm::Communicator& collectives_;
  comm::Communicator& control_;
  data::Sampler sampler_;
  RunLog log_;
  std::unique_ptr<exec::Executor> executor_;

  std::int64_t step_ = 0;
  data::DataPosition position_;
  std::int64_t samples_seen_ = 0;
  std::int64_t last_evaluated_step_ = -1;
  std::optional<MemoryReport> memory_;
  std::unique_ptr<Saver> saver_;
  ProgressBar progress_;
  StepRate rate_;
};

Result<std::vector<double>> RankLoop::exchange(std::initializer_list<double> own) {
  std::vector<double> all(own.size() * static_cast<std::size_t>(control_.world_size()));
  UK_TRY_VOID(control_.all_gather_values(std::span(own.begin(), own.size()), all));
  return all;
}

Result<void> RankLoop::load() {
  UK_TRY_VOID(enter("load"));
  exec::ExecutorOptions options;
  options.thread_count = job_.threads_per_rank;
  options.gpu = job_.gpu.get();
  const kernels::KernelTable& kernels = job_.gpu ? kernels::cuda_kernels() : kernels::cpu_kernels();
  UK_TRY(executor, exec::Executor::make(job_.plan, kernels, collectives_, options));
  executor_ = std::move(executor);
  const std::int64_t evaluations =
      job_.run.evaluation.strategy == spec::Cadence::no ? 1 : job_.total_steps;
  memory_.emplace(job_.plan, MemorySource::of(*executor_),
                  MemoryReportOptions{.rank = control_.rank(),
                                      .ranks_in_process = job_.ranks_in_process,
                                      .planned_process_bytes = job_.planned_process_bytes,
                                      .expected_phases = std::min<std::int64_t>(
                                          1024, job_.total_steps + evaluations + 2)});
  saver_ =
      std::make_unique<Saver>(job_, files_, collectives_, control_, *executor_, log_, *memory_);
  if (job_.resume) UK_TRY_VOID(memory_->begin(MemoryPhase::resume, job_.resume->progress.step));
  UK_TRY_VOID(read_state());
  return memory_->end();
}

Result<void> RankLoop::read_state() {
  exec::Inputs inputs;
  if (job_.resume && !job_.resume->weights_only) {
    CheckpointSource source(files_, job_.resume->checkpoint);
    inputs.source = &source;
    UK_TRY_VOID(executor_->run(SegmentKind::resume, inputs));
  } else if (job_.resume) {
    CheckpointSource source(files_, job_.resume->checkpoint);
    inputs.source = &source;
    UK_TRY_VOID(executor_->run(SegmentKind::load, inputs));
    if (is_first())
      UK_TRY_VOID(
          log_.notice("resumed with weights only: the optimizer's moments start from zero"));
  } else if (job_.run.train_from_scratch) {
    FreshSource source(job_.model, job_.run.seed);
    inputs.source = &source;
    UK_TRY_VOID(executor_->run(SegmentKind::load, inputs));
  } else {
    UK_TRY(model_files, io::open_model_files(files_, job_.model_folder.string()));
    ModelFolderSource source(files_, std::move(model_files));
    inputs.source = &source;
    UK_TRY_VOID(executor_->run(SegmentKind::load, inputs));
  }
  return {};
}

Result<void> RankLoop::run() {
  control_.set_time_limit(job_.run.collective_time_limit_s);
  collectives_.set_time_limit(job_.run.collective_time_limit_s);
  UK_TRY_VOID(load());
  if (job_.resume) {
    step_ = job_.resume->progress.step;
    saver_->resumed_at(step_);
    position_ = job_.resume->progress.position;
    UK_TRY(state, TrainerState::from_json(job_.resume->progress.trainer_state,
                                          job_.resume->checkpoint.folder));
    UK_TRY_VOID(log_.begin(ResumePoint{job_.resume->checkpoint.folder, std::move(state)}));
  } else {
    UK_TRY_VOID(log_.begin(std::nullopt));
  }
  return train_steps();
}

Result<void> RankLoop::train_steps() {
  while (step_ < job_.total_steps) {
    UK_TRY(goes_on, one_step());
    if (goes_on) continue;
    if (step_ > 0 && saver_->last_step() != step_) UK_TRY_VOID(saver_->begin(step_, position_));
    UK_TRY_VOID(saver_->end());
    UK_TRY_VOID(log_.stopped("signal"));
    UK_TRY_VOID(write_memory_report(control_, files_, job_.output(), *memory_));
    progress_.end();
    if (saver_->error()) return tl::unexpected(*saver_->error());
    return fail(
        ErrorCode::stopped,
        step_ > 0 ? fmt::format("stopped by a signal after step {} of {}", step_, job_.total_steps)
                  : std::string("stopped by a signal before the first step"),
        job_.output(),
        step_ > 0 ? "run the same command again to go on from there"
                  : "run the same command again");
  }
  UK_TRY_VOID(saver_->end());
  const spec::EvaluationConfig& evaluation = job_.run.evaluation;
  if (evaluation.at_end && last_evaluated_step_ != step_) UK_TRY_VOID(evaluate());
  if (job_.run.zero.gather_weights_on_save) UK_TRY_VOID(saver_->save_model(step_));
  progress_.end();
  UK_TRY_VOID(write_memory_report(control_, files_, job_.output(), *memory_));
  if (is_first()) UK_TRY_VOID(log_.finish(samples_seen_));
  if (saver_->error()) return tl::unexpected(*saver_->error());
  if (is_first())
    log(LogLevel::info,
        fmt::format("{} steps in {}; the {} in {}", step_, format_duration(log_.elapsed_s()),
                    job_.run.zero.gather_weights_on_save ? "model is" : "checkpoints are",
                    job_.output()));
  return {};
}

Result<exec::Outputs> RankLoop::run_window(const data::Window& window, double window_targets) {
  const std::size_t count = window.micro_batches.size();
  for (std::size_t i = 0; i < count; ++i) {
    const data::MicroBatch& batch = window.micro_batches[i];
    exec::Inputs inputs;
    inputs.tokens = batch.tokens;
    inputs.targets = batch.targets;
    inputs.positions = batch.positions;
    inputs.sequence_starts = batch.sequence_starts;
    inputs.gradient_scale = static_cast<float>(1.0 / window_targets);
    const SegmentKind kind = count == 1       ? SegmentKind::micro_only
                             : i == 0         ? SegmentKind::micro_first
                             : i + 1 == count ? SegmentKind::micro_last
                                              : SegmentKind::micro_middle;
    UK_TRY_VOID(executor_->run(kind, inputs));
  }
  exec::Inputs update;
  update.step_values = step_values(job_.run.optimizer, step_, job_.total_steps);
  update.control = saver_->is_written() ? save_is_written : 0;
  return executor_->run(SegmentKind::update, update);
}

Result<bool> RankLoop::one_step() {
  UK_TRY_VOID(enter("step"));
  const double began_s = steady_now_s();
  UK_TRY(window, data::read_window(*job_.datasets.training, sampler_, position_));
  std::int64_t rows = 0;
  for (const data::MicroBatch& batch : window.micro_batches) rows += batch.row_count();
  UK_TRY(shared, exchange({static_cast<double>(window.target_count), static_cast<double>(rows),
                           static_cast<double>(stop_signal())}));
  double targets = 0;
  double tokens = 0;
  int signal = 0;
  for (std::size_t rank = 0; rank < shared.size(); rank += 3) {
    targets += shared[rank];
    tokens += shared[rank + 1];
    if (shared[rank + 2] != 0) signal = static_cast<int>(shared[rank + 2]);
  }
  if (signal != 0) {
    UK_TRY_VOID(log_.signal(signal, step_));
    return false;
  }
  position_ = window.end;
  StepRecord record{.epoch = sampler_.epochs_at(window.end),
                    .learning_rate = learning_rate_at(job_.run.optimizer, step_, job_.total_steps),
                    .tokens = static_cast<std::int64_t>(tokens)};
  bool save_written_everywhere = saver_->is_pending();
  if (targets == 0) {
    const std::string note = fmt::format(
        "step {} has no trained token on any rank: no update, weights unchanged", step_ + 1);
    progress_.note(note);
    UK_TRY_VOID(log_.notice(note));
    save_written_everywhere = false;
  } else {
    UK_TRY(outputs, run_window(window, targets));
    double loss = 0;
    for (std::size_t rank = 0; rank < outputs.totals.size(); rank += plan::total_count) {
      loss += outputs.totals[rank + plan::total_loss];
      save_written_everywhere &= outputs.totals[rank + plan::total_control] == save_is_written;
    }
    record.loss = loss / targets;
    record.gradient_norm = outputs.clip[0];
    if (outputs.clip[2] == 0 || !std::isfinite(record.loss))
      return fail(
          ErrorCode::not_finite,
          fmt::format(
              "loss {} and gradient norm {} are not both finite; weights are as step {} left them",
              record.loss, record.gradient_norm, step_),
          fmt::format("step {} of {}", step_ + 1, job_.total_steps),
          "lower learning_rate, or look at the samples of this step; the newest checkpoint is "
          "sound");
  }
  ++step_;
  record.step = step_;
  record.step_s = steady_now_s() - began_s;
  samples_seen_ += job_.run.sequences_per_micro_batch * job_.world_size *
                   static_cast<std::int64_t>(window.micro_batches.size());
  UK_TRY(entry, log_.step(record));
  rate_.add(record.tokens, record.step_s);
  show(record, entry.has_value());
  if (save_written_everywhere) UK_TRY_VOID(saver_->end());
  UK_TRY_VOID(after_step(window));
  return true;
}

Result<void> RankLoop::after_step(const data::Window& window) {
  const spec::RunConfig& run = job_.run;
  const bool last = step_ == job_.total_steps;
  const bool epoch_ends =
      std::floor(sampler_.epochs_at(window.end)) > std::floor(sampler_.epochs_at(window.begin));
  const auto due = [&](spec::Cadence strategy, std::int64_t steps, double fraction) {
    if (strategy == spec::Cadence::epoch) return epoch_ends;
    const std::int64_t every = cadence_steps(strategy, steps, fraction, job_.total_steps);
    return every > 0 && step_ % every == 0;
  };
  if (due(run.evaluation.strategy, run.evaluation.steps, run.evaluation.steps_fraction))
    UK_TRY_VOID(evaluate());
  const bool saves = run.save.strategy != spec::Cadence::no;
  if (due(run.save.strategy, run.save.steps, run.save.steps_fraction) || (last && saves)) {
    UK_TRY_VOID(saver_->begin(step_, position_));
  }
  return {};
}

void RankLoop::show(const StepRecord& record, bool is_logged) {
  const auto memory = read_process_memory();
  progress_.step({.step = record.step,
                  .total_steps = job_.total_steps,
                  .loss = record.loss,
                  .gradient_norm = record.gradient_norm,
                  .learning_rate = record.learning_rate,
                  .tokens_per_s = rate_.tokens_per_s(),
                  .remaining_s = rate_.remaining_s(job_.total_steps - record.step),
                  .memory_bytes = memory ? memory->resident_bytes : 0,
                  .planned_memory_bytes = job_.planned_process_bytes},
                 is_logged);
}

Result<void> RankLoop::evaluate() {
  UK_TRY_VOID(enter("evaluate"));
  if (!job_.datasets.evaluation) return {};
  UK_TRY_VOID(memory_->begin(MemoryPhase::evaluate, step_));
  const data::SampleSource& source = *job_.datasets.evaluation;
  const double began_s = steady_now_s();
  const auto batches = data::evaluation_batches(source.count(), job_.run.evaluation.batch_size,
                                                job_.world_size, control_.rank());
  double targets = 0;
  std::int64_t done = 0;
  for (const auto& ids : batches) {
    progress_.phase("evaluate", done++, static_cast<std::int64_t>(batches.size()));
    UK_TRY(batch, data::make_micro_batch(source, ids));
    targets += static_cast<double>(batch.target_count);
    exec::Inputs inputs;
    inputs.tokens = batch.tokens;
    inputs.targets = batch.targets;
    inputs.positions = batch.positions;
    inputs.sequence_starts = batch.sequence_starts;
    UK_TRY_VOID(executor_->run(SegmentKind::evaluate, inputs));
    // A stop is agreed on between batches; what was summed so far is dropped.
    UK_TRY(stops, exchange({static_cast<double>(stop_signal())}));
    if (std::any_of(stops.begin(), stops.end(), [](double stop) { return stop != 0; })) {
      UK_TRY_VOID(executor_->run(SegmentKind::evaluate_end, {}));
      return {};
    }
  }
  UK_TRY(outputs, executor_->run(SegmentKind::evaluate_end, {}));
  UK_TRY(counts, exchange({targets}));
  const double all_targets = std::accumulate(counts.begin(), counts.end(), 0.0);
  double loss = 0;
  for (std::size_t rank = 0; rank < outputs.totals.size(); rank += plan::total_count)
    loss += outputs.totals[rank + plan::total_loss];
  last_evaluated_step_ = step_;
  const EvaluationRecord record{.step = step_,
                                .epoch = sampler_.epochs_at(position_),
                                .loss = loss / all_targets,
                                .target_tokens = static_cast<std::int64_t>(all_targets),
                                .samples = source.count(),
                                .batches = static_cast<std::int64_t>(batches.size()),
                                .elapsed_s = steady_now_s() - began_s};
  UK_TRY_VOID(log_.evaluation(record));
  progress_.note(fmt::format("evaluation at step {}: loss {:.4f}, perplexity {:.3f}", step_,
                             record.loss, std::exp(record.loss)));
  return memory_->end();
}

}  // namespace

Result<void> run_rank(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
                      comm::Communicator& control) {
  UK_TRY(sampler, data::Sampler::make(job.sampler_config(control.rank())));
  const spec::RunConfig& run = job.run;
  RunLogOptions options;
  options.is_writer = control.rank() == 0;
  options.overwrite_output = run.overwrite_output;
  options.log_first_step = run.log_first_step;
  options.plot_loss = run.plot_loss;
  options.fresh.total_steps = job.total_steps;
  options.fresh.epochs_planned =
      static_cast<double>(job.total_steps) /
      static_cast<double>(std::max<std::int64_t>(1, job.updates_per_epoch));
  options.fresh.logging_steps = run.logging_steps;
  options.fresh.save_steps = run.save.steps;
  options.fresh.evaluation_steps = run.evaluation.steps;
  options.fresh.sequences_per_micro_batch = run.sequences_per_micro_batch;
  options.expected_entries =
      job.total_steps / std::max<std::int64_t>(1, run.logging_steps) + job.total_steps + 8;
  UK_TRY(log, RunLog::open(files, job.output(), options));
  std::optional<WaitTeller> teller;
  if (control.world_size() > 1 && control.rank() <= 1)
    teller.emplace(std::vector<const comm::Communicator*>{&collectives, &control});
  RankLoop loop(job, files, collectives, control, std::move(sampler), std::move(log));
  return loop.run();
}

}  // namespace underkeel::train
