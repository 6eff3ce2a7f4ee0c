#include "run_length.h"

#include "data/sampler.h"
#include "train/run_data.h"

namespace underkeel::apps {

std::optional<train::RunLength> length_of(const spec::RunConfig& run, std::int64_t ranks,
                                          const std::optional<DataFacts>& data) {
  std::optional<train::RunLength> length;
  if (run.max_steps > 0) length = train::RunLength{.steps = run.max_steps, .steps_of_epoch = {}};
  if (!data) return length;
  const auto sampler = data::Sampler::make(
      train::sampler_config(run, data->sample_count, static_cast<int>(ranks), 0));
  if (!sampler) return length;
  return train::RunLength{
      .steps = run.max_steps > 0 ? run.max_steps : sampler->updates_for(run.epochs),
      .steps_of_epoch = sampler->updates_per_epoch()};
}

std::optional<std::int64_t> evaluation_samples(const spec::RunConfig& run,
                                               const std::optional<DataFacts>& data) {
  if (data) return data->evaluation_sample_count;
  if (run.evaluation.validation_size > 1 && run.data.evaluation_datasets.empty())
    return static_cast<std::int64_t>(run.evaluation.validation_size);
  return std::nullopt;
}

}  // namespace underkeel::apps
