#pragma once
// What a run leaves behind to read, named as LLaMA-Factory and the Trainer name it:
//
//   events.jsonl                 ours: one object an event, every step; never shortened
//   trainer_log.jsonl            one line a log entry; lines after a resumed step, and of an end, are dropped
//   trainer_state.json, train_results.json, eval_results.json, all_results.json
//   runs/*/events.out.tfevents.*  for TensorBoard, when asked (tensorboard.h)
//   training_loss.svg and .png, training_eval_loss.svg and .png   (loss_plot.h)
//
// Lines are appended as they happen and JSON files replaced by rename, so a killed process leaves
// files that can be read. A resume repeats the steps after its checkpoint: of two events `step` of
// one step in events.jsonl the later one counts.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"
#include "spec/run_config.h"
#include "train/json_lines.h"
#include "train/tensorboard.h"
#include "train/trainer_state.h"

namespace underkeel::train {

/// One optimizer step, over all ranks.
struct StepRecord {
  std::int64_t step = 0;  // completed steps, this one counted
  double epoch = 0;
  double loss = 0;           // mean over the window's target tokens
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;  // used in this step
  std::int64_t tokens = 0;   // rows of the window
  bool ends_epoch = false;   // or the run
  double step_s = 0;
  double flops = 0;
  double loss_scale = 0;                   // of an fp16 run
  bool is_skipped = false;                 // gradients were not finite: the step made no update
  bool has_targets = true;                 // else there is no loss
  std::int64_t process_bytes = 0;          // resident of this process; 0: not known
  std::int64_t planned_process_bytes = 0;  // its bound
};

struct EvaluationRecord {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;        // the Trainer's: the mean over samples of their batch's token mean
  double token_loss = 0;  // mean over target tokens
  std::int64_t target_tokens = 0;
  std::int64_t samples = 0;
  std::int64_t batches = 0;
  double elapsed_s = 0;
};

struct SaveRecord {
  std::int64_t step = 0;
  std::string folder;
  std::int64_t size_bytes = 0;
  double elapsed_s = 0;
  double waited_s = 0;  // of it, training stood still
};

struct ResumePoint {
  std::string folder;  // of the checkpoint
  TrainerState state;  // of its step
};

struct RunLogOptions {
  bool is_writer = true;  // rank 0; elsewhere every call does nothing and succeeds
  bool overwrite_output = false;
  spec::Cadence logging = spec::Cadence::steps;
  bool log_first_step = false;
  bool plot_loss = false;
  std::string tensorboard_folder;  // empty: no such files
  /// Log entries that the whole run may make; room for them is taken by begin().
  std::int64_t expected_entries = 0;
  /// A run at step 0: total steps, cadences, batch.
  TrainerState fresh;
  /// Seconds since 1970; the system's clock unless given.
  std::function<double()> now_s;
};

/// Not for several threads at once. After an error of a call (disk full) the next may be made: the
/// line is lost, the files stay readable.
class RunLog {
 public:
  /// Makes the output folder and opens events.jsonl.
  static Result<RunLog> open(io::FileSystem& files, std::string output, RunLogOptions options);

  /// Before the first step: drops the lines of steps that will be made again, takes over the state.
  /// After it no call lets the heap grow, but for what it frees again.
  Result<void> begin(const std::optional<ResumePoint>& resume);

  /// The log entry when one was due: the mean loss since the last one.
  Result<std::optional<LogEntry>> step(const StepRecord& record);
  Result<void> evaluation(const EvaluationRecord& record);
  Result<void> save_begin(std::int64_t step, const std::string& folder);
  Result<void> save_end(const SaveRecord& record);
  Result<void> signal(int signal_number, std::int64_t step);
  /// A sentence for events.jsonl ("only 3 of 4 ranks ..."). Does not print.
  Result<void> notice(const std::string& text);
  /// The state is where it is trained: what this rank read of it, and in what time.
  Result<void> loaded(std::int64_t bytes, double elapsed_s);

  /// The run made all its steps: results, state and plots. `samples` over all epochs. An evaluation
  /// of the last step, before or after, goes into eval_results.json; one that comes after is no part
  /// of log_history, as LLaMA-Factory has it. Where nothing was trained since a resume, the figures of the run that did
  /// stay.
  Result<void> finish(std::int64_t samples);
  /// The run ended early and goes on later; plots and an event with `reason` only.
  Result<void> stopped(const std::string& reason);

  /// What trainer_state.json says of the best model.
  void set_best(const BestEvaluation& best) { state_.best = best; }
  /// What a checkpoint of the last step holds; to_json() of it is trainer_state.json.
  const TrainerState& state() const { return state_; }
  /// Seconds of training since step 1, over all processes of the run.
  double elapsed_s() const;

 private:
  RunLog(io::FileSystem& files, std::string output, RunLogOptions options);
  JsonLine event(std::string_view what, std::int64_t step) const;
  Result<void> log_line(const LogEntry& entry);
  Result<void> drop_lines_after(std::int64_t step);
  Result<void> write_results();
  /// Of the run that came to this step, from trainer_state.json of the output folder.
  std::optional<LogEntry> summary_that_stands() const;
  Result<void> write_plots();
  std::string path(std::string_view name) const { return io::join_path(output_, name); }
  Result<void> write_named_numbers(std::string_view name,
                                   std::vector<std::pair<std::string, double>> numbers);

  io::FileSystem* files_;
  std::string output_;
  RunLogOptions options_;
  TrainerState state_;
  std::optional<JsonLines> events_;
  std::optional<JsonLines> log_lines_;
  std::optional<TensorboardFile> tensorboard_;
  std::optional<LogEntry> summary_;
  std::optional<LogEntry> last_evaluation_;
  double begun_s_ = 0;           // now_s() at begin()
  double former_elapsed_s_ = 0;  // of earlier processes
  std::int64_t first_step_ = 0;  // completed when this process began
};

/// "1:02:03", with "2 days, " before it when it is that long. Negative is 0.
std::string format_duration(double elapsed_s);

}  // namespace underkeel::train
