#include "data/random_order.h"

#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace underkeel::data {
namespace {

std::vector<std::uint32_t> identity(std::int64_t count) {
  UK_CHECK(count >= 0 && count <= std::numeric_limits<std::uint32_t>::max(),
           fmt::format("an order of {} items", count));
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

// All bits that numbers up to `last` need.
std::uint32_t mask_of(std::uint32_t last) {
  for (const int shift : {1, 2, 4, 8, 16}) last |= last >> shift;
  return last;
}

// From the last place down, swapped with a random place at or before it; a draw beyond it, after
// masking to the bits that it needs, is thrown away.
template <class Draw>
void shuffle_down(std::vector<std::uint32_t>& order, Draw draw) {
  for (std::size_t last = order.size(); last-- > 1;) {
    const std::uint32_t mask = mask_of(static_cast<std::uint32_t>(last));
    std::uint32_t place = draw() & mask;
    while (place > last) place = draw() & mask;
    std::swap(order[last], order[place]);
  }
}

// numpy's SeedSequence: spreads a seed over the words that a generator starts from.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    const std::array<std::uint32_t, 4> entropy = {static_cast<std::uint32_t>(seed),
                                                  static_cast<std::uint32_t>(seed >> 32), 0, 0};
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(entropy[i]);
    for (std::size_t from = 0; from < pool_.size(); ++from)
      for (std::size_t to = 0; to < pool_.size(); ++to)
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from]));
  }

  std::array<std::uint64_t, 4> words() const {
    std::array<std::uint64_t, 4> result{};
    std::uint32_t multiplier = 0x8B51F9DD;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t value = pool_[i % pool_.size()] ^ multiplier;
      multiplier *= 0x58F38DED;
      value *= multiplier;
      value ^= value >> 16;
      result[i / 2] |= std::uint64_t{value} << (i % 2 == 0 ? 0 : 32);
    }
    return result;
  }

 private:
  std::uint32_t hash(std::uint32_t value) {
    value ^= multiplier_;
    multiplier_ *= 0x931E8875;
    value *= multiplier_;
    return value ^ value >> 16;
  }
  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t result = 0xCA01F9DD * x - 0x4973F715 * y;
    return result ^ result >> 16;
  }

  std::uint32_t multiplier_ = 0x43B0D7E5;
  std::array<std::uint32_t, 4> pool_{};
};

// PCG64, XSL-RR 128/64 (O'Neill 2014), with numpy's halves: a 64-bit output gives its low word
// first, then its high word.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed) {
    const auto words = SeedSequence(seed).words();
    increment_ = wide(words[2], words[3]) << 1 | 1;
    step();
    state_ += wide(words[0], words[1]);
    step();
  }

  std::uint64_t next() {
    step();
    const auto folded =
        static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    const auto rotation = static_cast<unsigned>(state_ >> 122);
    return folded >> rotation | folded << (-rotation & 63);
  }

  std::uint32_t next_word() {
    if (has_high_) {
      has_high_ = false;
      return high_;
    }
    const std::uint64_t output = next();
    has_high_ = true;
    high_ = static_cast<std::uint32_t>(output >> 32);
    return static_cast<std::uint32_t>(output);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static Wide wide(std::uint64_t high, std::uint64_t low) { return Wide{high} << 64 | low; }

  void step() { state_ = state_ * wide(0x2360ED051FC65DA4, 0x4385DF649FCCF645) + increment_; }

  Wide state_ = 0;
  Wide increment_ = 0;
  bool has_high_ = false;
  std::uint32_t high_ = 0;
};

}  // namespace

std::vector<std::uint32_t> torch_permutation(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order = identity(count);
  std::mt19937 words(static_cast<std::uint32_t>(seed));
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    std::swap(order[i], order[i + words() % (order.size() - i)]);
  return order;
}

std::vector<std::uint32_t> numpy_permutation(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order = identity(count);
  Pcg64 words(seed);
  shuffle_down(order, [&] { return words.next_word(); });
  return order;
}

struct NumpyGenerator::State {
  Pcg64 words;
};

NumpyGenerator::NumpyGenerator(std::uint64_t seed)
    : state_(std::make_shared<State>(State{Pcg64(seed)})) {}

// numpy cuts [0, 1) at the cumulated probabilities, which it scales to end at 1.
std::size_t NumpyGenerator::choice(std::span<const double> probabilities) {
  double sum = 0;
  for (const double probability : probabilities) sum += probability;
  const double place = static_cast<double>(state_->words.next() >> 11) * 0x1p-53;
  double reached = 0;
  for (std::size_t i = 0; i + 1 < probabilities.size(); ++i) {
    reached += probabilities[i];
    if (place < reached / sum) return i;
  }
  return probabilities.size() - 1;
}

std::vector<std::uint32_t> LegacyNumpy::permutation(std::int64_t count) {
  std::vector<std::uint32_t> order = identity(count);
  shuffle_down(order, [&] { return static_cast<std::uint32_t>(words_()); });
  return order;
}

std::vector<std::uint32_t> LegacyNumpy::choice(std::int64_t count, std::int64_t draws,
                                               std::int64_t kept) {
  UK_CHECK(count > 0 && count <= std::numeric_limits<std::uint32_t>::max(),
           fmt::format("a choice of {} items", count));
  std::vector<std::uint32_t> chosen(static_cast<std::size_t>(kept), 0);
  if (count == 1) return chosen;  // numpy draws nothing where there is no choice
  const auto last = static_cast<std::uint32_t>(count - 1);
  const std::uint32_t mask = mask_of(last);
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    std::uint32_t item = static_cast<std::uint32_t>(words_()) & mask;
    while (item > last) item = static_cast<std::uint32_t>(words_()) & mask;
    if (draw < kept) chosen[static_cast<std::size_t>(draw)] = item;
  }
  return chosen;
}

}  // namespace underkeel::data
