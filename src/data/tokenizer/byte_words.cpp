#include "data/tokenizer/byte_words.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/merge_symbols.h"

namespace underkeel::data {
namespace {

constexpr std::int32_t no_rank = std::numeric_limits<std::int32_t>::max();

// Looking at all pairs again after every merge beats a heap for words of this many bytes.
constexpr std::size_t longest_scanned_bytes = 48;

}  // namespace

std::unique_ptr<ByteWords> ByteWords::make(const std::vector<Token>& tokens,
                                           const MergeTable& merges, bool ignore_merges) {
  std::unique_ptr<ByteWords> words(new ByteWords(merges));
  words->ignore_merges_ = ignore_merges;
  words->take_tokens(tokens);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string_view word(&c, 1);
    const std::int32_t id = words->whole_token(word, hash_of_word(word));
    if (id < 0) return nullptr;
    words->id_of_byte_[static_cast<std::size_t>(byte)] = id;
  }
  words->merge_of_bytes_.resize(std::size_t{1} << 16, Merge{no_rank, -1});
  for (std::size_t pair = 0; pair < words->merge_of_bytes_.size(); ++pair)
    if (const Merge* merge =
            merges.get(words->id_of_byte_[pair >> 8], words->id_of_byte_[pair & 0xFF]))
      words->merge_of_bytes_[pair] = *merge;
  return words;
}

void ByteWords::take_tokens(const std::vector<Token>& tokens) {
  std::size_t capacity = 1024;
  while (capacity < 2 * tokens.size() + 2) capacity *= 2;
  slots_.resize(capacity);
  std::int32_t largest = -1;
  for (const Token& token : tokens) {
    largest = std::max(largest, token.id);
    // A token with another character is found in no word.
    const auto bytes = characters_to_bytes(token.text);
    if (!bytes || bytes->empty()) continue;
    const std::uint64_t hash = hash_of_word(*bytes);
    std::size_t index = hash & (capacity - 1);
    while (slots_[index].id >= 0) index = (index + 1) & (capacity - 1);
    slots_[index] = {.begin = static_cast<std::uint32_t>(bytes_.size()),
                     .size_bytes = static_cast<std::uint32_t>(bytes->size()),
                     .hash = static_cast<std::uint32_t>(hash >> 32),
                     .id = token.id};
    bytes_ += *bytes;
  }
  reach_ = std::vector<std::atomic<std::uint8_t>>(static_cast<std::size_t>(largest + 1));
}

std::int32_t ByteWords::whole_token(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t index = hash & mask; slots_[index].id >= 0; index = (index + 1) & mask) {
    const Slot& slot = slots_[index];
    if (slot.hash == hash >> 32 && slot.size_bytes == word.size() &&
        std::memcmp(bytes_.data() + slot.begin, word.data(), word.size()) == 0)
      return slot.id;
  }
  return -1;
}

bool ByteWords::is_reachable(std::string_view word, std::int32_t id) const {
  if (ignore_merges_) return true;
  std::atomic<std::uint8_t>& reach = reach_[static_cast<std::size_t>(id)];
  const std::uint8_t known = reach.load(std::memory_order_relaxed);
  if (known != unknown) return known == reachable;
  std::vector<std::int32_t> ids;
  append_merged(word, ids);
  const bool is = ids.size() == 1 && ids[0] == id;
  reach.store(is ? reachable : unreachable, std::memory_order_relaxed);
  return is;
}

void ByteWords::append_merged(std::string_view word, std::vector<std::int32_t>& ids) const {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(word[index]); };
  if (word.size() > longest_scanned_bytes) {
    std::vector<std::int32_t> symbols(word.size());
    for (std::size_t index = 0; index < word.size(); ++index)
      symbols[index] = id_of_byte_[byte(index)];
    merge_symbols(symbols, merges_, ids);
    return;
  }
  std::array<std::int32_t, longest_scanned_bytes> symbols;
  std::array<Merge, longest_scanned_bytes> pairs;  // of a symbol with the next one
  std::size_t count = word.size();
  for (std::size_t index = 0; index < count; ++index) symbols[index] = id_of_byte_[byte(index)];
  for (std::size_t index = 0; index + 1 < count; ++index)
    pairs[index] = merge_of_bytes_[std::size_t{byte(index)} << 8 | byte(index + 1)];
  const auto pair_at = [&](std::size_t index) {
    const Merge* merge = merges_.get(symbols[index], symbols[index + 1]);
    return merge == nullptr ? Merge{no_rank, -1} : *merge;
  };
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t index = 1; index + 1 < count; ++index)
      if (pairs[index].rank < pairs[best].rank) best = index;
    if (pairs[best].rank == no_rank) break;
    symbols[best] = pairs[best].merged_id;
    --count;
    for (std::size_t index = best + 1; index < count; ++index) {
      symbols[index] = symbols[index + 1];
      pairs[index - 1] = pairs[index];
    }
    if (best + 1 < count) pairs[best] = pair_at(best);
    if (best > 0) pairs[best - 1] = pair_at(best - 1);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(count));
}

void ByteWords::append_word(std::string_view word, WordCache* cache,
                            std::vector<std::int32_t>& ids) const {
  if (word.size() == 1) {
    ids.push_back(id_of_byte_[static_cast<unsigned char>(word[0])]);
    return;
  }
  const std::uint64_t hash = hash_of_word(word);
  if (const std::int32_t id = whole_token(word, hash); id >= 0 && is_reachable(word, id)) {
    ids.push_back(id);
    return;
  }
  const bool is_short = cache != nullptr && word.size() <= WordCache::longest_word_bytes;
  if (is_short) {
    if (const WordCache::Entry* entry = cache->find(word, hash)) {
      ids.insert(ids.end(), entry->ids.begin(), entry->ids.begin() + entry->id_count);
      return;
    }
  }
  const std::size_t first = ids.size();
  append_merged(word, ids);
  if (is_short && ids.size() - first <= WordCache::most_ids)
    cache->put(word, hash, ids.data() + first, ids.size() - first);
}

void ByteWords::append_ids(std::string_view text, const WordCutter& cutter, WordPattern pattern,
                           bool use_cache, std::vector<std::int32_t>& ids) const {
  std::unique_ptr<WordCache> cache = use_cache ? borrow_cache() : nullptr;
  const auto visit = [&](std::string_view word) { append_word(word, cache.get(), ids); };
  switch (pattern) {
    case WordPattern::gpt2:
      cutter.cut<WordPattern::gpt2>(text, visit);
      break;
    case WordPattern::llama3:
      cutter.cut<WordPattern::llama3>(text, visit);
      break;
    case WordPattern::qwen2:
      cutter.cut<WordPattern::qwen2>(text, visit);
      break;
  }
  if (cache != nullptr) give_back(std::move(cache));
}

std::unique_ptr<WordCache> ByteWords::borrow_cache() const {
  const std::lock_guard lock(mutex_);
  if (idle_caches_.empty()) return std::make_unique<WordCache>();
  std::unique_ptr<WordCache> cache = std::move(idle_caches_.back());
  idle_caches_.pop_back();
  return cache;
}

void ByteWords::give_back(std::unique_ptr<WordCache> cache) const {
  const std::lock_guard lock(mutex_);
  idle_caches_.push_back(std::move(cache));
}

}  // namespace underkeel::data
