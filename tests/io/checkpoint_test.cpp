#include "io/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/faults.h"
#include "io/simulated_save.h"
#include "io/temp_folder.h"

namespace underkeel::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> names_in(FileSystem& files, const std::string& folder) {
  const auto entries = files.list(folder).value();
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries) names.push_back(entry.name);
  return names;
}

std::vector<std::int64_t> steps_of(const CheckpointList& list) {
  std::vector<std::int64_t> steps;
  for (const auto& found : list.complete) steps.push_back(found.step);
  return steps;
}

std::vector<Error> damages(FileSystem& files, const std::string& output,
                           const VerifyShare& share = {}) {
  std::array<std::byte, 64> buffer;
  return verify_checkpoint(files, newest_complete(files, output).value().value(), buffer, share)
      .value();
}

TEST(Checkpoint, IsCompleteWhenFinishedAndNotBefore) {
  const TempFolder folder;
  FileSystem files;
  const std::string output = folder / "runs/first";
  EXPECT_THAT(list_checkpoints(files, output).value().complete, IsEmpty());

  const Manifest manifest = write_simulated_save(files, output, 4).value();
  const auto before = list_checkpoints(files, output).value();
  ASSERT_TRUE(finish_checkpoint(files, output, manifest));
  const auto after = list_checkpoints(files, output).value();

  EXPECT_THAT(before.complete, IsEmpty());
  ASSERT_THAT(before.skipped, SizeIs(1));
  EXPECT_EQ(before.skipped[0].folder, output + "/tmp-checkpoint-4");
  EXPECT_EQ(before.skipped[0].reason, "the save was not finished");
  ASSERT_THAT(after.complete, SizeIs(1));
  EXPECT_EQ(after.complete[0].folder, output + "/checkpoint-4");
  EXPECT_THAT(after.skipped, IsEmpty());
  EXPECT_EQ(content_of(output + "/latest"), "checkpoint-4\n");
  EXPECT_THAT(names_in(files, output), ElementsAre("checkpoint-4", "latest"));
}

TEST(Checkpoint, GivesBackWhatTheRanksWrote) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 4));

  const auto found = newest_complete(files, folder.path()).value().value();
  const CheckpointTensor& tensor = *found.manifest.find("state-weights.a");
  std::vector<std::byte> bytes(400);
  ASSERT_TRUE(files.open(join_path(found.folder, tensor.file)).value().read(bytes, tensor.begin));

  EXPECT_THAT(damages(files, folder.path()), IsEmpty());
  const auto first = simulated_bytes(4, 0, 200);
  const auto second = simulated_bytes(4, 1, 200);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), bytes.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), bytes.begin() + 200));
}

TEST(Checkpoint, NewestIsTheOneOfTheHighestStepWhateverLatestSays) {
  const TempFolder folder;
  FileSystem files;
  for (const std::int64_t step : {900, 1000, 100})
    ASSERT_TRUE(simulated_save(files, folder.path(), step));
  put(folder / "latest", "checkpoint-100\n");

  EXPECT_THAT(steps_of(list_checkpoints(files, folder.path()).value()),
              ElementsAre(1000, 900, 100));
  EXPECT_EQ(newest_complete(files, folder.path()).value()->manifest.step, 1000);
}

