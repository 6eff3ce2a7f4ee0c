#include "data/largest_batches.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace underkeel::data {
namespace {

// The largest sum of `size` neighbours of a ring, none of whose parts goes round more than once.
std::int64_t largest_sum(std::span<const std::uint32_t> ring, std::size_t size) {
  std::int64_t sum = std::accumulate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(size),
                                     std::int64_t{0});
  std::int64_t largest = sum;
  const auto move = [&](std::size_t from, std::size_t into) {
    sum += std::int64_t{ring[into]} - std::int64_t{ring[from]};
    largest = std::max(largest, sum);
  };
  std::size_t from = 0;
  for (; from + size < ring.size(); ++from) move(from, from + size);
  for (; from + 1 < ring.size(); ++from) move(from, from + size - ring.size());
  return largest;
}

}  // namespace

BatchTokens largest_batches(const SampleSource& source, const SamplerConfig& order,
                            std::int64_t epochs, std::span<const std::int64_t> sizes) {
  UK_CHECK(order.sample_count == source.count() && source.count() > 0,
           "the order is of other samples");
  // Tokens of a sample are below 2^31: a record's are below 2^30, a pack's at most the cut-off.
  std::vector<std::uint32_t> tokens(static_cast<std::size_t>(source.count()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint32_t>(source.tokens_in(static_cast<std::int64_t>(i)));
  const auto [shortest, longest] = std::minmax_element(tokens.begin(), tokens.end());
  BatchTokens found{.all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})};
  SamplerConfig searched = order;
  searched.shuffle = order.shuffle && *shortest != *longest;  // else every order is the same
  const std::int64_t orders = searched.shuffle ? epochs : 1;
  if (orders > most_places_searched / (source.count() + epoch_places)) return found;
  found.largest.assign(sizes.size(), 0);
  for (std::int64_t epoch = 0; epoch < orders; ++epoch) {
    std::vector<std::uint32_t> ring = order_of_epoch(searched, epoch);
    for (std::uint32_t& place : ring) place = tokens[place];
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      UK_CHECK(sizes[i] > 0, "a micro-batch of no samples");
      const std::int64_t rounds = sizes[i] / source.count();
      const std::int64_t sum =
          rounds * found.all +
          largest_sum(ring, static_cast<std::size_t>(sizes[i] % source.count()));
      found.largest[i] = std::max(found.largest[i], sum);
    }
  }
  return found;
}

}  // namespace underkeel::data
