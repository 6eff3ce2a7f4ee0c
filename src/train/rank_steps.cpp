#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "train/not_finite.h"
#include "train/rank_loop.h"
#include "train/run_length.h"
#include "train/signals.h"

namespace underkeel::train {

using plan::SegmentKind;

namespace {

// What a rank tells the others with each update (Input::control).
constexpr double save_is_written = 1;

}  // namespace

Result<std::vector<double>> RankLoop::exchange(std::initializer_list<double> own) {
  std::vector<double> all(own.size() * static_cast<std::size_t>(control_.world_size()));
  UK_TRY_VOID(control_.all_gather_values(std::span(own.begin(), own.size()), all));
  return all;
}

bool RankLoop::follows_plateau() const {
  const spec::OptimizerConfig& optimizer = job_.run.optimizer;
  return !optimizer.deepspeed_schedule &&
         optimizer.schedule == spec::LearningRateSchedule::reduce_lr_on_plateau;
}

double RankLoop::rate() const {
  return follows_plateau()
             ? plateau_.rate()
             : learning_rate_at(job_.run.optimizer, step_ - overflows_.skipped(), job_.total_steps);
}

Progress RankLoop::progress_of_run() const {
  Progress progress{.step = step_, .position = position_};
  overflows_.keep_in(progress);
  return progress;
}

Result<exec::Outputs> RankLoop::run_window(const data::Window& window, double window_targets) {
  const std::size_t count = window.micro_batches.size();
  UK_TRY(distortion, comm::forward_distortion(control_.rank(), step_ + 1));
  for (std::size_t i = 0; i < count; ++i) {
    const data::MicroBatch& batch = window.micro_batches[i];
    exec::Inputs inputs;
    inputs.tokens = batch.tokens;
    inputs.targets = batch.targets;
    inputs.positions = batch.positions;
    inputs.sequence_starts = batch.sequence_starts;
    inputs.gradient_scale = static_cast<float>(overflows_.loss_scale() / window_targets);
    inputs.distortion = distortion;
    const SegmentKind kind = count == 1       ? SegmentKind::micro_only
                             : i == 0         ? SegmentKind::micro_first
                             : i + 1 == count ? SegmentKind::micro_last
                                              : SegmentKind::micro_middle;
    UK_TRY_VOID(executor_->run(kind, inputs));
  }
  exec::Inputs update;
  update.step_values = update_values(job_.run.optimizer, rate(), step_ + 1 - overflows_.skipped());
  update.step_values[3] =
      std::bit_cast<float>(static_cast<std::uint32_t>(step_ + 1 - overflows_.skipped()));
  update.loss_scale = static_cast<float>(overflows_.loss_scale());
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
                    .learning_rate = rate(),
                    .tokens = static_cast<std::int64_t>(tokens),
                    .ends_epoch = window.end.samples == 0 || step_ + 1 == job_.total_steps,
                    .flops = 6 * tokens * job_.counted_parameters};
  bool save_written_everywhere = saver_->is_pending();
  if (targets == 0) {
    record.has_targets = false;
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
    record.is_skipped = outputs.clip[2] == 0;
    if (record.is_skipped || !std::isfinite(record.loss) || overflows_.are_expected()) {
      UK_TRY(ends, take_overflow(record));
      if (ends) {
        position_ = window.begin;
        UK_TRY(error, not_finite(record, overflows_.reason_to_end()));
        return tl::unexpected(error);
      }
    }
  }
  ++step_;
  record.step = step_;
  record.step_s = steady_now_s() - began_s;
  samples_seen_ += job_.run.sequences_per_micro_batch * job_.world_size *
                   static_cast<std::int64_t>(window.micro_batches.size());
  if (const auto memory = read_process_memory()) record.process_bytes = memory->resident_bytes;
  record.planned_process_bytes = job_.planned_process_bytes;
  UK_TRY(entry, log_.step(record));
  rate_.add(record.tokens, record.step_s);
  show(record, entry.has_value());
  if (save_written_everywhere) UK_TRY_VOID(saver_->end());
  UK_TRY_VOID(after_step(window));
  return true;
}

Result<void> RankLoop::after_step(const data::Window& window) {
  const spec::RunConfig& run = job_.run;
  const spec::EvaluationConfig& evaluation = run.evaluation;
  const bool last = step_ == job_.total_steps;
  const bool epoch_ends = window.end.samples == 0 || last;
  const auto due = [&](spec::Cadence strategy, std::int64_t steps, double fraction) {
    if (strategy == spec::Cadence::epoch) return epoch_ends;
    const std::int64_t every = cadence_steps(strategy, steps, fraction, job_.total_steps);
    return every > 0 && (step_ % every == 0 || last);
  };
  const double delayed_until = evaluation.strategy == spec::Cadence::epoch
                                   ? sampler_.epochs_at(window.end)
                                   : static_cast<double>(step_);
  bool is_better = false;
  if (due(evaluation.strategy, evaluation.steps, evaluation.steps_fraction) &&
      evaluation.delay <= delayed_until) {
    UK_TRY(better, evaluate_and_compare());
    is_better = better;
  }
  const bool saves = run.save.strategy == spec::Cadence::best
                         ? is_better
                         : due(run.save.strategy, run.save.steps, run.save.steps_fraction);
  if (!saves) return {};
  // The best model of before is kept until the save that is still open is complete.
  UK_TRY_VOID(saver_->end());
  // The best model's checkpoint is named once it is there, or is the one that begins now.
  if (best_.step > 0 && best_.checkpoint != io::checkpoint_path(job_.output(), best_.step) &&
      (best_.step == step_ || saver_->last_step() == best_.step)) {
    best_.checkpoint = io::checkpoint_path(job_.output(), best_.step);
    log_.set_best(best_);
  }
  saver_->protect(best_.checkpoint.empty() ? 0 : best_.step);
  return saver_->begin(progress_of_run());
}

