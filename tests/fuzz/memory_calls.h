#pragma once
// System calls over one file in memory, so that a fuzz target takes the road of a real file.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "io/system_calls.h"

namespace underkeel::io {

class MemoryCalls final : public SystemCalls {
 public:
  explicit MemoryCalls(std::span<const std::byte> content) : content_(content) {}

  int open(const std::string&, OpenMode mode) override {
    return mode == OpenMode::read ? 0 : -EROFS;
  }
  int close(int) override { return 0; }
  std::int64_t read(int, std::span<std::byte> into, std::int64_t offset) override {
    const std::int64_t left = std::max<std::int64_t>(0, std::ssize(content_) - offset);
    const std::int64_t count = std::min(left, std::ssize(into));
    if (count > 0) std::memcpy(into.data(), content_.data() + offset, count);
    return count;
  }
  std::int64_t write(int, std::span<const std::byte>, std::int64_t) override { return -EROFS; }
  int allocate(int, std::int64_t) override { return -EROFS; }
  int sync(int) override { return 0; }
  int stat_open(int, FileStat& stat) override {
    stat = {FileKind::file, std::ssize(content_)};
    return 0;
  }
  int stat(const std::string&, bool, FileStat& stat) override { return stat_open(0, stat); }
  int rename(const std::string&, const std::string&) override { return -EROFS; }
  int exchange(const std::string&, const std::string&) override { return -EROFS; }
  int make_folder(const std::string&) override { return -EROFS; }
  int remove_file(const std::string&) override { return -EROFS; }
  int remove_folder(const std::string&) override { return -EROFS; }
  int list(const std::string&, std::vector<std::string>&) override { return -ENOENT; }
  int free_bytes(const std::string&, std::int64_t&) override { return -ENOSYS; }
  void pause() override {}

 private:
  std::span<const std::byte> content_;
};

}  // namespace underkeel::io
