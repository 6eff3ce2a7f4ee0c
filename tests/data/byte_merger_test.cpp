#include "data/tokenizer/byte_merger.h"

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/tokenizer/merge_symbols.h"

namespace underkeel::data {
namespace {

constexpr int letter_count = 3;

std::array<std::int32_t, 256> ids_of_bytes() {
  std::array<std::int32_t, 256> ids{};
  for (std::size_t byte = 0; byte < ids.size(); ++byte) ids[byte] = static_cast<std::int32_t>(byte);
  return ids;
}

// Any merges at all, of few letters and of what they merge to, so that ranks compete and some rows are full.
std::vector<MergePair> random_merges(std::mt19937& source) {
  std::vector<std::int32_t> ids;
  for (int letter = 0; letter < letter_count; ++letter) ids.push_back('a' + letter);
  const auto any = [&] { return ids[source() % ids.size()]; };
  std::set<std::pair<std::int32_t, std::int32_t>> taken;
  std::vector<MergePair> pairs;
  for (std::int32_t rank = 0; rank < 60; ++rank) {
    const MergePair pair{.left = any(), .right = any(), .merge = {rank, 300 + rank}};
    if (!taken.emplace(pair.left, pair.right).second) continue;
    pairs.push_back(pair);
    ids.push_back(pair.merge.merged_id);
  }
  return pairs;
}

std::string random_word(std::mt19937& source, std::size_t size_bytes) {
  std::string word;
  while (word.size() < size_bytes) word += static_cast<char>('a' + source() % letter_count);
  return word;
}

TEST(ByteMerger, MergesWordsOfEveryLengthAsTheHeapDoes) {
  std::mt19937 source(7);
  for (int round = 0; round < 200; ++round) {
    const MergeTable merges(random_merges(source));
    const ByteMerger merger(merges, ids_of_bytes());
    std::vector<std::string> words;
    for (std::size_t size = 1; size <= ByteMerger::longest_word_bytes; ++size)
      words.push_back(random_word(source, size));
    std::vector<std::array<std::int32_t, ByteMerger::longest_word_bytes>> ids(words.size());
    std::vector<ByteMerger::Job> jobs;
    for (std::size_t index = 0; index < words.size(); ++index)
      jobs.push_back({.word = words[index], .ids = ids[index].data()});

    merger.merge(jobs);

    for (const ByteMerger::Job& job : jobs) {
      const std::vector<std::int32_t> symbols(job.word.begin(), job.word.end());
      std::vector<std::int32_t> expected;
      merge_symbols(symbols, merges, expected);
      ASSERT_EQ(std::vector<std::int32_t>(job.ids, job.ids + job.id_count), expected)
          << job.word << " in round " << round;
    }
  }
}

TEST(MergeTable, KnowsTheLastOfEqualPairsAndNothingElse) {
  std::vector<MergePair> pairs;
  for (std::int32_t right = 0; right < 1000; ++right)
    pairs.push_back({.left = 5, .right = right, .merge = {right, 2000 + right}});
  pairs.push_back({.left = 5, .right = 17, .merge = {5000, 6000}});
  pairs.push_back({.left = 9, .right = 9, .merge = {5001, 6001}});
  const MergeTable table(pairs);

  EXPECT_EQ(table.get(5, 999).merged_id, 2999);
  EXPECT_EQ(table.get(5, 17).rank, 5000);
  EXPECT_EQ(table.get(9, 9).merged_id, 6001);
  for (const auto& [left, right] : {std::pair(5, 1000), std::pair(6, 5), std::pair(9, 8),
                                    std::pair(10, 0), std::pair(-1, 5), std::pair(5, -1)})
    EXPECT_EQ(table.get(left, right).rank, Merge::no_rank) << left << " " << right;
  EXPECT_EQ(MergeTable().get(0, 0).rank, Merge::no_rank);
}

}  // namespace
}  // namespace underkeel::data
