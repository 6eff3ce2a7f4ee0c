#include "io/file.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/faults.h"
#include "io/temp_folder.h"

namespace underkeel::io {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::shared_ptr<FaultyCalls> faulty(std::string_view rules) {
  return std::make_shared<FaultyCalls>(posix_calls(), parse_fault_rules(rules).value());
}

std::string read_all(File& file) {
  std::string text(static_cast<std::size_t>(file.size_bytes().value()), '\0');
  EXPECT_TRUE(file.read(std::as_writable_bytes(std::span(text)), 0));
  return text;
}

TEST(File, ReadsBackWhatSeveralWritesPutAtTheirOffsets) {
  const TempFolder folder;
  FileSystem files;
  File file = files.create(folder / "a").value();
  ASSERT_TRUE(file.preallocate(10));

  ASSERT_TRUE(file.write(bytes_of_text("world"), 5));
  ASSERT_TRUE(file.write(bytes_of_text("hello"), 0));

  EXPECT_EQ(file.size_bytes().value(), 10);
  EXPECT_EQ(read_all(file), "helloworld");
}

TEST(File, PreallocationKeepsWhatIsThereAndNeverShortens) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "a", "0123456789");
  File file = files.open_for_update(folder / "a").value();

  ASSERT_TRUE(file.preallocate(4));
  EXPECT_EQ(read_all(file), "0123456789");
  ASSERT_TRUE(file.preallocate(12));
  EXPECT_EQ(read_all(file), std::string("0123456789\0\0", 12));
}

TEST(File, NamesExpectedAndFoundBytesOfAShortFile) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "a", "0123456789");
  const File file = files.open(folder / "a").value();
  std::array<std::byte, 8> buffer{};

  const auto result = file.read(buffer, 5);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_file);
  EXPECT_EQ(result.error().what, "file is short: 13 bytes expected, 10 found");
  EXPECT_EQ(result.error().where, folder / "a, offset 5");
}

TEST(File, CompletesReadsAndWritesThatTheSystemCutsShort) {
  const TempFolder folder;
  FileSystem files(faulty("short:bytes=3,times=all;short:call=read,bytes=2,times=all"));
  File file = files.create(folder / "a").value();

  ASSERT_TRUE(file.write(bytes_of_text("hello, world"), 0));

  EXPECT_EQ(read_all(file), "hello, world");
}

TEST(File, RepeatsInterruptedCalls) {
  const TempFolder folder;
  FileSystem files(faulty("fail:error=EINTR,times=5;fail:call=sync,error=EINTR,times=3"));
  File file = files.create(folder / "a").value();

  EXPECT_TRUE(file.write(bytes_of_text("hello"), 0));
  EXPECT_TRUE(file.sync());
  EXPECT_EQ(read_all(file), "hello");
  EXPECT_TRUE(files.take_notes().empty());
}

TEST(File, OvercomesOneReadWriteErrorAndLeavesANote) {
  const TempFolder folder;
  FileSystem files(faulty("fail:error=EIO;fail:call=read,error=ESTALE"));
  File file = files.create(folder / "a").value();

  ASSERT_TRUE(file.write(bytes_of_text("hello"), 0));
  EXPECT_EQ(read_all(file), "hello");

  const auto notes = files.take_notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[0], HasSubstr("write failed once and is tried again: Input/output error"));
  EXPECT_THAT(notes[0], HasSubstr(folder / "a"));
  EXPECT_THAT(notes[1], HasSubstr("read failed once"));
  EXPECT_TRUE(files.take_notes().empty());
}

TEST(File, GivesUpAfterTheSecondErrorInOneCall) {
  const TempFolder folder;
  FileSystem files(faulty("fail:error=EIO,times=2"));
  File file = files.create(folder / "a").value();

  const auto result = file.write(bytes_of_text("hello"), 7);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_EQ(result.error().what, "cannot write 5 bytes: Input/output error");
  EXPECT_EQ(result.error().where, folder / "a, offset 7");
}

TEST(File, NeverRepeatsAFailedSync) {
  const TempFolder folder;
  FileSystem files(faulty("fail:call=sync,error=EIO"));
  File file = files.create(folder / "a").value();

  EXPECT_FALSE(file.sync());
  EXPECT_TRUE(files.take_notes().empty());
}

TEST(File, NamesNeededAndFreeBytesOfAFullDisk) {
  const TempFolder folder;
  FileSystem files(faulty("quota:bytes=10,path=" + folder.path()));
  File file = files.create(folder / "a").value();
  ASSERT_TRUE(file.write(bytes_of_text("0123456"), 0));

  const auto result = file.write(bytes_of_text("0123456"), 7);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_EQ(result.error().what,
            "no space left on the disk: 4 bytes needed, 0 bytes free on the disk");
  EXPECT_EQ(result.error().where, folder / "a, offset 10");
  EXPECT_THAT(result.error().fix, HasSubstr("save_total_limit"));
}

TEST(File, SaysThatAQuotaIsUsedUpThoughTheDiskHasSpace) {
  const TempFolder folder;
  FileSystem files(faulty("fail:error=EDQUOT,times=all"));
  File file = files.create(folder / "a").value();

  const auto result = file.write(bytes_of_text("hello"), 0);

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("the disk quota is used up: 5 bytes needed"));
}

TEST(File, FindsOutBeforeTheFirstByteThatAFileDoesNotFit) {
  const TempFolder folder;
  FileSystem files(faulty("quota:bytes=1000,path=" + folder.path()));
  File file = files.create(folder / "a").value();

  const auto result = file.preallocate(1001);

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what,
            "no space left on the disk: 1,001 bytes needed, 1,000 bytes free on the disk");
  EXPECT_TRUE(file.preallocate(1000));
}

