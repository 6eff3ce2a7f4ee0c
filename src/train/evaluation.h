#pragma once
// One evaluation of all ranks: the Trainer's eval_loss, and what it makes of the best model.

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/communicator.h"
#include "data/sample.h"
#include "exec/executor.h"
#include "spec/run_config.h"
#include "train/trainer_state.h"

namespace underkeel::train {

struct EvaluationResult {
  double loss = 0;        // the mean over samples of the mean over target tokens of their batch
  double token_loss = 0;  // the mean over target tokens
  std::int64_t target_tokens = 0;
  std::int64_t samples = 0;                  // counted
  std::int64_t samples_without_targets = 0;  // their batches have no target: left out of `loss`
  std::int64_t batches = 0;                  // of each rank
};

struct EvaluationOptions {
  std::int64_t batch_size = 8;  // sequences per rank
  bool drop_last = false;
  /// Asked before each batch; not 0 on any rank ends the evaluation on all.
  std::function<int()> stop_signal;
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

/// Called by all ranks together. nullopt: a stop was agreed on, and what was summed is dropped.
/// Source:  transformers 5.17, Trainer.evaluation_loop: the loss of a batch is repeated for each of
///          its samples, so that `loss` depends on the batch size.
Result<std::optional<EvaluationResult>> evaluate(exec::Executor& executor,
                                                 comm::Communicator& control,
                                                 const data::SampleSource& source,
                                                 const EvaluationOptions& options);

/// Takes an evaluation of `step` into `best`; true when it is better than all before.
bool take_evaluation(BestEvaluation& best, double loss, std::int64_t step, bool larger_is_better);

}  // namespace underkeel::train
