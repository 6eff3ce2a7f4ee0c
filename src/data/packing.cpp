#include "data/packing.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/check.h"

namespace underkeel::data {

std::vector<std::int64_t> batch_ends(std::int64_t count, const PackingBatches& batches) {
  std::vector<std::int64_t> ends;
  const std::int64_t shards = std::max<std::int64_t>(1, std::min(batches.shards, count));
  std::int64_t begin = 0;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const std::int64_t end = begin + count / shards + (shard < count % shards ? 1 : 0);
    for (; begin < end; begin = ends.back())
      ends.push_back(std::min(begin + batches.batch_records, end));
  }
  return ends;
}

std::vector<std::vector<std::uint32_t>> pack(std::span<const std::int64_t> lengths,
                                             std::int64_t capacity) {
  std::map<std::int64_t, std::vector<std::uint32_t>> left;  // by length
  for (std::size_t place = 0; place < lengths.size(); ++place) {
    UK_CHECK(lengths[place] <= capacity, "a sample is longer than a pack");
    left[lengths[place]].push_back(static_cast<std::uint32_t>(place));
  }
  std::vector<std::vector<std::uint32_t>> packs;
  while (!left.empty()) {
    auto& packed = packs.emplace_back();
    std::int64_t room = capacity;
    while (true) {
      const auto above = left.upper_bound(room);
      if (above == left.begin()) break;
      const auto fitting = std::prev(above);
      packed.push_back(fitting->second.back());
      room -= fitting->first;
      fitting->second.pop_back();
      if (fitting->second.empty()) left.erase(fitting);
    }
  }
  return packs;
}

}  // namespace underkeel::data
