#include "data/batch.h"

#include <utility>

#include <gmock/gmock.h>

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Samples that are there already.
class GivenSamples final : public SampleSource {
 public:
  explicit GivenSamples(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::int64_t tokens_in(std::int64_t index) const override {
    return static_cast<std::int64_t>(samples_[static_cast<std::size_t>(index)].tokens.size());
  }
  std::int64_t largest_tokens() const override { return 8; }
  std::int64_t resident_bytes() const override { return 0; }
  Result<void> read(std::int64_t index, Sample& into) const override {
    into = samples_[static_cast<std::size_t>(index)];
    return {};
  }

  std::uint64_t cut_checksum() const override { return 0; }

 private:
  std::vector<Sample> samples_;
};

Sample sample_of(std::vector<std::int32_t> tokens, std::vector<std::int32_t> lengths = {}) {
  if (lengths.empty()) lengths = {static_cast<std::int32_t>(tokens.size())};
  return {.tokens = tokens, .labels = tokens, .sequence_lengths = std::move(lengths)};
}

TEST(MicroBatch, LaysSequencesEndToEndAndNeverPredictsOverABorder) {
  const GivenSamples source({sample_of({5, 6, 7}), sample_of({9, 10, 11, 12, 13})});

  const auto batch = make_micro_batch(source, std::vector<std::int64_t>{0, 1});

  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->tokens, ElementsAre(5, 6, 7, 9, 10, 11, 12, 13));
  EXPECT_THAT(batch->targets, ElementsAre(6, 7, -100, 10, 11, 12, 13, -100));
  EXPECT_THAT(batch->positions, ElementsAre(0, 1, 2, 0, 1, 2, 3, 4));
  EXPECT_THAT(batch->sequence_starts, ElementsAre(0, 3, 8));
  EXPECT_THAT(batch->sample_ids, ElementsAre(0, 1));
  EXPECT_EQ(batch->target_count, 6);
}

TEST(MicroBatch, KeepsTheSequencesInsideASampleApart) {
  const GivenSamples source({sample_of({1, 2, 3, 4}, {1, 3})});

  const auto batch = make_micro_batch(source, std::vector<std::int64_t>{0});

  EXPECT_THAT(batch->targets, ElementsAre(-100, 3, 4, -100));
  EXPECT_THAT(batch->positions, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(batch->sequence_starts, ElementsAre(0, 1, 4));
}

TEST(MicroBatch, CountsOnlyLabelsThatAreTargets) {
  Sample sample = sample_of({1, 2, 3, 4});
  sample.labels = {1, -100, 3, 4};
  const GivenSamples source({sample});

  const auto batch = make_micro_batch(source, std::vector<std::int64_t>{0});

  EXPECT_THAT(batch->targets, ElementsAre(-100, 3, 4, -100));
  EXPECT_EQ(batch->target_count, 2);
}

TEST(MicroBatch, OfNoSamplesHasNoRows) {
  const GivenSamples source({});

  const auto batch = make_micro_batch(source, {});

  EXPECT_EQ(batch->row_count(), 0);
  EXPECT_THAT(batch->sequence_starts, ElementsAre(0));
}

TEST(Window, CountsTheTargetsOfItsMicroBatchesAlone) {
  std::vector<Sample> samples;
  for (std::int32_t id = 0; id < 10; ++id) {
    // Samples 3 to 7 have no target, as answers that are empty.
    Sample sample = sample_of({id, 1, 1, 1});
    if (id >= 3 && id <= 7) sample.labels.assign(4, ignored_label);
    samples.push_back(sample);
  }
  const GivenSamples source(samples);
  const auto sampler =
      Sampler::make({.sample_count = 10, .accumulation_steps = 4, .shuffle = false});

  std::vector<std::int64_t> counts;
  std::vector<std::size_t> sizes;
  for (int step = 0; step < 3; ++step) {
    const auto window = read_window(source, *sampler, sampler->position_of(step));
    ASSERT_TRUE(window);
    counts.push_back(window->target_count);
    sizes.push_back(window->micro_batches.size());
  }

  EXPECT_THAT(counts, ElementsAre(9, 0, 6));
  EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
}

}  // namespace
}  // namespace underkeel::data
