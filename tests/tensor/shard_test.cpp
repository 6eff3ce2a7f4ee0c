#include "tensor/shard.h"

#include <gtest/gtest.h>

namespace underkeel {
namespace {

TEST(Shard, CoversEveryElementOnceForAnyWorldSize) {
  for (std::int64_t elements : {1L, 16'384L, 16'385L, 130'583L, 7'000'001L}) {
    for (std::int64_t world = 1; world <= 9; ++world) {
      std::int64_t at = 0;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const ShardRange range = shard_of(elements, world, rank);
        EXPECT_EQ(range.begin, at);
        if (!range.empty()) {
          EXPECT_EQ(range.begin % shard_alignment_elements, 0);
        }
        EXPECT_LE(range.size(), shard_elements(elements, world));
        at = range.end;
      }
      EXPECT_EQ(at, elements);
    }
  }
}

TEST(Shard, IntersectionOfDisjointRangesIsEmpty) {
  EXPECT_TRUE(intersect({0, 4}, {8, 9}).empty());
  EXPECT_EQ(intersect({0, 10}, {4, 20}).size(), 6);
}

}  // namespace
}  // namespace underkeel
