#pragma once
// The random orders of the tools whose runs we continue: torch's for an epoch, numpy's for splits
// and for choosing records.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace underkeel::data {

/// torch.randperm(count) with a CPU generator seeded with `seed`. `count` is below 2^32.
std::vector<std::uint32_t> torch_permutation(std::int64_t count, std::uint64_t seed);

/// numpy.random.default_rng(seed).permutation(count), which `datasets` uses for train_test_split.
std::vector<std::uint32_t> numpy_permutation(std::int64_t count, std::uint64_t seed);

/// numpy.random.seed(seed), then permutation() as often as wanted: the state goes on.
class LegacyNumpy {
 public:
  explicit LegacyNumpy(std::uint64_t seed) : words_(static_cast<std::uint32_t>(seed)) {}
  std::vector<std::uint32_t> permutation(std::int64_t count);
  /// The first `kept` of choice(count, size=draws), with replacement; the state goes on behind all of them.
  std::vector<std::uint32_t> choice(std::int64_t count, std::int64_t draws, std::int64_t kept);

 private:
  std::mt19937 words_;
};

/// numpy.random.default_rng(seed), drawn from on and on.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);
  /// choice(probabilities.size(), p=probabilities): one draw. They are not negative and add up to 1.
  std::size_t choice(std::span<const double> probabilities);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace underkeel::data
