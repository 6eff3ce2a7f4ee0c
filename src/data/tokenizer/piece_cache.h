#pragma once
// Remembers the ids of short pieces: most words of a text come again and again.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace underkeel::data {

/// Bounded: a full shard keeps what it has. Safe for several threads.
class PieceCache {
 public:
  /// Appends the remembered ids of `piece` and returns true, or returns false.
  bool append_ids(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (piece.size() > largest_piece_bytes) return false;
    Shard& shard = shard_of(piece);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.ids_of.find(piece);
    if (found == shard.ids_of.end()) return false;
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    return true;
  }

  void remember(std::string_view piece, const std::int32_t* ids, std::size_t count) {
    if (piece.size() > largest_piece_bytes) return;
    Shard& shard = shard_of(piece);
    const std::lock_guard lock(shard.mutex);
    if (shard.ids_of.size() < shard_entries)
      shard.ids_of.emplace(std::string(piece), std::vector<std::int32_t>(ids, ids + count));
  }

 private:
  // 16 x 4,096 entries of at most 128 bytes: about 10 MiB when full.
  static constexpr std::size_t shard_count = 16;
  static constexpr std::size_t shard_entries = 4096;
  static constexpr std::size_t largest_piece_bytes = 128;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<std::int32_t>, Hash, std::equal_to<>> ids_of;
  };

  Shard& shard_of(std::string_view piece) { return shards_[Hash{}(piece) >> 60]; }

  std::array<Shard, shard_count> shards_;
};

}  // namespace underkeel::data
