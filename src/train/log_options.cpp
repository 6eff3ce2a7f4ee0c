#include "train/log_options.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/units.h"
#include "train/run_length.h"

namespace underkeel::train {

namespace {

/// "Nov29_20-04-05", as the Trainer names a run's folder, in the local time.
std::string start_name() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%b%d_%H-%M-%S", &local);
  return text;
}

}  // namespace

RunLogOptions log_options_of(const Job& job, int rank) {
  const spec::RunConfig& run = job.run;
  RunLogOptions options;
  options.is_writer = rank == 0;
  options.overwrite_output = run.overwrite_output;
  options.logging = run.logging;
  options.log_first_step = run.log_first_step;
  options.plot_loss = run.plot_loss;
  if (run.reports_to_tensorboard)
    options.tensorboard_folder = run.logging_folder.empty()
                                     ? io::join_path(job.output(), "runs/" + start_name())
                                     : run.logging_folder.string();
  options.fresh.total_steps = job.total_steps;
  // The Trainer's: epochs that are begun.
  options.fresh.epochs_planned =
      run.max_steps > 0 ? static_cast<double>(ceil_div(
                              job.total_steps, std::max<std::int64_t>(1, job.updates_per_epoch)))
                        : std::ceil(run.epochs);
  const auto steps_of = [&](std::int64_t steps, double fraction) {
    return fraction > 0 ? cadence_steps(spec::Cadence::steps, steps, fraction, job.total_steps)
                        : steps;
  };
  options.fresh.logging_steps = steps_of(run.logging_steps, run.logging_fraction);
  options.fresh.save_steps = steps_of(run.save.steps, run.save.steps_fraction);
  options.fresh.evaluation_steps = steps_of(run.evaluation.steps, run.evaluation.steps_fraction);
  options.fresh.sequences_per_micro_batch = run.sequences_per_micro_batch;
  options.expected_entries =
      job.total_steps / std::max<std::int64_t>(1, options.fresh.logging_steps) +
      (run.evaluation.strategy == spec::Cadence::no ? 0 : job.total_steps) + 8;
  return options;
}

}  // namespace underkeel::train