TEST(FileSystem, RefusesWhatIsNotARegularFile) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);

  EXPECT_EQ(files.open(folder / "missing").error().code, ErrorCode::not_found);
  EXPECT_EQ(files.open(folder.path()).error().what, "a folder stands where a file is expected");
  EXPECT_EQ(files.open(folder / "pipe").error().what, "not a regular file");
}

TEST(FileSystem, ListsByNameAndLooksThroughLinks) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "b", "12345");
  std::filesystem::create_directory(folder / "c");
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("nowhere", folder / "d");

  const auto entries = files.list(folder.path()).value();

  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].kind, FileKind::file);
  EXPECT_EQ(entries[0].size_bytes, 5);
  EXPECT_EQ(entries[2].kind, FileKind::folder);
  EXPECT_EQ(entries[3].kind, FileKind::link);
}

TEST(FileSystem, RemovesATreeButNotWhatItsLinksPointTo) {
  const TempFolder folder;
  FileSystem files;
  ASSERT_TRUE(files.make_folders(folder / "tree/deep/deeper"));
  ASSERT_TRUE(files.make_folders(folder / "kept"));
  put(folder / "kept/precious", "x");
  put(folder / "tree/deep/file", "x");
  std::filesystem::create_symlink(folder / "kept", folder / "tree/link");

  ASSERT_TRUE(files.remove_tree(folder / "tree"));
  ASSERT_TRUE(files.remove_tree(folder / "tree"));

  EXPECT_FALSE(files.exists(folder / "tree"));
  EXPECT_TRUE(files.exists(folder / "kept/precious"));
}

TEST(FileSystem, ReplacesATextOnlyAfterTheNewOneIsOnTheDisk) {
  const TempFolder folder;
  const auto calls = faulty("");
  FileSystem files(calls);
  put(folder / "latest", "old");

  ASSERT_TRUE(files.write_text_durably(folder / "latest", "new"));

  EXPECT_EQ(content_of(folder / "latest"), "new");
  std::vector<CallKind> kinds;
  for (const SeenCall& call : calls->seen_calls()) kinds.push_back(call.kind);
  EXPECT_EQ(kinds, (std::vector{CallKind::create, CallKind::write, CallKind::sync, CallKind::rename,
                                CallKind::sync}));
}

TEST(FileSystem, KeepsTheOldTextWhenTheWriteOfTheNewOneFails) {
  const TempFolder folder;
  FileSystem files(faulty("fail:error=ENOSPC,times=all"));
  put(folder / "latest", "old");

  EXPECT_FALSE(files.write_text_durably(folder / "latest", "new"));

  EXPECT_EQ(content_of(folder / "latest"), "old");
}

TEST(FileSystem, AsksForFreeSpaceAboveAFolderThatIsNotThereYet) {
  const TempFolder folder;
  FileSystem files(faulty("quota:bytes=4096,path=" + folder.path()));

  EXPECT_EQ(files.free_bytes(folder / "run/checkpoint-1").value(), 4096);
}

TEST(FileSystem, RefusesATextAboveItsLimit) {
  const TempFolder folder;
  FileSystem files;
  put(folder / "a", "0123456789");

  EXPECT_EQ(files.read_text(folder / "a", 10).value(), "0123456789");
  EXPECT_EQ(files.read_text(folder / "a", 9).error().what, "file has 10 bytes; at most 9 are read");
}

TEST(Faults, KillTheProcessAfterThatManyBytesOfThatWrite) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    FileSystem files(faulty("kill:call=write,at=2,bytes=3"));
    File file = files.create(folder / "a").value();
    (void)file.write(bytes_of_text("01234"), 0);
    (void)file.write(bytes_of_text("56789"), 5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(content_of(folder / "a"), "01234567");
}

TEST(Faults, HitOnlyTheNamedFileFromTheNamedCallOn) {
  const TempFolder folder;
  FileSystem files(faulty("fail:path=state,at=2,times=all,error=EACCES"));
  File state = files.create(folder / "state-1").value();
  File other = files.create(folder / "other").value();

  EXPECT_TRUE(state.write(bytes_of_text("x"), 0));
  EXPECT_TRUE(other.write(bytes_of_text("x"), 0));
  EXPECT_TRUE(other.write(bytes_of_text("x"), 0));
  EXPECT_FALSE(state.write(bytes_of_text("x"), 0));
  EXPECT_FALSE(state.write(bytes_of_text("x"), 0));
}

TEST(Faults, RefuseARuleThatCannotBeRead) {
  for (const char* text : {"explode", "fail:when=3", "fail:at=x", "fail:error=EMUCH",
                           "fail:call=sing", "quota:bytes=5", "fail:at=-1"}) {
    const auto rules = parse_fault_rules(text);
    ASSERT_FALSE(rules) << text;
    EXPECT_EQ(rules.error().where, "UNDERKEEL_IO_FAULT");
  }
  EXPECT_EQ(parse_fault_rules("explode").error().fix, "known are fail, short, kill, delay, quota");
}

TEST(Paths, AreJoinedAndCut) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("a/b//"), "a");
  EXPECT_EQ(folder_of("/a"), "/");
  EXPECT_EQ(folder_of("a"), ".");
  EXPECT_EQ(folder_of("/"), "/");
}

}  // namespace
}  // namespace underkeel::io
