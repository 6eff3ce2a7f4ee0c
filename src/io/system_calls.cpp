// The calls of a POSIX system. pread and pwrite only: pages of a mapped file would count as memory
// of this process.
#include "io/system_calls.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string_view>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace underkeel::io {

namespace {

int or_errno(int result) {
  return result < 0 ? -errno : result;
}

FileStat stat_of(const struct stat& raw) {
  FileStat stat;
  stat.size_bytes = raw.st_size;
  if (S_ISREG(raw.st_mode)) stat.kind = FileKind::file;
  if (S_ISDIR(raw.st_mode)) stat.kind = FileKind::folder;
  if (S_ISLNK(raw.st_mode)) stat.kind = FileKind::link;
  return stat;
}

class PosixCalls final : public SystemCalls {
 public:
  int open(const std::string& path, OpenMode mode) override {
    // O_NONBLOCK: a named pipe in place of a model file must not hang us; no effect on files.
    int flags = O_CLOEXEC | O_NONBLOCK;
    switch (mode) {
      case OpenMode::read:
        flags |= O_RDONLY;
        break;
      case OpenMode::update:
        flags |= O_RDWR;
        break;
      case OpenMode::create:
        flags |= O_RDWR | O_CREAT | O_TRUNC;
        break;
      case OpenMode::folder:
        flags |= O_RDONLY | O_DIRECTORY;
        break;
    }
    return or_errno(::open(path.c_str(), flags, 0666));
  }

  int close(int descriptor) override { return or_errno(::close(descriptor)); }

  std::int64_t read(int descriptor, std::span<std::byte> into, std::int64_t offset) override {
    const ssize_t count = ::pread(descriptor, into.data(), into.size(), offset);
    return count < 0 ? -errno : count;
  }

  std::int64_t write(int descriptor, std::span<const std::byte> from,
                     std::int64_t offset) override {
    const ssize_t count = ::pwrite(descriptor, from.data(), from.size(), offset);
    return count < 0 ? -errno : count;
  }

  int allocate(int descriptor, std::int64_t size_bytes) override {
    if (size_bytes == 0) return 0;
    // Not posix_fallocate: where the file system cannot reserve, that one writes a byte into every
    // block, a whole pass over the disk for nothing.
    const int result = or_errno(::fallocate(descriptor, 0, 0, size_bytes));
    if (result != -EOPNOTSUPP && result != -ENOSYS) return result;
    struct stat raw {};
    if (::fstat(descriptor, &raw) < 0) return -errno;
    if (raw.st_size >= size_bytes) return 0;
    return or_errno(::ftruncate(descriptor, size_bytes));
  }

  int sync(int descriptor) override { return or_errno(::fsync(descriptor)); }

  int stat_open(int descriptor, FileStat& stat) override {
    struct stat raw {};
    if (::fstat(descriptor, &raw) < 0) return -errno;
    stat = stat_of(raw);
    return 0;
  }

  int stat(const std::string& path, bool follow_links, FileStat& stat) override {
    struct stat raw {};
    const int result = follow_links ? ::stat(path.c_str(), &raw) : ::lstat(path.c_str(), &raw);
    if (result < 0) return -errno;
    stat = stat_of(raw);
    return 0;
  }

  int rename(const std::string& from, const std::string& to) override {
    return or_errno(::rename(from.c_str(), to.c_str()));
  }

  int exchange(const std::string& first, const std::string& second) override {
    return or_errno(
        ::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE));
  }

  int make_folder(const std::string& path) override {
    return or_errno(::mkdir(path.c_str(), 0777));
  }
  int remove_file(const std::string& path) override { return or_errno(::unlink(path.c_str())); }
  int remove_folder(const std::string& path) override { return or_errno(::rmdir(path.c_str())); }

  int list(const std::string& path, std::vector<std::string>& names) override {
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return -errno;
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    ::closedir(folder);
    return -error;
  }

  int free_bytes(const std::string& path, std::int64_t& size_bytes) override {
    struct statvfs raw {};
    if (::statvfs(path.c_str(), &raw) < 0) return -errno;
    // Some network file systems report "no limit" as a number that does not fit in bytes.
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const auto block_bytes = static_cast<std::int64_t>(std::max<unsigned long>(raw.f_frsize, 1));
    const auto blocks = std::min<std::uint64_t>(raw.f_bavail, most);
    size_bytes = static_cast<std::int64_t>(blocks) > most / block_bytes
                     ? most
                     : static_cast<std::int64_t>(blocks) * block_bytes;
    return 0;
  }

  void pause() override { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }
};

}  // namespace

std::shared_ptr<SystemCalls> posix_calls() {
  return std::make_shared<PosixCalls>();
}

}  // namespace underkeel::io
