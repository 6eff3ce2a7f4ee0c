#include "train/matmul_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace underkeel::train {
namespace {

const kernels::MatmulChoices some{
    .made_on = "cuBLASLt 1 on a GPU of another time with 3 multiprocessors",
    .algorithms = {{"8192x4096x4096 bf16>bf16", "00ff"},
                   {"8192x4096x4096 bf16>f32 added", "0a0b"}}};

TEST(MatmulMemory, ReadsBackWhatItWrites) {
  const auto read = matmul_choices_from_json(to_json(some), "matmul.json");

  ASSERT_TRUE(read);
  EXPECT_EQ(*read, some);
}

TEST(MatmulMemory, NamesAFileThatIsNoList) {
  for (const char* text :
       {"", "[]", "{", "{\"made_on\": 3, \"algorithms\": {}}", "{\"made_on\": \"x\"}",
        "{\"made_on\": \"x\", \"algorithms\": {\"p\": 7}}"}) {
    const auto read = matmul_choices_from_json(text, "out/checkpoint-8/matmul.json");

    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_file);
    EXPECT_EQ(read.error().where, "out/checkpoint-8/matmul.json");
  }
}

TEST(MatmulMemory, ACheckpointOfAnotherGpuIsNoted) {
  const test::TemporaryFolder folder;
  io::FileSystem files;
  ASSERT_TRUE(
      files.write_text_durably(io::join_path(folder.path().string(), matmul_file), to_json(some)));
  Resume resume;
  resume.checkpoint.folder = folder.path().string();
  std::vector<std::string> notes;

  ASSERT_TRUE(recall_matmuls(files, &resume, "", 30, notes));

  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("a GPU of another time")));
}

TEST(MatmulMemory, ADamagedFileInACheckpointEndsTheRun) {
  const test::TemporaryFolder folder;
  io::FileSystem files;
  ASSERT_TRUE(files.write_text_durably(io::join_path(folder.path().string(), matmul_file),
                                       "{\"made_on\":"));
  Resume resume;
  resume.checkpoint.folder = folder.path().string();
  std::vector<std::string> notes;

  EXPECT_FALSE(recall_matmuls(files, &resume, "", 30, notes));
}

TEST(MatmulMemory, ACacheThatIsMissingOrDamagedIsNone) {
  const test::TemporaryFolder folder;
  io::FileSystem files;
  std::vector<std::string> notes;

  EXPECT_TRUE(
      recall_matmuls(files, nullptr, io::join_path(folder.path().string(), "none"), 30, notes));
  EXPECT_TRUE(recall_matmuls(files, nullptr, folder.path().string(), 0, notes));
  EXPECT_THAT(notes, testing::IsEmpty());
}

}  // namespace
}  // namespace underkeel::train
