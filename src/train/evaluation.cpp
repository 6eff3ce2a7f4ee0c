#include "train/evaluation.h"

#include <algorithm>

#include "data/batch.h"
#include "data/sampler.h"

namespace underkeel::train {

namespace {

// What each rank tells of its batch.
struct BatchWord {
  enum { stop, targets, counted, size };
};

}  // namespace

Result<std::optional<EvaluationResult>> evaluate(exec::Executor& executor,
                                                 comm::Communicator& control,
                                                 const data::SampleSource& source,
                                                 const EvaluationOptions& options) {
  const auto world = static_cast<std::size_t>(control.world_size());
  const auto batches = data::evaluation_batches(
      source.count(), options.batch_size, control.world_size(), control.rank(), options.drop_last);
  EvaluationResult result{.batches = static_cast<std::int64_t>(batches.size())};
  double weighted = 0;  // sums over samples, over tokens
  double loss_sum = 0;
  double targets_sum = 0;
  double counted_sum = 0;
  std::vector<double> words(world * BatchWord::size);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (options.progress) options.progress(static_cast<std::int64_t>(i), result.batches);
    UK_TRY(batch, data::make_micro_batch(source, batches[i].samples));
    const double own[BatchWord::size] = {
        options.stop_signal ? static_cast<double>(options.stop_signal()) : 0.0,
        static_cast<double>(batch.target_count), static_cast<double>(batches[i].counted)};
    UK_TRY_VOID(control.all_gather_values(std::span(own), words));
    for (std::size_t rank = 0; rank < world; ++rank)
      if (words[rank * BatchWord::size + BatchWord::stop] != 0)
        return std::optional<EvaluationResult>();
    exec::Inputs inputs;
    inputs.tokens = batch.tokens;
    inputs.targets = batch.targets;
    inputs.positions = batch.positions;
    inputs.sequence_starts = batch.sequence_starts;
    UK_TRY_VOID(executor.run(plan::SegmentKind::evaluate, inputs));
    UK_TRY(outputs, executor.run(plan::SegmentKind::evaluate_end, {}));
    for (std::size_t rank = 0; rank < world; ++rank) {
      const double loss = outputs.totals[rank * plan::total_count + plan::total_loss];
      const double targets = words[rank * BatchWord::size + BatchWord::targets];
      const double counted = words[rank * BatchWord::size + BatchWord::counted];
      result.samples += static_cast<std::int64_t>(counted);
      if (targets == 0) {
        result.samples_without_targets += static_cast<std::int64_t>(counted);
        continue;
      }
      weighted += counted * (loss / targets);
      counted_sum += counted;
      // A batch that only fills the last round has been here before.
      if (counted == 0) continue;
      loss_sum += loss;
      targets_sum += targets;
    }
  }
  result.loss = weighted / counted_sum;
  result.token_loss = loss_sum / targets_sum;
  result.target_tokens = static_cast<std::int64_t>(targets_sum);
  return std::optional<EvaluationResult>(result);
}

bool take_evaluation(BestEvaluation& best, double loss, std::int64_t step, bool larger_is_better) {
  const bool is_better =
      !best.value || (larger_is_better ? loss > *best.value : loss < *best.value);
  if (!is_better) {
    ++best.evaluations_since;
    return false;
  }
  best.value = loss;
  best.step = step;
  best.evaluations_since = 0;
  return true;
}

}  // namespace underkeel::train
