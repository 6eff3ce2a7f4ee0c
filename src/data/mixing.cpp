#include "data/mixing.h"

#include <algorithm>

#include "data/random_order.h"

namespace underkeel::data {
namespace {

using Order = std::vector<std::uint32_t>;

Order mix_in_turn(std::span<const Order> sets, MixStrategy strategy) {
  std::size_t shortest = sets[0].size();
  std::size_t longest = 0;
  for (const Order& set : sets) {
    shortest = std::min(shortest, set.size());
    longest = std::max(longest, set.size());
  }
  Order mixed;
  const std::size_t rounds = strategy == MixStrategy::interleave_under ? shortest : longest;
  for (std::size_t round = 0; round < rounds; ++round)
    for (const Order& set : sets) {
      if (set.empty()) continue;
      if (round < set.size() || strategy == MixStrategy::interleave_over)
        mixed.push_back(set[round % set.size()]);
    }
  return mixed;
}

Order mix_at_random(std::span<const Order> sets, MixStrategy strategy,
                    std::span<const double> probabilities, std::uint64_t seed) {
  NumpyGenerator random(seed);
  std::vector<std::size_t> next(sets.size(), 0);
  std::vector<bool> is_used_up(sets.size(), false);
  // A set that is never drawn cannot be used up.
  std::size_t open = 0;
  for (std::size_t set = 0; set < sets.size(); ++set)
    if (probabilities[set] > 0 && !sets[set].empty()) ++open;
  const std::size_t open_at_end =
      strategy == MixStrategy::interleave_under && open > 0 ? open - 1 : 0;
  Order mixed;
  while (open > open_at_end) {
    const std::size_t set = random.choice(probabilities);
    const Order& records = sets[set];
    if (records.empty() || (is_used_up[set] && strategy == MixStrategy::interleave_once)) continue;
    mixed.push_back(records[next[set]]);
    if (++next[set] < records.size()) continue;
    next[set] = 0;
    if (!is_used_up[set]) --open;
    is_used_up[set] = true;
  }
  return mixed;
}

}  // namespace

std::vector<std::uint32_t> mix(std::span<const std::vector<std::uint32_t>> sets,
                               MixStrategy strategy, std::span<const double> probabilities,
                               std::uint64_t seed) {
  if (sets.empty()) return {};
  if (sets.size() == 1) return sets[0];
  if (strategy == MixStrategy::concat) {
    Order all;
    for (const Order& set : sets) all.insert(all.end(), set.begin(), set.end());
    return all;
  }
  return probabilities.empty() ? mix_in_turn(sets, strategy)
                               : mix_at_random(sets, strategy, probabilities, seed);
}

}  // namespace underkeel::data
