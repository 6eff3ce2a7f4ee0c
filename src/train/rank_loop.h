#pragma once
// One rank's run, for loop.cpp (its begin and end) and rank_steps.cpp (its steps and evaluations).

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "comm/fault.h"
#include "data/batch.h"
#include "train/evaluation.h"
#include "train/learning_rate.h"
#include "train/loop.h"
#include "train/overflows.h"
#include "train/progress.h"
#include "train/rank_device.h"
#include "train/saver.h"

namespace underkeel::train {

/// A rank's state between the run's first and last step, and what it does with it.
class RankLoop {
 public:
  RankLoop(const Job& job, io::FileSystem& files, comm::Communicator& collectives,
           comm::Communicator& control, RankDevice device, data::Sampler sampler, RunLog log)
      : job_(job),
        files_(files),
        collectives_(collectives),
        control_(control),
        device_(std::move(device)),
        sampler_(std::move(sampler)),
        log_(std::move(log)),
        plateau_(job.run.optimizer),
        overflows_(job.run),
        progress_(progress_of_rank(control.rank())) {}

  /// Until the run's last step, a stop signal or an error.
  Result<void> run();
  /// After a failure, before anything is torn down: tells the other ranks, and ends what the GPU waits for.
  void give_up(const Error& error);

 private:
  static ProgressOptions progress_of_rank(int rank) {
    ProgressOptions options = progress_on(STDERR_FILENO);
    options.is_shown = rank == 0;
    return options;
  }
  bool is_first() const { return control_.rank() == 0; }
  Result<void> enter(std::string_view phase) {
    control_.set_phase(fmt::format("{} at step {}", phase, step_));
    collectives_.set_phase(fmt::format("{} at step {}", phase, step_));
    return comm::fault_point(control_.rank(), phase, step_);
  }

  Result<void> load();
  Result<void> train_steps();
  Result<bool> one_step();  // false: a stop was agreed
  Result<exec::Outputs> run_window(const data::Window& window, double window_targets);
  Result<void> after_step(const data::Window& window);
  Result<void> evaluate();
  Result<bool> evaluate_and_compare();  // true: better than all before
  Result<void> load_best();
  Result<void> finish();
  Result<bool> take_overflow(StepRecord& record);
  Result<Error> not_finite(const StepRecord& record, const std::string& reason);
  Progress progress_of_run() const;
  std::string how_to_go_on() const;  // after a stop
  bool follows_plateau() const;
  double rate() const;
  bool has_trained() const { return step_ > first_step_; }  // not only resumed
  void show(const StepRecord& record, bool is_logged);
  Result<std::vector<double>> exchange(std::initializer_list<double> own);

  const Job& job_;
  io::FileSystem& files_;
  comm::Communicator& collectives_;
  comm::Communicator& control_;
  RankDevice device_;
  data::Sampler sampler_;
  RunLog log_;
  std::unique_ptr<exec::Executor> executor_;

  std::int64_t step_ = 0;
  std::int64_t first_step_ = 0;  // where it was resumed
  data::DataPosition position_;
  std::int64_t samples_seen_ = 0;
  std::int64_t last_evaluated_step_ = -1;
  double last_evaluation_loss_ = 0;
  BestEvaluation best_;
  PlateauRate plateau_;
  Overflows overflows_;
  bool stops_early_ = false;
  std::optional<MemoryReport> memory_;
  std::unique_ptr<Saver> saver_;
  ProgressBar progress_;
  StepRate rate_;
};

}  // namespace underkeel::train
