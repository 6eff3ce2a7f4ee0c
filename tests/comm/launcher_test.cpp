#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "comm/communicator.h"

namespace underkeel::comm {
namespace {

/// started_by_mpi() in an environment that holds these launcher variables and no others.
bool started_with(const std::map<std::string, std::string>& variables) {
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"})
    unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return started_by_mpi();
}

TEST(Launcher, IsSeenInTheEnvironmentThatItMakes) {
  EXPECT_TRUE(started_with({{"OMPI_COMM_WORLD_SIZE", "2"}}));
  EXPECT_TRUE(started_with({{"PMIX_RANK", "0"}}));
  EXPECT_TRUE(started_with({{"PMI_RANK", "1"}}));
  EXPECT_TRUE(started_with({{"SLURM_STEP_NUM_TASKS", "4"}}));
}

TEST(Launcher, IsNotSeenInAShellOrABatchScript) {
  EXPECT_FALSE(started_with({}));
  EXPECT_FALSE(started_with({{"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(started_with({{"SLURM_STEP_NUM_TASKS", "1"}}));
}

}  // namespace
}  // namespace underkeel::comm
