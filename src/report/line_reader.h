#pragma once
// The lines of a file that grows while it is read: each call goes on behind the last whole line.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "io/file.h"

namespace underkeel::report {

class LineReader {
 public:
  LineReader(io::FileSystem& files, std::string path) : files_(&files), path_(std::move(path)) {}

  /// Calls visit(line) for every whole line that is new. When the file has become shorter or begins otherwise, it is
  /// another one: restart() is called, then all its lines are visited. A link is not followed.
  /// Errors: not_found, bad_file, io.
  Result<void> read_new(const std::function<void()>& restart,
                        const std::function<void(std::string_view)>& visit);

  std::int64_t line_count() const { return line_count_; }
  /// Lines that were longer than is read of one.
  std::int64_t too_long_count() const { return too_long_count_; }
  /// Whether the file ends in the middle of a line.
  bool has_torn_end() const { return has_torn_end_; }

 private:
  void start_anew();
  /// Reads the first bytes of `file`, at most as many as are compared and lie before `offset_`.
  Result<std::string> read_beginning(io::File& file) const;

  io::FileSystem* files_;
  std::string path_;
  std::int64_t offset_ = 0;  // behind the last whole line
  std::string beginning_;    // of the file, when it was last read
  std::int64_t line_count_ = 0;
  std::int64_t too_long_count_ = 0;
  bool is_in_long_line_ = false;
  bool has_torn_end_ = false;
};

}  // namespace underkeel::report
