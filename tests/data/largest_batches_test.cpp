#include "data/largest_batches.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Samples of given lengths, which nobody reads.
class Lengths final : public SampleSource {
 public:
  explicit Lengths(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t tokens_in(std::int64_t index) const override {
    return lengths_[static_cast<std::size_t>(index)];
  }
  std::int64_t largest_tokens() const override {
    return *std::max_element(lengths_.begin(), lengths_.end());
  }
  std::int64_t resident_bytes() const override { return 0; }
  Result<void> read(std::int64_t, Sample&) const override { return {}; }
  std::uint64_t cut_checksum() const override { return 0; }

 private:
  std::vector<std::int64_t> lengths_;
};

std::int64_t tokens_of(const SampleSource& source, const std::vector<std::int64_t>& samples) {
  return std::accumulate(
      samples.begin(), samples.end(), std::int64_t{0},
      [&](std::int64_t sum, std::int64_t sample) { return sum + source.tokens_in(sample); });
}

std::int64_t largest_of(const SampleSource& source, const SamplerConfig& order, std::int64_t epochs,
                        std::int64_t size) {
  return largest_batches(source, order, epochs, std::vector{size}).largest.at(0);
}

// Every row of places of every epoch, place by place.
std::int64_t largest_by_hand(const SampleSource& source, const SamplerConfig& order,
                             std::int64_t epochs, std::int64_t size) {
  std::int64_t largest = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto places = order_of_epoch(order, epoch);
    for (std::size_t begin = 0; begin < places.size(); ++begin) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
        sum += source.tokens_in(places[(begin + i) % places.size()]);
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

/// A run of random shape over random lengths.
class RandomRun {
 public:
  explicit RandomRun(unsigned seed) : words_(seed), source_(lengths()) {}

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(words_);
  }
  const Lengths& source() const { return source_; }

  SamplerConfig split() {
    SamplerConfig config{.sample_count = source_.count(),
                         .sequences_per_micro_batch = pick(1, 7),
                         .accumulation_steps = pick(1, 4),
                         .world_size = static_cast<int>(pick(1, 5)),
                         .seed = 42};
    config.rank = static_cast<int>(pick(0, config.world_size - 1));
    return config;
  }

 private:
  std::vector<std::int64_t> lengths() {
    std::vector<std::int64_t> made(static_cast<std::size_t>(pick(1, 40)));
    for (std::int64_t& length : made) length = pick(0, 5) == 0 ? pick(0, 2048) : pick(0, 30);
    return made;
  }

  std::mt19937 words_;
  Lengths source_;
};

TEST(LargestBatches, AreThoseThatCountingEveryRowOfPlacesFinds) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomRun run(seed);
    SamplerConfig order = run.split();
    order.shuffle = run.pick(0, 3) > 0;
    const std::int64_t epochs = run.pick(1, 3);
    // Beyond the samples too: a round of several ranks goes over them again.
    const std::int64_t size = run.pick(1, 2 * run.source().count() + 1);

    EXPECT_EQ(largest_of(run.source(), order, epochs, size),
              largest_by_hand(run.source(), order, epochs, size))
        << "seed " << seed;
  }
}

TEST(LargestBatches, AreNotSurpassedHoweverARunIsSplitAndGoesOn) {
  int reached = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomRun run(seed);
    SamplerConfig first = run.split();
    SamplerConfig second = run.split();
    second.shuffle = first.shuffle = run.pick(0, 3) > 0;
    second.drop_last = first.drop_last = run.pick(0, 2) == 0;
    const auto before = Sampler::make(first);
    const auto after = Sampler::make(second);
    if (!before || !after) continue;  // dropping the last batch leaves none
    const std::int64_t steps = run.pick(1, 8);
    const std::int64_t resumed_at = run.pick(0, steps);

    // The first split up to a checkpoint, the second from there on, as a resumed run.
    DataPosition position;
    std::int64_t epochs = 0;
    bool ever_reached = false;
    std::vector<std::pair<std::int64_t, std::int64_t>> met;  // samples asked for, tokens
    for (std::int64_t step = 0; step < steps; ++step) {
      if (step == resumed_at) epochs = after->epochs_met(position, steps - step);
      const bool is_resumed = step >= resumed_at;
      const WindowSamples window = (is_resumed ? after : before)->window_at(position);
      position = window.end;
      if (!is_resumed) continue;
      for (const auto& batch : window.micro_batches)
        met.emplace_back(second.sequences_per_micro_batch, tokens_of(run.source(), batch));
    }
    for (const auto& [size, tokens] : met) {
      const std::int64_t bound = largest_of(run.source(), second, epochs, size);
      EXPECT_LE(tokens, bound) << "seed " << seed;
      ever_reached = ever_reached || tokens == bound;
    }
    if (ever_reached) ++reached;
  }
  EXPECT_GT(reached, 30) << "a bound that nothing comes near bounds nothing";
}

TEST(LargestBatches, BoundTheBatchesOfEvaluationsOnAnyRanks) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    RandomRun run(seed);
    const std::int64_t count = run.source().count();
    const std::int64_t size = run.pick(1, 9);
    const int world = static_cast<int>(run.pick(1, 5));
    const bool drop_last = run.pick(0, 1) == 1;

    const std::int64_t bound =
        largest_of(run.source(), {.sample_count = count, .shuffle = false}, 1, size);

    for (int rank = 0; rank < world; ++rank)
      for (const EvaluationBatch& batch : evaluation_batches(count, size, world, rank, drop_last))
        EXPECT_LE(tokens_of(run.source(), batch.samples), bound) << "seed " << seed;
  }
}

TEST(LargestBatches, GrowWithTheEpochsThatARunMeets) {
  std::vector<std::int64_t> lengths(20, 1);
  lengths[4] = lengths[11] = 9;
  const Lengths source(lengths);
  const SamplerConfig order{.sample_count = 20};

  std::vector<std::int64_t> largest;
  for (const std::int64_t epochs : {1, 100})
    largest.push_back(largest_of(source, order, epochs, 2));

  EXPECT_THAT(largest, ElementsAre(10, 18));
}

TEST(LargestBatches, AreNotLookedForBeyondTheBound) {
  const Lengths two({3, 5});
  const Lengths same({4, 4});
  const std::int64_t epochs = most_places_searched / (2 + epoch_places) + 1;

  const BatchTokens found =
      largest_batches(two, {.sample_count = 2}, epochs, std::vector<std::int64_t>{1});

  EXPECT_THAT(found.largest, IsEmpty());
  EXPECT_EQ(found.all, 8);
  // Where all orders are the same one of them tells.
  EXPECT_EQ(largest_of(two, {.sample_count = 2, .shuffle = false}, epochs, 1), 5);
  EXPECT_EQ(largest_of(same, {.sample_count = 2}, epochs, 3), 12);
}

TEST(EpochsMet, AreThoseThatTheWindowsComeFrom) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomRun run(seed);
    SamplerConfig config = run.split();
    config.drop_last = run.pick(0, 2) == 0;
    const auto sampler = Sampler::make(config);
    if (!sampler) continue;
    // A position of another split: anywhere in its epoch.
    DataPosition position{.epoch = run.pick(0, 3), .samples = run.pick(0, config.sample_count)};
    const std::int64_t updates = run.pick(1, 9);

    const std::int64_t epochs = sampler->epochs_met(position, updates);

    std::int64_t last = 0;
    for (std::int64_t i = 0; i < updates; ++i) {
      const WindowSamples window = sampler->window_at(position);
      last = window.begin.epoch;
      position = window.end;
    }
    EXPECT_EQ(epochs, last + 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace underkeel::data
