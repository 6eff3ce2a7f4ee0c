#pragma once
// The one sum that all transports share, so that their bits agree.

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace underkeel::comm {

/// into[i] <- sources[0][i] + sources[1][i] + ..., added in that order in f32, rounded once to the
/// storage type. `into` may be one of the sources, but must not overlap one otherwise.
/// Types: f32, bf16, f16.
void sum_in_rank_order(std::span<const void* const> sources, void* into, DType type,
                       std::int64_t element_count);

}  // namespace underkeel::comm
