#pragma once
// The few calls of the operating system that files need, one virtual function each, so that a test
// can put faults between the program and the disk. Everything that loops, retries or words an error
// is above, in file.h.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace underkeel::io {

enum class OpenMode {
  read,    // an existing regular file
  update,  // an existing file, for writing and reading; what it holds stays
  create,  // for writing and reading; made, or emptied when it is there
  folder,  // an existing folder, only to sync it
};

enum class FileKind { file, folder, link, other };

struct FileStat {
  FileKind kind = FileKind::other;
  std::int64_t size_bytes = 0;
};

/// Every call answers as the kernel does: a count or 0, or -errno. No call is repeated here, none
/// is completed when it was cut short. All may be used from several threads at once.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(const std::string& path, OpenMode mode) = 0;
  virtual int close(int descriptor) = 0;
  virtual std::int64_t read(int descriptor, std::span<std::byte> into, std::int64_t offset) = 0;
  virtual std::int64_t write(int descriptor, std::span<const std::byte> from,
                             std::int64_t offset) = 0;
  /// Makes the file at least `size_bytes` long with its blocks reserved where the file system can.
  virtual int allocate(int descriptor, std::int64_t size_bytes) = 0;
  virtual int sync(int descriptor) = 0;
  virtual int stat_open(int descriptor, FileStat& stat) = 0;

  virtual int stat(const std::string& path, bool follow_links, FileStat& stat) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  /// Swaps two names in one step; -EINVAL where the file system cannot.
  virtual int exchange(const std::string& first, const std::string& second) = 0;
  virtual int make_folder(const std::string& path) = 0;
  virtual int remove_file(const std::string& path) = 0;
  virtual int remove_folder(const std::string& path) = 0;
  /// Names in the folder, without `.` and `..`, in no order.
  virtual int list(const std::string& path, std::vector<std::string>& names) = 0;
  /// Bytes that an ordinary user may still write on the file system that holds `path`.
  virtual int free_bytes(const std::string& path, std::int64_t& size_bytes) = 0;

  /// Waits a moment before a failed call is tried once more.
  virtual void pause() = 0;
};

/// The calls of this machine.
std::shared_ptr<SystemCalls> posix_calls();

}  // namespace underkeel::io
