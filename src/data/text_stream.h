#pragma once
// A file as a stream of bytes through a fixed buffer.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace underkeel::data {

class TextStream {
 public:
  static Result<TextStream> open(io::FileSystem& files, const std::string& path);

  /// The unread bytes in the buffer, filled when it was empty; empty at the end of the file.
  Result<std::string_view> window();
  /// Marks `count` bytes of the window as read.
  void skip(std::size_t count) { begin_ += count; }

  std::int64_t offset() const { return file_offset_ - static_cast<std::int64_t>(end_ - begin_); }

  /// Up to `count` of the next bytes without reading them. `count` is at most the buffer's size.
  Result<std::string_view> peek(std::size_t count);

  /// Reads on to the end of a line into `line`, without its end. With `any_newline`, \r ends a line
  /// too. False at the end of the file. Errors: does_not_fit above `limit_bytes`.
  Result<bool> read_line(std::string& line, bool any_newline, std::int64_t limit_bytes);

 private:
  TextStream(io::File file, std::int64_t size_bytes)
      : file_(std::move(file)), size_bytes_(size_bytes), buffer_(buffer_bytes) {}

  static constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

  Result<void> fill();

  io::File file_;
  std::int64_t size_bytes_;
  std::int64_t file_offset_ = 0;  // of the end of what is in the buffer
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace underkeel::data
