// A save that is killed at every single call that changes the disk, in a process of its own.
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/checkpoint.h"
#include "io/faults.h"
#include "io/simulated_save.h"
#include "io/temp_folder.h"

namespace underkeel::io {
namespace {

using ::testing::IsEmpty;

enum class Ending { killed, saved, failed };

/// Saves `step` in a child that the rule kills, with a limit of one checkpoint.
Ending save_in_child(const std::string& output, std::int64_t step, const std::string& rule) {
  const pid_t child = ::fork();
  if (child == 0) {
    FileSystem files(std::make_shared<FaultyCalls>(posix_calls(), parse_fault_rules(rule).value()));
    const bool saved = simulated_save(files, output, step, {.save_total_limit = 1}).has_value();
    ::_exit(saved ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) return Ending::killed;
  return WEXITSTATUS(status) == 0 ? Ending::saved : Ending::failed;
}

/// What must hold after any kill; gives the step that would be resumed.
std::int64_t step_after_kill(FileSystem& files, const std::string& output) {
  const auto newest = newest_complete(files, output).value();
  if (!newest) {
    ADD_FAILURE() << "no checkpoint left";
    return -1;
  }
  std::array<std::byte, 64> buffer;
  EXPECT_THAT(verify_checkpoint(files, *newest, buffer).value(), IsEmpty());
  EXPECT_EQ(content_of(newest->folder + "/config.json"),
            "{\"step\": " + std::to_string(newest->manifest.step) + "}\n");
  const CheckpointTensor& tensor = *newest->manifest.find("model.weights.a");
  std::array<std::byte, 1> first;
  EXPECT_TRUE(files.open(join_path(newest->folder, tensor.file)).value().read(first, tensor.begin));
  EXPECT_EQ(first[0], static_cast<std::byte>(newest->manifest.step * 16));
  const auto list = list_checkpoints(files, output).value();
  for (const auto& skipped : list.skipped)
    EXPECT_EQ(skipped.reason, "the save was not finished") << skipped.folder;
  return newest->manifest.step;
}

class KilledSave : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledSave, LeavesACompleteCheckpointAtEveryCall) {
  int kills = 0;
  int kept_old = 0;
  int found_new = 0;
  for (int nth = 1; nth < 1000; ++nth) {
    SCOPED_TRACE(nth);
    const TempFolder folder;
    FileSystem files;
    ASSERT_TRUE(simulated_save(files, folder.path(), 1));

    const Ending ending =
        save_in_child(folder.path(), 2, "kill:at=" + std::to_string(nth) + GetParam());

    ASSERT_NE(ending, Ending::failed);
    const std::int64_t step = step_after_kill(files, folder.path());
    if (ending == Ending::saved) {
      EXPECT_EQ(step, 2);
      break;
    }
    ++kills;
    (step == 1 ? kept_old : found_new) += 1;
    // The next save works and clears what the dead one left.
    ASSERT_TRUE(simulated_save(files, folder.path(), 3, {.save_total_limit = 1}));
    EXPECT_EQ(step_after_kill(files, folder.path()), 3);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      EXPECT_TRUE(entry.path().filename() == "checkpoint-3" || entry.path().filename() == "latest")
          << entry.path();
  }
  EXPECT_GE(kills, 15);
  EXPECT_GE(kept_old, 15);
  RecordProperty("kills", kills);
  RecordProperty("resumed_from_new", found_new);
}

TEST(KilledSecondSave, OfAStepThatIsThereAlreadyLeavesOneOfBothAtEveryCall) {
  for (int nth = 1; nth < 1000; ++nth) {
    SCOPED_TRACE(nth);
    const TempFolder folder;
    FileSystem files;
    ASSERT_TRUE(simulated_save(files, folder.path(), 1));

    const Ending ending = save_in_child(folder.path(), 1, "kill:at=" + std::to_string(nth));

    ASSERT_NE(ending, Ending::failed);
    EXPECT_EQ(step_after_kill(files, folder.path()), 1);
    if (ending == Ending::saved) return;
  }
  FAIL() << "the save never ended";
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, KilledSave,
                         ::testing::Values("", ",call=write,bytes=30", ",call=write,bytes=1"),
                         [](const auto& tested) {
                           const std::string rule = tested.param;
                           if (rule.empty()) return "BeforeTheCall";
                           return rule.ends_with("30") ? "Within30BytesOfAWrite" : "AfterOneByte";
                         });

}  // namespace
}  // namespace underkeel::io
