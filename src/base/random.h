#pragma once
// Random numbers as pure functions of (seed, stream, index): the same on every rank, thread and
// device, and after a resume. Philox 4x32.

#include <array>
#include <cstdint>

namespace underkeel {

/// Philox 4x32. Ten rounds by default; seven are the fewest that pass every test of BigCrush.
/// Source: Salmon et al. 2011.
template <int rounds = 10>
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t low = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t high = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(high >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(high),
               static_cast<std::uint32_t>(low >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(low)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Word `index` of stream `stream` under `seed`.
constexpr std::uint32_t random_word(std::uint64_t seed, std::uint32_t stream, std::uint64_t index) {
  const auto block = philox(
      {static_cast<std::uint32_t>(index >> 2), static_cast<std::uint32_t>(index >> 34), stream, 0},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return block[index & 3];
}

/// Uniform in [0, 1) with 24 bits.
constexpr float random_uniform(std::uint64_t seed, std::uint32_t stream, std::uint64_t index) {
  return static_cast<float>(random_word(seed, stream, index) >> 8) * 0x1p-24f;
}

/// Standard normal by Box and Muller; element `index` uses words 2*index and 2*index + 1.
float random_normal(std::uint64_t seed, std::uint32_t stream, std::uint64_t index);

}  // namespace underkeel
