#include "report/line_reader.h"

#include <algorithm>
#include <span>

#include "report/plain_file.h"

namespace underkeel::report {

namespace {
// Our lines have some hundred bytes. A longer one than this is passed over, so that a file without line
// ends cannot take the memory.
constexpr std::int64_t piece_bytes = 1 << 20;
// A first line of ours tells when it was written, one of LLaMA-Factory its loss.
constexpr std::int64_t compared_bytes = 256;
}  // namespace

void LineReader::start_anew() {
  offset_ = line_count_ = too_long_count_ = 0;
  is_in_long_line_ = false;
  beginning_.clear();
}

Result<std::string> LineReader::read_beginning(io::File& file) const {
  std::string beginning(static_cast<std::size_t>(std::min(compared_bytes, offset_)), '\0');
  UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(beginning)), 0));
  return beginning;
}

Result<void> LineReader::read_new(const std::function<void()>& restart,
                                  const std::function<void(std::string_view)>& visit) {
  UK_TRY(file, open_plain_file(*files_, path_));
  UK_TRY(size_bytes, file.size_bytes());
  bool is_another = size_bytes < offset_;
  if (!is_another && !beginning_.empty()) {
    UK_TRY(beginning, read_beginning(file));
    is_another = !beginning.starts_with(beginning_);
  }
  if (is_another) {
    start_anew();
    restart();
  }
  std::string piece;
  while (offset_ < size_bytes) {
    piece.resize(static_cast<std::size_t>(std::min(piece_bytes, size_bytes - offset_)));
    UK_TRY_VOID(file.read(std::as_writable_bytes(std::span(piece)), offset_));
    std::size_t begin = 0;
    for (std::size_t newline; (newline = piece.find('\n', begin)) != std::string::npos;
         begin = newline + 1) {
      ++line_count_;
      if (is_in_long_line_) {
        is_in_long_line_ = false;
        ++too_long_count_;
      } else if (newline > begin) {
        visit(std::string_view(piece).substr(begin, newline - begin));
      }
    }
    if (begin == 0) {
      if (static_cast<std::int64_t>(piece.size()) < piece_bytes) break;  // not yet whole
      is_in_long_line_ = true;
      begin = piece.size();
    }
    offset_ += static_cast<std::int64_t>(begin);
  }
  if (static_cast<std::int64_t>(beginning_.size()) < std::min(compared_bytes, offset_)) {
    UK_TRY(beginning, read_beginning(file));
    beginning_ = std::move(beginning);
  }
  has_torn_end_ = offset_ < size_bytes || is_in_long_line_;
  return {};
}

}  // namespace underkeel::report
