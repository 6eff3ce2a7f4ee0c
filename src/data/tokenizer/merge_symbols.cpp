#include "data/tokenizer/merge_symbols.h"

#include <queue>
#include <utility>

namespace underkeel::data {
namespace {

struct Symbol {
  std::int32_t id = 0;
  std::int32_t previous = -1;
  std::int32_t next = -1;
  bool alive = true;
};

struct Candidate {
  std::int32_t rank = 0;
  std::int32_t position = 0;
  std::int32_t merged_id = 0;
};

// Lowest rank first, then leftmost.
struct ComesLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

std::vector<Symbol> linked(std::span<const std::int32_t> ids) {
  std::vector<Symbol> symbols(ids.size());
  for (std::size_t index = 0; index < ids.size(); ++index)
    symbols[index] = {.id = ids[index],
                      .previous = static_cast<std::int32_t>(index) - 1,
                      .next = index + 1 < ids.size() ? static_cast<std::int32_t>(index) + 1 : -1};
  return symbols;
}

}  // namespace

void merge_symbols(std::span<const std::int32_t> symbol_ids, const MergeTable& merges,
                   std::vector<std::int32_t>& ids) {
  std::vector<Symbol> symbols = linked(symbol_ids);
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, ComesLater> candidates(ComesLater{},
                                                                                std::move(storage));
  const auto at = [&](std::int32_t position) -> Symbol& {
    return symbols[static_cast<std::size_t>(position)];
  };
  const auto consider = [&](std::int32_t left) {
    if (left < 0 || at(left).next < 0) return;
    const Merge found = merges.get(at(left).id, at(at(left).next).id);
    if (found.rank != Merge::no_rank) candidates.push({found.rank, left, found.merged_id});
  };
  for (std::size_t index = 0; index + 1 < symbols.size(); ++index)
    consider(static_cast<std::int32_t>(index));
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = at(best.position);
    if (!left.alive || left.next < 0) continue;
    Symbol& right = at(left.next);
    // The pair at this place may have changed since it was queued.
    if (merges.get(left.id, right.id).rank != best.rank) continue;
    left.id = best.merged_id;
    right.alive = false;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = best.position;
    consider(left.previous);
    consider(best.position);
  }
  for (const Symbol& symbol : symbols)
    if (symbol.alive) ids.push_back(symbol.id);
}

}  // namespace underkeel::data
