// Runs the same tests on every rank of an mpirun; rank 0 reports, the others speak when they fail.

#include <cstdio>

#include <gtest/gtest.h>

#include "comm/mpi/world.h"

namespace underkeel::comm::testing {
namespace {
std::vector<std::unique_ptr<Communicator>>& groups() {
  static std::vector<std::unique_ptr<Communicator>> slot;
  return slot;
}

class FailuresOnly final : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", mpi_group(0).rank(), result.file_name(),
                   result.line_number(), result.summary());
  }
};
}  // namespace

Communicator& mpi_group(int which) {
  return *groups()[static_cast<std::size_t>(which)];
}
}  // namespace underkeel::comm::testing

int main(int argc, char** argv) {
  using namespace underkeel::comm;
  ::testing::InitGoogleTest(&argc, argv);
  auto groups = make_mpi_groups(2);
  if (!groups) {
    std::fprintf(stderr, "%s\n", to_text(groups.error()).c_str());
    return 1;
  }
  underkeel::comm::testing::groups() = std::move(*groups);
  for (int which = 0; which < 2; ++which)
    underkeel::comm::testing::mpi_group(which).set_time_limit(60);
  if (underkeel::comm::testing::mpi_group(0).rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new underkeel::comm::testing::FailuresOnly);
  }
  const int result = RUN_ALL_TESTS();
  finalize_mpi();
  return result;
}