TEST(Checkpoint, SkipsWhatOnlyLooksLikeOneAndSaysWhy) {
  const TempFolder folder;
  FileSystem files;
  for (const std::int64_t step : {1, 2, 3, 4, 5})
    ASSERT_TRUE(simulated_save(files, folder.path(), step));
  std::filesystem::create_directory(folder / "checkpoint-9");
  std::filesystem::create_directory(folder / "checkpoint-best");
  put(folder / "checkpoint-8", "a file");
  std::filesystem::remove(folder / "checkpoint-2/config.json");
  std::filesystem::resize_file(folder / "checkpoint-3/model.safetensors", 100);
  std::filesystem::resize_file(folder / "checkpoint-4/manifest.json", 100);
  std::filesystem::rename(folder / "checkpoint-5", folder / "checkpoint-7");

  const auto list = list_checkpoints(files, folder.path()).value();

  EXPECT_THAT(steps_of(list), ElementsAre(1));
  std::map<std::string, std::string> reasons;
  for (const auto& skipped : list.skipped)
    reasons[skipped.folder.substr(folder.path().size() + 1)] = skipped.reason;
  EXPECT_THAT(reasons, SizeIs(5));
  EXPECT_THAT(reasons["checkpoint-9"], HasSubstr("no manifest.json"));
  EXPECT_THAT(reasons["checkpoint-2"], HasSubstr("a file of the checkpoint is missing"));
  EXPECT_THAT(reasons["checkpoint-2"], HasSubstr("config.json"));
  EXPECT_THAT(reasons["checkpoint-3"], HasSubstr("wrong size"));
  EXPECT_THAT(reasons["checkpoint-4"], HasSubstr("not JSON at byte"));
  EXPECT_EQ(reasons["checkpoint-7"], "its manifest is of step 5");
}

TEST(Checkpoint, IsNotFinishedWhenAFileIsShort) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 1));
  const Manifest manifest = write_simulated_save(files, folder.path(), 2).value();
  std::filesystem::resize_file(folder / "tmp-checkpoint-2/state-00001.safetensors", 50);

  const auto result = finish_checkpoint(files, folder.path(), manifest);

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("wrong size"));
  EXPECT_THAT(steps_of(list_checkpoints(files, folder.path()).value()), ElementsAre(1));
  ASSERT_TRUE(abandon_checkpoint(files, folder.path(), 2));
  EXPECT_THAT(names_in(files, folder.path()), ElementsAre("checkpoint-1", "latest"));
}

TEST(Checkpoint, ReplacesACompleteOneOfTheSameStep) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 4));
  put(folder / "checkpoint-4/mark", "old");

  ASSERT_TRUE(simulated_save(files, folder.path(), 4));

  EXPECT_FALSE(files.exists(folder / "checkpoint-4/mark"));
  EXPECT_THAT(names_in(files, folder.path()), ElementsAre("checkpoint-4", "latest"));
  EXPECT_THAT(damages(files, folder.path()), IsEmpty());
}

TEST(Checkpoint, TakesThePlaceOfAFolderThatIsNone) {
  const TempFolder folder;
  FileSystem files;
  std::filesystem::create_directory(folder / "checkpoint-4");
  put(folder / "checkpoint-4/mark", "old");

  ASSERT_TRUE(simulated_save(files, folder.path(), 4));

  EXPECT_THAT(names_in(files, folder.path()), ElementsAre("checkpoint-4", "latest"));
  EXPECT_FALSE(files.exists(folder / "checkpoint-4/mark"));
}

TEST(Checkpoint, BeginsByRemovingWhatDeadSavesLeft) {
  const TempFolder folder;
  FileSystem files;
  std::filesystem::create_directories(folder / "tmp-checkpoint-3/deep");
  std::filesystem::create_directories(folder / "tmp-checkpoint-7-removed");
  std::filesystem::create_directories(folder / "tmp-of-the-user");

  ASSERT_TRUE(begin_checkpoint(files, folder.path(), 9));

  EXPECT_THAT(names_in(files, folder.path()), ElementsAre("tmp-checkpoint-9", "tmp-of-the-user"));
}

