#include "data/tokenizer/byte_words.h"

#include <algorithm>
#include <cstring>

#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/merge_symbols.h"

namespace underkeel::data {

std::unique_ptr<ByteWords> ByteWords::make(const std::vector<Token>& tokens,
                                           const MergeTable& merges, bool ignore_merges) {
  std::unique_ptr<ByteWords> words(new ByteWords(merges, ignore_merges));
  words->take_tokens(tokens);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string_view word(&c, 1);
    const std::int32_t id = words->whole_token(word, hash_of_word(word));
    if (id < 0) return nullptr;
    words->id_of_byte_[static_cast<std::size_t>(byte)] = id;
  }
  words->merger_.emplace(merges, words->id_of_byte_);
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
        equal_bytes(bytes_.data() + slot.begin, word.data(), word.size()))
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
  append_long_word(word, ids);
  const bool is = ids.size() == 1 && ids[0] == id;
  reach.store(is ? reachable : unreachable, std::memory_order_relaxed);
  return is;
}

// A word of any length.
void ByteWords::append_long_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> symbols(word.size());
  for (std::size_t index = 0; index < word.size(); ++index)
    symbols[index] = id_of_byte_[static_cast<unsigned char>(word[index])];
  merge_symbols(symbols, merges_, ids);
}

// Words that are looked up together, so that the memory which one needs arrives while others are cut,
// and merged together. Nothing is initialised: add() and look_up() write what is read.
class ByteWords::Batch {
 public:
  Batch(const ByteWords& words, WordCache* cache, std::vector<std::int32_t>& ids)
      : words_(words), cache_(cache), ids_(ids) {}

  void add(std::string_view word) {
    Item& item = items_[count_++];
    item.word = word;
    item.hash = hash_of_word(word);
    __builtin_prefetch(&words_.slots_[item.hash & (words_.slots_.size() - 1)]);
    if (cache_ != nullptr) cache_->fetch(item.hash);
    if (count_ == items_.size()) finish();
  }

  void finish() {
    std::array<ByteMerger::Job, most_words> jobs;
    std::array<Item*, most_words> job_items;
    std::size_t job_count = 0;
    for (std::size_t index = 0; index < count_; ++index) {
      Item& item = items_[index];
      item.kind = look_up(item);
      if (item.kind != Item::merged) continue;
      jobs[job_count] = {.word = item.word, .ids = item.ids.data()};
      job_items[job_count++] = &item;
    }
    words_.merger_->merge({jobs.data(), job_count});
    for (std::size_t job = 0; job < job_count; ++job) {
      Item& item = *job_items[job];
      item.id_count = jobs[job].id_count;
      if (has_cache_for(item.word) && item.id_count <= WordCache::most_ids)
        cache_->put(item.word, item.hash, item.ids.data(), item.id_count);
    }
    for (std::size_t index = 0; index < count_; ++index) append(items_[index]);
    count_ = 0;
  }

 private:
  static constexpr std::size_t most_words = 32;

  struct Item {
    enum Kind : std::uint8_t { known, merged, is_long };
    std::string_view word;
    std::uint64_t hash;
    Kind kind;
    std::size_t id_count;
    std::array<std::int32_t, ByteMerger::longest_word_bytes> ids;
  };

  bool has_cache_for(std::string_view word) const {
    return cache_ != nullptr && word.size() <= WordCache::longest_word_bytes;
  }

  Item::Kind look_up(Item& item) const {
    if (item.word.size() == 1) {
      item.ids[0] = words_.id_of_byte_[static_cast<unsigned char>(item.word[0])];
      item.id_count = 1;
      return Item::known;
    }
    const std::int32_t id = words_.whole_token(item.word, item.hash);
    if (id >= 0 && words_.is_reachable(item.word, id)) {
      item.ids[0] = id;
      item.id_count = 1;
      return Item::known;
    }
    if (item.word.size() > ByteMerger::longest_word_bytes) return Item::is_long;
    if (!has_cache_for(item.word)) return Item::merged;
    const WordCache::Entry* entry = cache_->find(item.word, item.hash);
    if (entry == nullptr) return Item::merged;
    // All of them, which is one move: the entry may be another word's when its turn comes.
    std::memcpy(item.ids.data(), entry->ids.data(), sizeof entry->ids);
    item.id_count = entry->id_count;
    return Item::known;
  }

  void append(const Item& item) {
    if (item.kind == Item::is_long)
      words_.append_long_word(item.word, ids_);
    else if (item.id_count == 1)
      ids_.push_back(item.ids[0]);
    else
      ids_.insert(ids_.end(), item.ids.data(), item.ids.data() + item.id_count);
  }

  const ByteWords& words_;
  WordCache* cache_;
  std::vector<std::int32_t>& ids_;
  std::array<Item, most_words> items_;
  std::size_t count_ = 0;
};

void ByteWords::append_ids(std::string_view text, const WordCutter& cutter, WordPattern pattern,
                           bool use_cache, std::vector<std::int32_t>& ids) const {
  std::unique_ptr<WordCache> cache = use_cache ? borrow_cache() : nullptr;
  Batch batch(*this, cache.get(), ids);
  const auto visit = [&](std::string_view word) { batch.add(word); };
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
  batch.finish();
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
