#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/communicator.h"

namespace underkeel::comm {
namespace {

TEST(AbsentMpi, SaysHowToBuildItIn) {
  const auto groups = make_mpi_groups(2);

  ASSERT_FALSE(groups);
  EXPECT_EQ(groups.error().code, ErrorCode::unsupported);
  EXPECT_THAT(groups.error().fix, ::testing::HasSubstr("-DUNDERKEEL_MPI=ON"));
  finalize_mpi();
}

}  // namespace
}  // namespace underkeel::comm