// The weights are those of the step before: the update was passed over. They are saved, so that a run
// with other settings can go on from there.
Result<Error> RankLoop::not_finite(const StepRecord& record, const std::string& reason) {
  if (step_ > 0 && saver_->last_step() != step_) UK_TRY_VOID(saver_->begin(progress_of_run()));
  UK_TRY_VOID(saver_->end());
  UK_TRY(tensors, describe_not_finite(*executor_, job_.plan, control_));
  const std::string what = fmt::format(
      "loss {} and gradient norm {} are not both finite{}{}; weights are as step {} left "
      "them",
      record.loss, record.gradient_norm, tensors, reason, step_ - overflows_.in_a_row());
  UK_TRY_VOID(log_.notice("not finite: " + what));
  progress_.end();
  return Error{
      ErrorCode::not_finite, what, fmt::format("step {} of {}", step_ + 1, job_.total_steps),
      step_ == 0
          ? fmt::format(
                "`underkeel inspect --verify {}` tells whether the weights themselves are numbers",
                job_.model_folder.string())
          : "lower learning_rate, or look at the samples of this step; the newest checkpoint holds "
            "the "
            "weights of before"};
}

// True: the run ends here. An fp16 run passes over a step whose gradients are not finite.
Result<bool> RankLoop::take_overflow(StepRecord& record) {
  if (!overflows_.are_expected() || (!record.is_skipped && !std::isfinite(record.loss)))
    return true;
  record.loss_scale = overflows_.loss_scale();
  const Overflows::Outcome outcome = overflows_.step(record.is_skipped);
  if (outcome.ends) return true;
  if (outcome.is_first) {
    UK_TRY(tensors, describe_not_finite(*executor_, job_.plan, control_));
    const std::string note =
        fmt::format("step {} overflows at loss scale {}{}: no update, the next scale is {}",
                    step_ + 1, record.loss_scale, tensors, overflows_.loss_scale());
    progress_.note(note);
    UK_TRY_VOID(log_.notice(note));
  }
  if (!outcome.advice.empty()) {
    progress_.note(outcome.advice);
    UK_TRY_VOID(log_.notice(outcome.advice));
  }
  return false;
}

void RankLoop::show(const StepRecord& record, bool is_logged) {
  progress_.step({.step = record.step,
                  .total_steps = job_.total_steps,
                  .loss = record.loss,
                  .gradient_norm = record.gradient_norm,
                  .learning_rate = record.learning_rate,
                  .tokens_per_s = rate_.tokens_per_s(),
                  .remaining_s = rate_.remaining_s(job_.total_steps - record.step),
                  .memory_bytes = record.process_bytes,
                  .planned_memory_bytes = record.planned_process_bytes},
                 is_logged);
}

Result<void> RankLoop::evaluate() {
  UK_TRY_VOID(enter("evaluate"));
  if (!job_.datasets.evaluation) return {};
  UK_TRY_VOID(memory_->begin(MemoryPhase::evaluate, step_));
  const double began_s = steady_now_s();
  UK_TRY(found, train::evaluate(*executor_, control_, *job_.datasets.evaluation,
                                {.batch_size = job_.run.evaluation.batch_size,
                                 .drop_last = job_.run.data.drop_last,
                                 .stop_signal = [] { return stop_signal(); },
                                 .progress =
                                     [this](std::int64_t done, std::int64_t all) {
                                       progress_.phase("evaluate", done, all);
                                     }}));
  if (!found) return memory_->end();
  if (found->samples_without_targets > 0)
    UK_TRY_VOID(log_.notice(fmt::format(
        "evaluation at step {}: {} of {} samples are in batches without a trained token and are "
        "left out",
        step_, found->samples_without_targets, found->samples)));
  last_evaluated_step_ = step_;
  last_evaluation_loss_ = found->loss;
  const EvaluationRecord record{.step = step_,
                                .epoch = sampler_.epochs_at(position_),
                                .loss = found->loss,
                                .token_loss = found->token_loss,
                                .target_tokens = found->target_tokens,
                                .samples = found->samples,
                                .batches = found->batches,
                                .elapsed_s = steady_now_s() - began_s};
  UK_TRY_VOID(log_.evaluation(record));
  progress_.note(fmt::format("evaluation at step {}: loss {:.4f}, perplexity {:.3f}", step_,
                             record.loss, std::exp(record.loss)));
  return memory_->end();
}

// What the Trainer does with the value of an evaluation between steps.
Result<bool> RankLoop::evaluate_and_compare() {
  UK_TRY_VOID(evaluate());
  if (last_evaluated_step_ != step_) return false;  // stopped
  plateau_.add(last_evaluation_loss_);
  const spec::EvaluationConfig& evaluation = job_.run.evaluation;
  if (!evaluation.tracks_best) return false;
  // Without checkpoints there is none to name, and the Trainer keeps the value alone.
  const std::int64_t step = job_.run.save.strategy == spec::Cadence::no ? 0 : step_;
  const bool is_better =
      take_evaluation(best_, last_evaluation_loss_, step, evaluation.larger_is_better);
  log_.set_best(best_);
  if (evaluation.early_stopping_steps &&
      best_.evaluations_since >= *evaluation.early_stopping_steps) {
    stops_early_ = true;
    const std::string note = fmt::format(
        "early stopping after step {}: {} evaluations in a row are not better than {:.6g}", step_,
        best_.evaluations_since, *best_.value);
    progress_.note(note);
    UK_TRY_VOID(log_.notice(note));
  }
  return is_better;
}

}  // namespace underkeel::train
