#pragma once
// Picks the next token from a row of logits.

#include <cstdint>
#include <span>

namespace underkeel::train {

struct Sampling {
  double temperature = 0;  // 0: the token with the largest logit
  std::int64_t top_k = 0;  // 0: all tokens
  double top_p = 1;        // smallest set of likeliest tokens that holds this share
  std::uint64_t seed = 42;
};

/// Token of generated position `position` (from 0). Of equal logits the smaller id comes first. A
/// function of (logits, sampling, position): the same on every machine that has the same logits.
/// top_k is applied first, then top_p, to probabilities in double.
std::int32_t sample_token(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t position);

}  // namespace underkeel::train
