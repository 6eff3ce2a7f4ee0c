// Orders and shares were taken from a run of the Trainer (transformers 5.17, accelerate 1.15).

#include "data/sampler.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>

namespace underkeel::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Batches = std::vector<std::vector<std::int64_t>>;

Sampler sampler_of(const SamplerConfig& config) {
  auto sampler = Sampler::make(config);
  EXPECT_TRUE(sampler) << to_text(sampler.error());
  return *sampler;
}

// All micro-batches of one rank in the epoch that begins at `position`.
Batches epoch_batches(const Sampler& sampler, DataPosition position = {}) {
  const std::int64_t epoch = position.epoch;
  Batches batches;
  while (position.epoch == epoch) {
    WindowSamples window = sampler.window_at(position);
    for (auto& batch : window.micro_batches) batches.push_back(std::move(batch));
    position = window.end;
  }
  return batches;
}

TEST(Sampler, SharesAnEpochAmongRanksAsTheTrainerDoes) {
  const auto shares = [](std::int64_t count, std::int64_t batch, int world, int rank) {
    return epoch_batches(sampler_of({.sample_count = count,
                                     .sequences_per_micro_batch = batch,
                                     .world_size = world,
                                     .rank = rank}));
  };

  EXPECT_EQ(shares(10, 2, 2, 0), (Batches{{2, 6}, {4, 5}, {3, 7}}));
  EXPECT_EQ(shares(10, 2, 2, 1), (Batches{{1, 8}, {0, 9}, {2, 6}}));
  EXPECT_EQ(shares(11, 2, 2, 0), (Batches{{6, 8}, {1, 10}, {3, 5}}));
  EXPECT_EQ(shares(11, 2, 2, 1), (Batches{{9, 2}, {0, 7}, {4, 6}}));
  EXPECT_EQ(shares(9, 4, 2, 0), (Batches{{6, 4, 0, 7}, {1, 6, 4, 0}}));
  EXPECT_EQ(shares(9, 4, 2, 1), (Batches{{5, 8, 3, 2}, {7, 5, 8, 3}}));
  EXPECT_EQ(shares(7, 2, 4, 0), (Batches{{1, 6}}));
  EXPECT_EQ(shares(7, 2, 4, 1), (Batches{{3, 5}}));
  EXPECT_EQ(shares(7, 2, 4, 2), (Batches{{4, 0}}));
  EXPECT_EQ(shares(7, 2, 4, 3), (Batches{{2, 1}}));
  EXPECT_EQ(shares(3, 2, 2, 0), (Batches{{0, 2}}));
  EXPECT_EQ(shares(3, 2, 2, 1), (Batches{{1, 0}}));
}

TEST(Sampler, CutsWindowsThatNeverCrossAnEpoch) {
  const Sampler sampler =
      sampler_of({.sample_count = 10, .sequences_per_micro_batch = 2, .accumulation_steps = 2});

  std::vector<Batches> windows;
  std::vector<double> epochs;
  DataPosition position;
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(position, sampler.position_of(step));
    const WindowSamples window = sampler.window_at(position);
    windows.push_back(window.micro_batches);
    position = window.end;
    epochs.push_back(sampler.epochs_at(position));
  }

  EXPECT_EQ(sampler.updates_per_epoch(), 3);
  EXPECT_THAT(windows,
              ElementsAre(Batches{{2, 6}, {1, 8}}, Batches{{4, 5}, {0, 9}}, Batches{{3, 7}},
                          Batches{{8, 4}, {9, 0}}, Batches{{5, 1}, {6, 7}}, Batches{{2, 3}}));
  EXPECT_THAT(epochs, ElementsAre(0.4, 0.8, 1.0, 1.4, 1.8, 2.0));
}

TEST(Sampler, KeepsFileOrderWithoutShufflingAndAShortLastWindow) {
  const Sampler sampler =
      sampler_of({.sample_count = 10, .accumulation_steps = 4, .shuffle = false});

  const auto first = sampler.window_at({});
  const auto last = sampler.window_at(sampler.position_of(2));

  EXPECT_EQ(sampler.updates_per_epoch(), 3);
  EXPECT_THAT(first.micro_batches,
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(last.micro_batches, ElementsAre(ElementsAre(8), ElementsAre(9)));
  EXPECT_EQ(last.end, (DataPosition{.epoch = 1, .samples = 0}));
}

TEST(Sampler, GivesEveryRankAsManyMicroBatchesByFillingOrDropping) {
  for (int rank = 0; rank < 4; ++rank) {
    SamplerConfig config{
        .sample_count = 21, .sequences_per_micro_batch = 2, .world_size = 4, .rank = rank};
    const Sampler filling = sampler_of(config);
    config.drop_last = true;
    const Sampler dropping = sampler_of(config);

    EXPECT_EQ(epoch_batches(filling).size(), 3u);
    EXPECT_EQ(filling.filled_samples(), 3);
    EXPECT_EQ(filling.left_out_samples(), 0);
    EXPECT_EQ(epoch_batches(dropping).size(), 2u);
    EXPECT_EQ(dropping.filled_samples(), 0);
    EXPECT_EQ(dropping.left_out_samples(), 5);
  }
}

TEST(Sampler, FillsWithSamplesThatThenComeTwice) {
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 4; ++rank)
    for (const auto& batch : epoch_batches(sampler_of(
             {.sample_count = 21, .sequences_per_micro_batch = 2, .world_size = 4, .rank = rank})))
      seen.insert(batch.begin(), batch.end());

  EXPECT_EQ(seen.size(), 24u);
  EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 21u);
}