TEST(Checkpoint, VerificationNamesEveryDamagedByteRange) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 4));
  const auto found = newest_complete(files, folder.path()).value().value();
  const CheckpointTensor& tensor = *found.manifest.find("model.weights.a");

  for (std::int64_t offset : {tensor.begin, tensor.end - 1}) {
    File file = files.open_for_update(folder / "checkpoint-4/model.safetensors").value();
    ASSERT_TRUE(file.write(std::array{std::byte{0xee}}, offset));
  }
  put(folder / "checkpoint-4/config.json", "{\"step\": 5}\n");

  const auto errors = damages(files, folder.path());
  ASSERT_THAT(errors, SizeIs(3));
  EXPECT_THAT(errors[0].where, HasSubstr("model.safetensors, tensor model.weights.a"));
  EXPECT_THAT(errors[0].what, HasSubstr("are damaged: checksum"));
  EXPECT_THAT(errors[2].where, HasSubstr("config.json"));
}

TEST(Checkpoint, VerificationLooksIntoTheHeadersToo) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 4));
  const std::string path = folder / "checkpoint-4/model.safetensors";
  std::string content = content_of(path);
  // The same bytes under another cut: two tensors where one was.
  const std::size_t at = content.find("\"shape\":[2,50]");
  ASSERT_NE(at, std::string::npos);
  content.replace(at, 14, "\"shape\":[2,51]");
  put(path, content);

  const auto errors = damages(files, folder.path());

  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_THAT(errors[0].what, HasSubstr("shape [2, 51] need 408"));
}

TEST(Checkpoint, VerificationSharedByRanksFindsTheSame) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(simulated_save(files, folder.path(), 4));
  const auto found = newest_complete(files, folder.path()).value().value();
  for (const CheckpointTensor& tensor : found.manifest.tensors) {
    File file = files.open_for_update(join_path(found.folder, tensor.file)).value();
    for (const FilePart& part : tensor.parts)
      ASSERT_TRUE(file.write(std::array{std::byte{0xee}}, part.begin));
  }

  std::size_t sum = 0;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const auto share = damages(files, folder.path(), {.rank = rank, .world_size = 3});
    EXPECT_GE(share.size(), 2u);
    sum += share.size();
  }
  EXPECT_EQ(sum, 8u);
  EXPECT_THAT(damages(files, folder.path()), SizeIs(8));
}

TEST(Rotation, KeepsTheNewestAndTheProtected) {
  const TempFolder folder;
  FileSystem files;
  for (const std::int64_t step : {1, 2, 3, 4, 5})
    ASSERT_TRUE(simulated_save(files, folder.path(), step));

  const auto removed =
      remove_old_checkpoints(files, folder.path(), {.save_total_limit = 2, .protected_steps = {2}});

  EXPECT_THAT(removed.value(), ElementsAre(folder / "checkpoint-1", folder / "checkpoint-3",
                                           folder / "checkpoint-4"));
  EXPECT_THAT(names_in(files, folder.path()),
              ElementsAre("checkpoint-2", "checkpoint-5", "latest"));
  // The newest and the best are two, whatever the limit.
  ASSERT_TRUE(simulated_save(files, folder.path(), 6));
  ASSERT_TRUE(remove_old_checkpoints(files, folder.path(),
                                     {.save_total_limit = 1, .protected_steps = {2}}));
  EXPECT_THAT(names_in(files, folder.path()),
              ElementsAre("checkpoint-2", "checkpoint-6", "latest"));
}

TEST(Rotation, NeverRemovesTheOnlyCompleteOne) {
  const TempFolder folder;
  FileSystem files;
  for (const std::int64_t step : {1, 2, 3}) ASSERT_TRUE(simulated_save(files, folder.path(), step));
  std::filesystem::remove(folder / "checkpoint-2/manifest.json");
  std::filesystem::remove(folder / "checkpoint-3/model.safetensors");

  ASSERT_TRUE(remove_old_checkpoints(files, folder.path(), {.save_total_limit = 1}));

  EXPECT_EQ(newest_complete(files, folder.path()).value()->manifest.step, 1);
  EXPECT_TRUE(files.exists(folder / "checkpoint-2"));
}

