#pragma once
// Remembers the ids of short words: most words of a text come again and again. For one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace underkeel::data {

/// Mixes all bytes of `word`.
inline std::uint64_t hash_of_word(std::string_view word) {
  constexpr std::uint64_t first_key = 0x9E3779B97F4A7C15;
  constexpr std::uint64_t second_key = 0xD6E8FEB86659FD93;
  const auto load8 = [](const char* from) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, 8);
    return value;
  };
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const char* data = word.data();
  const std::size_t size = word.size();
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  // Not size * second_key, which makes the second factor of all single bytes zero.
  std::uint64_t seed = (size + 1) * second_key;
  if (size >= 8) {
    std::size_t at = 0;
    for (; at + 16 < size; at += 8) seed = mix(seed ^ load8(data + at), first_key);
    a = load8(data + at);
    b = load8(data + size - 8);
  } else if (size >= 4) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + size - 4, 4);
    a = low;
    b = high;
  } else if (size > 0) {
    const auto byte = [&](std::size_t index) {
      return std::uint64_t{static_cast<unsigned char>(data[index])};
    };
    a = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  return mix(a ^ first_key, b ^ seed ^ second_key);
}

/// memcmp() for what is mostly a few bytes.
inline bool equal_bytes(const char* a, const char* b, std::size_t size) {
  const auto differ = [&]<class Word>(Word, std::size_t at) {
    Word left = 0;
    Word right = 0;
    std::memcpy(&left, a + at, sizeof(Word));
    std::memcpy(&right, b + at, sizeof(Word));
    return left ^ right;
  };
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8)
      if (differ(std::uint64_t{}, at) != 0) return false;
    return differ(std::uint64_t{}, size - 8) == 0;
  }
  if (size >= 4) return (differ(std::uint32_t{}, 0) | differ(std::uint32_t{}, size - 4)) == 0;
  for (std::size_t at = 0; at < size; ++at)
    if (a[at] != b[at]) return false;
  return true;
}

/// One cache line an entry. A word takes the place of another one with the same slot, so that what is
/// used much comes back; the table grows with what is put in, to 32 MiB.
class WordCache {
 public:
  struct alignas(64) Entry {
    std::uint8_t size_bytes = 0;  // 0: empty
    std::uint8_t id_count = 0;
    std::array<char, 30> bytes;
    std::array<std::int32_t, 8> ids;
  };
  static constexpr std::size_t longest_word_bytes = 30;
  static constexpr std::size_t most_ids = 8;

  WordCache() : entries_(first_count) {}

  /// Brings what find() will read into the nearest cache.
  void fetch(std::uint64_t hash) const {
    __builtin_prefetch(&entries_[hash & (entries_.size() - 1)]);
  }

  /// nullptr when `word` is not there.
  const Entry* find(std::string_view word, std::uint64_t hash) const {
    const Entry& entry = entries_[hash & (entries_.size() - 1)];
    const bool equal = entry.size_bytes == word.size() &&
                       equal_bytes(entry.bytes.data(), word.data(), word.size());
    return equal ? &entry : nullptr;
  }

  /// `word` is neither empty nor longer than longest_word_bytes; at most most_ids ids.
  void put(std::string_view word, std::uint64_t hash, const std::int32_t* ids, std::size_t count) {
    if (++put_count_ > entries_.size() && entries_.size() < largest_count) grow();
    Entry& entry = entries_[hash & (entries_.size() - 1)];
    entry.size_bytes = static_cast<std::uint8_t>(word.size());
    entry.id_count = static_cast<std::uint8_t>(count);
    std::memcpy(entry.bytes.data(), word.data(), word.size());
    std::memcpy(entry.ids.data(), ids, count * sizeof(std::int32_t));
  }

 private:
  static constexpr std::size_t first_count = std::size_t{1} << 10;
  static constexpr std::size_t largest_count = std::size_t{1} << 19;

  void grow() {
    std::vector<Entry> old(entries_.size() * 4 <= largest_count ? entries_.size() * 4
                                                                : largest_count);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.size_bytes > 0)
        entries_[hash_of_word({entry.bytes.data(), entry.size_bytes}) & (entries_.size() - 1)] =
            entry;
    put_count_ = 0;
  }

  std::vector<Entry> entries_;
  std::size_t put_count_ = 0;
};

}  // namespace underkeel::data