TEST(Sampler, ContinuesUnderAnotherSplitOfTheSameGlobalBatch) {
  const Sampler one_by_one = sampler_of({.sample_count = 8, .accumulation_steps = 4});
  const Sampler at_once = sampler_of({.sample_count = 8, .sequences_per_micro_batch = 4});

  std::map<std::int64_t, std::multiset<std::int64_t>> seen;
  DataPosition position;
  for (int step = 0; step < 8; ++step) {
    const WindowSamples window = (step < 4 ? one_by_one : at_once).window_at(position);
    for (const auto& batch : window.micro_batches)
      seen[position.epoch].insert(batch.begin(), batch.end());
    position = window.end;
  }

  EXPECT_EQ(one_by_one.updates_for(4), 8);
  EXPECT_EQ(at_once.updates_for(4), 8);
  EXPECT_EQ(position, (DataPosition{.epoch = 4, .samples = 0}));
  for (std::int64_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_THAT(seen[epoch], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Sampler, GivesAnyRankCountTheSameWindowsForTheSameGlobalBatch) {
  const auto all_of = [](std::int64_t batch, std::int64_t accumulation, int world,
                         DataPosition at) {
    std::vector<std::int64_t> ids;
    for (int rank = 0; rank < world; ++rank)
      for (const auto& micro_batch : sampler_of({.sample_count = 48,
                                     .sequences_per_micro_batch = batch,
                                     .accumulation_steps = accumulation,
                                     .world_size = world,
                                     .rank = rank})
                                         .window_at(at)
                                         .micro_batches)
        ids.insert(ids.end(), micro_batch.begin(), micro_batch.end());
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const DataPosition middle{.epoch = 1, .samples = 16};

  const auto expected = all_of(16, 1, 1, middle);

  EXPECT_EQ(expected.size(), 16u);
  EXPECT_EQ(all_of(2, 8, 1, middle), expected);
  EXPECT_EQ(all_of(2, 4, 2, middle), expected);
  EXPECT_EQ(all_of(1, 4, 4, middle), expected);
}

TEST(Sampler, TakesUpAnEpochInTheMiddleOfARound) {
  const Sampler sampler = sampler_of(
      {.sample_count = 10, .sequences_per_micro_batch = 2, .world_size = 2, .shuffle = false});

  const auto batches = epoch_batches(sampler, {.epoch = 0, .samples = 3});

  EXPECT_EQ(batches, (Batches{{3, 4}, {7, 8}}));
  EXPECT_EQ(sampler.window_at({.epoch = 0, .samples = 12}).begin, (DataPosition{.epoch = 1}));
}

TEST(Sampler, RefusesAnEpochWithoutABatch) {
  const auto none = Sampler::make({.sample_count = 0});
  const auto dropped = Sampler::make(
      {.sample_count = 7, .sequences_per_micro_batch = 2, .world_size = 4, .drop_last = true});

  ASSERT_FALSE(none);
  ASSERT_FALSE(dropped);
  EXPECT_THAT(dropped.error().what, HasSubstr("7 samples, 4 ranks with 2 each"));
}

TEST(EvaluationBatches, FillTheLastRoundFromTheStartAndCountEverySampleOnce) {
  using Evaluation = std::vector<EvaluationBatch>;
  EXPECT_EQ(evaluation_batches(5, 2, 2, 0, false), (Evaluation{{{0, 1}, 2}, {{4, 0}, 1}}));
  EXPECT_EQ(evaluation_batches(5, 2, 2, 1, false), (Evaluation{{{2, 3}, 2}, {{1, 2}, 0}}));
  EXPECT_EQ(evaluation_batches(1, 2, 3, 2, false), (Evaluation{{{0, 0}, 0}}));
}

TEST(EvaluationBatches, AreShortAtTheEndOnOneRank) {
  using Evaluation = std::vector<EvaluationBatch>;
  EXPECT_EQ(evaluation_batches(5, 2, 1, 0, false),
            (Evaluation{{{0, 1}, 2}, {{2, 3}, 2}, {{4}, 1}}));
}

TEST(EvaluationBatches, LeaveOutAnIncompleteRoundWhenTheLastIsDropped) {
  using Evaluation = std::vector<EvaluationBatch>;
  EXPECT_EQ(evaluation_batches(5, 2, 2, 1, true), (Evaluation{{{2, 3}, 2}}));
  EXPECT_TRUE(evaluation_batches(3, 2, 2, 0, true).empty());
}

}  // namespace
}  // namespace underkeel::data
