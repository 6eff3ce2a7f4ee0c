#pragma once
// How many tokens the largest micro-batches of a run have, before the first of them is made: the order of every
// epoch and the length of every sample are known.

#include <cstdint>
#include <span>
#include <vector>

#include "data/sample.h"
#include "data/sampler.h"

namespace underkeel::data {

/// Places in the orders of epochs that are looked at, at most: some 15 s. An epoch costs as much as
/// epoch_places more, for beginning a random order.
constexpr std::int64_t most_places_searched = 200'000'000;
constexpr std::int64_t epoch_places = 1024;

/// Tokens of samples in the orders of a run.
struct BatchTokens {
  std::int64_t all = 0;  // samples together
  std::vector<std::int64_t>
      largest;  // by the sizes that were asked for; none: it would take too long
};

/// For each of `sizes` (samples of a micro-batch, above 0): the most tokens that so many neighbouring places hold in the
/// order of any of the first `epochs` epochs (`order`: seed and shuffle). A row of places may begin anywhere and
/// goes on at the order's own beginning. So no micro-batch is larger, whatever the ranks, the accumulation,
/// the position that a run goes on from, and the samples that fill a last round.
/// Host memory: Sampler::order_bytes() of the samples while it runs.
/// `largest` is empty where that would look at more than most_places_searched.
BatchTokens largest_batches(const SampleSource& source, const SamplerConfig& order,
                            std::int64_t epochs, std::span<const std::int64_t> sizes);

}  // namespace underkeel::data
