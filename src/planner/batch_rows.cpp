#include "planner/batch_rows.h"

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::planner {

namespace {

bool evaluates(const spec::EvaluationConfig& evaluation) {
  return evaluation.at_end || evaluation.on_start || evaluation.strategy != spec::Cadence::no;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

plan::Decision decision_on(std::string_view subject, const spec::LargestBatches& batches,
                           std::int64_t sequences) {
  const std::string product =
      fmt::format("{} x {}", format_count(sequences), format_count(batches.longest));
  plan::Decision decision{.subject = std::string(subject),
                          .value = format_count(batches.of(sequences)) + " tokens"};
  const std::string samples = counted(batches.sample_count, "sample");
  const std::string epochs = counted(batches.epochs, "epoch");
  if (batches.tokens.contains(sequences)) {
    decision.reason = fmt::format(
        "the most that {} in the order of {} of {}; on average {}, which times are forecast for",
        sequences == 1 ? "one sample has" : counted(sequences, "sample") + " in a row have", epochs,
        samples, format_count(batches.mean_of(sequences)));
    decision.alternatives = {
        {product, fmt::format("{} tokens, were all of them as long as the longest",
                              format_count(sequences * batches.longest))}};
  } else {
    decision.reason = fmt::format(
        "{}, as if all were as long as the longest: {} in {} are too many to look for more; on "
        "average {}, which times are forecast for",
        product, samples, epochs, format_count(batches.mean_of(sequences)));
  }
  return decision;
}

}  // namespace

std::int64_t training_rows(const spec::RunConfig& run, std::int64_t sequences) {
  return run.data.samples ? run.data.samples->training.of(sequences)
                          : sequences * run.data.cutoff_tokens;
}

std::int64_t evaluation_rows(const spec::RunConfig& run, std::int64_t sequences) {
  if (!evaluates(run.evaluation)) return 0;
  return run.data.samples ? run.data.samples->evaluation.of(sequences)
                          : sequences * run.data.cutoff_tokens;
}

std::vector<plan::Decision> decisions_on_rows(const spec::RunConfig& run) {
  std::vector<plan::Decision> decisions;
  if (!run.data.samples) return decisions;
  const spec::SampleSizes& samples = *run.data.samples;
  if (samples.training.sample_count > 0)
    decisions.push_back(
        decision_on("largest micro-batch", samples.training, run.sequences_per_micro_batch));
  if (evaluates(run.evaluation) && samples.evaluation.sample_count > 0)
    decisions.push_back(
        decision_on("largest evaluation batch", samples.evaluation, run.evaluation.batch_size));
  return decisions;
}

}  // namespace underkeel::planner