TEST(Rotation, WithoutALimitKeepsAll) {
  const TempFolder folder;
  FileSystem files;
  for (const std::int64_t step : {1, 2}) ASSERT_TRUE(simulated_save(files, folder.path(), step));

  EXPECT_THAT(remove_old_checkpoints(files, folder.path(), {}).value(), IsEmpty());
}

TEST(Save, OnADiskWithRoomForOneAndAHalfFailsAndLeavesTheFirst) {
  const TempFolder folder;
  FileSystem plain;
  ASSERT_TRUE(simulated_save(plain, folder.path(), 1));
  std::int64_t one_bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file()) one_bytes += static_cast<std::int64_t>(entry.file_size());
  FileSystem files(std::make_shared<FaultyCalls>(
      posix_calls(), parse_fault_rules("quota:bytes=" + std::to_string(one_bytes * 3 / 2) +
                                       ",path=" + folder.path())
                         .value()));

  const auto second = simulated_save(files, folder.path(), 2);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::io);
  EXPECT_THAT(second.error().what, HasSubstr("no space left on the disk: "));
  EXPECT_THAT(second.error().what, HasSubstr(" bytes free on the disk"));
  ASSERT_TRUE(abandon_checkpoint(files, folder.path(), 2));
  EXPECT_THAT(damages(files, folder.path()), IsEmpty());
  EXPECT_EQ(newest_complete(files, folder.path()).value()->manifest.step, 1);
  EXPECT_THAT(names_in(files, folder.path()), ElementsAre("checkpoint-1", "latest"));
}

TEST(Save, GoesOnAfterOneErrorInAnyWrite) {
  for (int nth = 1; nth <= 20; ++nth) {
    const TempFolder folder;
    FileSystem files(std::make_shared<FaultyCalls>(
        posix_calls(), parse_fault_rules("fail:error=EIO,at=" + std::to_string(nth)).value()));

    ASSERT_TRUE(simulated_save(files, folder.path(), 1)) << nth;

    EXPECT_THAT(files.take_notes(), SizeIs(1)) << nth;
    EXPECT_THAT(damages(files, folder.path()), IsEmpty()) << nth;
  }
}

TEST(Save, SyncsEveryFileBeforeTheRenameAndTheFolderAfterIt) {
  const TempFolder folder;
  const auto calls = std::make_shared<FaultyCalls>(posix_calls(), std::vector<FaultRule>{});
  FileSystem files(calls);
  ASSERT_TRUE(simulated_save(files, folder.path(), 1));

  const std::vector<SeenCall> seen = calls->seen_calls();
  const auto position = [&](CallKind kind, const std::string& path) {
    std::ptrdiff_t last = -1;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i].kind == kind && seen[i].path == path) last = static_cast<std::ptrdiff_t>(i);
    return last;
  };
  const std::ptrdiff_t renamed = position(CallKind::rename, folder / "checkpoint-1");
  ASSERT_GE(renamed, 0);
  for (const char* name :
       {"model.safetensors", "state-00001.safetensors", "config.json", "manifest.json"}) {
    const std::string path = folder / "tmp-checkpoint-1/" + name;
    EXPECT_GE(position(CallKind::write, path), 0) << name;
    EXPECT_LT(position(CallKind::write, path), position(CallKind::sync, path)) << name;
    EXPECT_LT(position(CallKind::sync, path), renamed) << name;
  }
  EXPECT_GT(position(CallKind::create, folder / "tmp-checkpoint-1/manifest.json"),
            position(CallKind::sync, folder / "tmp-checkpoint-1/config.json"));
  EXPECT_LT(position(CallKind::sync, folder / "tmp-checkpoint-1"), renamed);
  const std::ptrdiff_t latest = position(CallKind::rename, folder / "latest");
  EXPECT_GT(latest, renamed);
  EXPECT_TRUE(std::any_of(seen.begin() + renamed, seen.begin() + latest, [&](const SeenCall& call) {
    return call.kind == CallKind::sync && call.path == folder.path();
  }));
}

}  // namespace
}  // namespace underkeel::io
