#pragma once
// System calls over files in memory, so that a fuzz target takes the road of real files.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "io/system_calls.h"

namespace underkeel::io {

class MemoryCalls final : public SystemCalls {
 public:
  /// Every path is a file of `content`, but that which ends in `other_name`, which is one of `other`.
  explicit MemoryCalls(std::span<const std::byte> content, std::string other_name = {},
                       std::span<const std::byte> other = {})
      : content_{content, other}, other_name_(std::move(other_name)) {}

  int open(const std::string& path, OpenMode mode) override {
    return mode == OpenMode::read ? file_at(path) : -EROFS;
  }
  int close(int) override { return 0; }
  std::int64_t read(int file, std::span<std::byte> into, std::int64_t offset) override {
    const std::span<const std::byte> content = content_[file];
    const std::int64_t left = std::max<std::int64_t>(0, std::ssize(content) - offset);
    const std::int64_t count = std::min(left, std::ssize(into));
    if (count > 0) std::memcpy(into.data(), content.data() + offset, count);
    return count;
  }
  std::int64_t write(int, std::span<const std::byte>, std::int64_t) override { return -EROFS; }
  int allocate(int, std::int64_t) override { return -EROFS; }
  int sync(int) override { return 0; }
  int stat_open(int file, FileStat& stat) override {
    stat = {FileKind::file, std::ssize(content_[file])};
    return 0;
  }
  int stat(const std::string& path, bool, FileStat& stat) override {
    return stat_open(file_at(path), stat);
  }
  int rename(const std::string&, const std::string&) override { return -EROFS; }
  int exchange(const std::string&, const std::string&) override { return -EROFS; }
  int make_folder(const std::string&) override { return -EROFS; }
  int remove_file(const std::string&) override { return -EROFS; }
  int remove_folder(const std::string&) override { return -EROFS; }
  int list(const std::string&, std::vector<std::string>&) override { return -ENOENT; }
  int free_bytes(const std::string&, std::int64_t&) override { return -ENOSYS; }
  void pause() override {}

 private:
  int file_at(const std::string& path) const {
    return !other_name_.empty() && path.ends_with(other_name_) ? 1 : 0;
  }

  std::span<const std::byte> content_[2];
  std::string other_name_;
};

}  // namespace underkeel::io
