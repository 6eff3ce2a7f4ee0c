#pragma once
// Several data sets made into one, with the orders of the `datasets` library.

#include <cstdint>
#include <span>
#include <vector>

namespace underkeel::data {

enum class MixStrategy {
  concat,            // one after the other
  interleave_under,  // in turn, until one is used up
  interleave_over,   // in turn, until all are; those that end earlier begin again
  interleave_once    // in turn, until all are; those that end earlier are left out
};

/// `sets` are orders of records. `probabilities`: which set comes next is drawn with these, under
/// `seed`; empty: the sets in turn.
std::vector<std::uint32_t> mix(std::span<const std::vector<std::uint32_t>> sets,
                               MixStrategy strategy, std::span<const double> probabilities,
                               std::uint64_t seed);

}  // namespace underkeel::data
