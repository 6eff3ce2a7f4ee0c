#pragma once
// Merging with a heap of candidates: O(n log n) in the number of symbols.

#include <cstdint>
#include <span>
#include <vector>

#include "data/tokenizer/merge_table.h"

namespace underkeel::data {

/// Appends to `ids` what is left of `symbols` when no pair merges any more.
void merge_symbols(std::span<const std::int32_t> symbols, const MergeTable& merges,
                   std::vector<std::int32_t>& ids);

}  // namespace underkeel::data
