// Expected values from torch 2.11 and numpy 2.4.

#include "data/random_order.h"

#include <gmock/gmock.h>

namespace underkeel::data {
namespace {

using testing::ElementsAre;

// h = h * 1000003 + value, modulo 2^61: tells whole orders apart.
std::uint64_t hash_of(const std::vector<std::uint32_t>& order) {
  __extension__ unsigned __int128 hash = 0;
  for (const std::uint32_t value : order)
    hash = (hash * 1000003 + value) % (std::uint64_t{1} << 61);
  return static_cast<std::uint64_t>(hash);
}

std::vector<std::uint32_t> front(std::vector<std::uint32_t> order) {
  order.resize(10);
  return order;
}

TEST(TorchPermutation, IsThatOfTorch) {
  EXPECT_THAT(torch_permutation(10, 42), ElementsAre(2, 6, 1, 8, 4, 5, 0, 9, 3, 7));
  EXPECT_THAT(torch_permutation(10, 1234), ElementsAre(5, 4, 8, 2, 6, 9, 1, 7, 0, 3));
  EXPECT_THAT(torch_permutation(10, 43), ElementsAre(8, 4, 9, 0, 5, 1, 6, 7, 2, 3));
  EXPECT_THAT(torch_permutation(10, 0), ElementsAre(4, 1, 7, 5, 3, 9, 0, 8, 6, 2));
  EXPECT_THAT(front(torch_permutation(1000, 42)),
              ElementsAre(542, 618, 816, 68, 94, 215, 60, 585, 942, 165));
  EXPECT_EQ(hash_of(torch_permutation(1000, 43)), 1526996031953422202u);
  EXPECT_EQ(hash_of(torch_permutation(100000, 42)), 2075563514428100078u);
  EXPECT_EQ(hash_of(torch_permutation(5, (std::uint64_t{1} << 33) + 1)), 1694194990909306184u);
}

TEST(NumpyPermutation, IsThatOfItsDefaultGenerator) {
  EXPECT_THAT(numpy_permutation(10, 42), ElementsAre(5, 6, 0, 7, 3, 2, 4, 9, 1, 8));
  EXPECT_THAT(numpy_permutation(20, 42),
              ElementsAre(15, 9, 14, 7, 12, 10, 6, 19, 3, 0, 16, 5, 11, 18, 2, 4, 17, 1, 13, 8));
  EXPECT_THAT(numpy_permutation(3, 0), ElementsAre(2, 0, 1));
  EXPECT_THAT(numpy_permutation(1, 0), ElementsAre(0));
  EXPECT_EQ(hash_of(numpy_permutation(1000, 7)), 3386227354392630u);
  EXPECT_EQ(hash_of(numpy_permutation(100000, 123456789012)), 1655728735145122106u);
  EXPECT_EQ(hash_of(numpy_permutation(70000, (std::uint64_t{1} << 40) + 5)), 93159139356381094u);
}

TEST(LegacyNumpyPermutation, GoesOnFromTheStateOfTheOneBefore) {
  LegacyNumpy numpy(42);

  EXPECT_THAT(numpy.permutation(10), ElementsAre(8, 1, 5, 0, 7, 2, 9, 4, 3, 6));
  EXPECT_EQ(hash_of(numpy.permutation(100000)), 1672692142033189202u);
  EXPECT_THAT(numpy.permutation(5), ElementsAre(1, 3, 2, 4, 0));
}

TEST(LegacyNumpyChoice, OfWhichSomeAreKeptGoesOnAsAfterAll) {
  LegacyNumpy whole(7), some(7);
  const auto all = whole.choice(10, 100, 100);

  const auto kept = some.choice(10, 100, 3);

  EXPECT_THAT(kept, ElementsAre(all[0], all[1], all[2]));
  EXPECT_EQ(some.permutation(20), whole.permutation(20));
}

}  // namespace
}  // namespace underkeel::data
