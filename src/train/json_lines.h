#pragma once
// Files of one JSON object a line that are readable at any moment: every line is one write at the
// end, and nothing is kept in this process.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"

namespace underkeel::train {

/// One line in the making; names are ours and need no escapes.
class JsonLine {
 public:
  JsonLine& add(std::string_view name, double value);  // null when not finite
  JsonLine& add(std::string_view name, std::int64_t value);
  JsonLine& add(std::string_view name, int value) { return add(name, std::int64_t{value}); }
  JsonLine& add(std::string_view name, bool value);
  JsonLine& add(std::string_view name, std::string_view text);
  JsonLine& add(std::string_view name, const char* text) {
    return add(name, std::string_view(text));
  }
  /// The object without a newline.
  std::string text() const { return text_ + "}"; }

 private:
  JsonLine& begin(std::string_view name);
  std::string text_ = "{";
};

/// A file that lines are added to. A last line that a killed process left half written is written
/// over by the next one.
class JsonLines {
 public:
  /// Errors: those of io::FileSystem.
  static Result<JsonLines> open(io::FileSystem& files, const std::string& path);
  /// After an error the file ends with the line before; the next call tries anew.
  Result<void> append(const JsonLine& line);

 private:
  JsonLines(io::File file, std::int64_t end_bytes, std::int64_t torn_bytes);
  io::File file_;
  std::int64_t end_bytes_;   // of the last whole line
  std::int64_t torn_bytes_;  // beyond it
};

}  // namespace underkeel::train
