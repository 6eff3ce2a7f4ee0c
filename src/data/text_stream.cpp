#include "data/text_stream.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "base/units.h"

namespace underkeel::data {

Result<TextStream> TextStream::open(io::FileSystem& files, const std::string& path) {
  UK_TRY(file, files.open(path));
  UK_TRY(size_bytes, file.size_bytes());
  return TextStream(std::move(file), size_bytes);
}

Result<void> TextStream::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(
      static_cast<std::int64_t>(buffer_.size() - end_), size_bytes_ - file_offset_));
  if (wanted == 0) return {};
  UK_TRY_VOID(
      file_.read(std::as_writable_bytes(std::span(buffer_).subspan(end_, wanted)), file_offset_));
  end_ += wanted;
  file_offset_ += static_cast<std::int64_t>(wanted);
  return {};
}

Result<std::string_view> TextStream::window() {
  if (begin_ == end_) UK_TRY_VOID(fill());
  return std::string_view(buffer_.data() + begin_, end_ - begin_);
}

Result<std::string_view> TextStream::peek(std::size_t count) {
  if (end_ - begin_ < count) UK_TRY_VOID(fill());
  return std::string_view(buffer_.data() + begin_, std::min(count, end_ - begin_));
}

Result<bool> TextStream::read_line(std::string& line, bool any_newline, std::int64_t limit_bytes) {
  line.clear();
  bool found_any = false;
  while (true) {
    UK_TRY(text, window());
    if (text.empty()) return found_any;
    found_any = true;
    const std::size_t length =
        std::min(text.find_first_of(any_newline ? "\n\r" : "\n"), text.size());
    line += text.substr(0, length);
    if (static_cast<std::int64_t>(line.size()) > limit_bytes)
      return fail(ErrorCode::does_not_fit,
                  fmt::format("a line is longer than {}", format_bytes(limit_bytes)),
                  fmt::format("{}, before byte {}", file_.path(), offset()),
                  "one record a line; is this a text file?");
    if (length == text.size()) {
      skip(length);
      continue;
    }
    const bool carriage_return = text[length] == '\r';
    skip(length + 1);
    if (carriage_return) {
      UK_TRY(next, peek(1));
      if (next == "\n") skip(1);
    }
    return true;
  }
}

}  // namespace underkeel::data
