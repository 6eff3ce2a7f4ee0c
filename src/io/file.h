#pragma once
// Files: reads and writes that are exact or an error, and the steps that make a save durable.
// A write that ends in "no space left" says how much was to be written and how much is free.
// Not here: faults for tests (faults.h), formats (safetensors.h, manifest.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/system_calls.h"

namespace underkeel::io {

class FileSystem;

/// An open file, closed when it goes. Several threads or processes may write different ranges of
/// one file at once. The FileSystem must outlive it.
class File {
 public:
  File(FileSystem& file_system, int descriptor, std::string path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  Result<std::int64_t> size_bytes() const;

  /// Fills `into` from `offset`. Errors: bad_file when the file ends before; io.
  Result<void> read(std::span<std::byte> into, std::int64_t offset) const;
  /// Writes all of `from` at `offset`. Errors: io, naming file, offset, bytes needed and free.
  Result<void> write(std::span<const std::byte> from, std::int64_t offset);
  /// Makes the file at least `size_bytes` long and reserves its blocks where the file system can,
  /// so that a full disk shows before the first byte is written.
  Result<void> preallocate(std::int64_t size_bytes);
  /// Returns once the content is on the disk. Never tried again after a failure: the kernel forgets
  /// the pages that it could not write, and a second call would report success without them.
  Result<void> sync();
  /// Closes and reports what the file system only says then (network file systems do).
  Result<void> close();

 private:
  FileSystem* file_system_;
  int descriptor_;
  std::string path_;
};

struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::other;  // of what a link points to; `link` when it points nowhere
  std::int64_t size_bytes = 0;
};

/// Files and folders by path. Safe for several threads. A call that fails once with an error that
/// may pass (EIO, ESTALE, ETIMEDOUT, EREMOTEIO) is tried once more and leaves a note.
class FileSystem {
 public:
  explicit FileSystem(std::shared_ptr<SystemCalls> calls = posix_calls());
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  /// Errors: not_found, bad_file when it is not a regular file, io.
  Result<File> open(const std::string& path);
  Result<File> open_for_update(const std::string& path);
  Result<File> create(const std::string& path);

  /// The whole file. Errors: bad_file above `limit_bytes`; as open() and File::read().
  Result<std::string> read_text(const std::string& path, std::int64_t limit_bytes);
  /// Writes `path.tmp`, syncs it, renames it over `path`, syncs the folder: after a crash at any
  /// moment the old content is there, or the new one.
  Result<void> write_text_durably(const std::string& path, std::string_view text);

  /// Nothing when there is no such name; a link is followed.
  Result<std::optional<FileStat>> stat(const std::string& path);
  bool exists(const std::string& path);
  /// Sorted by name.
  Result<std::vector<FolderEntry>> list(const std::string& folder);
  /// Also makes what is missing above it.
  Result<void> make_folders(const std::string& folder);
  Result<void> rename(const std::string& from, const std::string& to);
  /// Swaps two names in one step. Errors: unsupported where the file system cannot.
  Result<void> exchange(const std::string& first, const std::string& second);
  Result<void> sync_folder(const std::string& folder);
  Result<void> remove_file(const std::string& path);
  /// Removes a file, a link (never what it points to) or a folder with all below it. No error when
  /// there is none.
  Result<void> remove_tree(const std::string& path);
  /// Bytes free for us where `path` is or would be made.
  Result<std::int64_t> free_bytes(const std::string& path);

  /// What went wrong and was overcome since the last call, one sentence each; for the log.
  std::vector<std::string> take_notes();

  SystemCalls& calls() { return *calls_; }
  void add_note(std::string note);

 private:
  Result<File> open_as(const std::string& path, OpenMode mode);

  std::shared_ptr<SystemCalls> calls_;
  std::mutex notes_mutex_;
  std::vector<std::string> notes_;
};

/// `folder/name`, without a doubled slash.
std::string join_path(std::string_view folder, std::string_view name);
/// The folder that holds `path`; "." when it names none.
std::string folder_of(std::string_view path);

}  // namespace underkeel::io
