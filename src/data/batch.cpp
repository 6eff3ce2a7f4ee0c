#include "data/batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace underkeel::data {

void append_sample(const Sample& sample, std::int64_t sample_id, MicroBatch& batch) {
  UK_CHECK(sample.labels.size() == sample.tokens.size() &&
               (sample.positions.empty() || sample.positions.size() == sample.tokens.size()) &&
               std::accumulate(sample.sequence_lengths.begin(), sample.sequence_lengths.end(),
                               std::size_t{0}) == sample.tokens.size(),
           "a sample's parts do not add up");
  batch.sample_ids.push_back(sample_id);
  batch.tokens.insert(batch.tokens.end(), sample.tokens.begin(), sample.tokens.end());
  std::size_t begin = 0;
  for (const std::int32_t length : sample.sequence_lengths) {
    const std::size_t end = begin + static_cast<std::size_t>(length);
    for (std::size_t row = begin; row < end; ++row) {
      const std::int32_t target = row + 1 < end ? sample.labels[row + 1] : ignored_label;
      batch.targets.push_back(target);
      batch.positions.push_back(sample.positions.empty() ? static_cast<std::int32_t>(row - begin)
                                                         : sample.positions[row]);
      if (target != ignored_label) ++batch.target_count;
    }
    begin = end;
    batch.sequence_starts.push_back(static_cast<std::int32_t>(batch.targets.size()));
  }
}

Result<MicroBatch> make_micro_batch(const SampleSource& source, std::span<const std::int64_t> ids) {
  MicroBatch batch;
  batch.sequence_starts.push_back(0);
  Sample sample;
  for (const std::int64_t id : ids) {
    UK_TRY_VOID(source.read(id, sample));
    append_sample(sample, id, batch);
  }
  return batch;
}

Result<Window> read_window(const SampleSource& source, const Sampler& sampler,
                           const DataPosition& position) {
  WindowSamples samples = sampler.window_at(position);
  Window window{.begin = samples.begin, .end = samples.end};
  for (const auto& ids : samples.micro_batches) {
    UK_TRY(batch, make_micro_batch(source, ids));
    window.target_count += batch.target_count;
    window.micro_batches.push_back(std::move(batch));
  }
  return window;
}

}  // namespace underkeel::data
