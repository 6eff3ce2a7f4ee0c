#pragma once
// Cuts a data file into the bytes of its records, without looking into them. Private to records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/text_stream.h"

namespace underkeel::data {

enum class FileForm { text_lines, json_lines, json_list, comma_separated };

struct RawRecord {
  std::string text;
  std::int64_t line = 1;    // where it begins
  std::int64_t column = 1;  // byte in that line, from 1
};

/// What ends a JSON list, or the last record of comma separated values, before its end.
struct CutShort {
  std::int64_t line = 1;
  std::string reason;  // with the byte
};

class RawRecordReader {
 public:
  /// Opens `path`, skips a byte-order mark and tells lines from a list by the first character. Of
  /// a .csv the first record holds the names of the columns; it is read now.
  /// Errors: bad_file when the content is not what the name says (file_content.h); io.
  static Result<RawRecordReader> open(io::FileSystem& files, const std::string& path,
                                      std::int64_t largest_record_bytes);

  FileForm form() const { return form_; }
  bool had_byte_order_mark() const { return had_byte_order_mark_; }
  /// The first record of comma separated values.
  const std::string& header() const { return header_; }

  /// False at the end, or when a list is cut short (see cut_short()).
  Result<bool> next(RawRecord& record);
  const std::optional<CutShort>& cut_short() const { return cut_short_; }

 private:
  RawRecordReader(TextStream stream, std::string path, std::int64_t largest_record_bytes)
      : stream_(std::move(stream)),
        path_(std::move(path)),
        largest_record_bytes_(largest_record_bytes) {}

  Result<void> skip_byte_order_mark();
  Result<void> choose_form();
  Result<bool> next_line(RawRecord& record);
  Result<bool> next_values(RawRecord& record);
  Result<bool> next_element(RawRecord& record);
  Result<void> read_element(std::string& text);
  Result<char> next_significant();  // skips white space; 0 at the end of the file
  void take(char c);                // counts one character as read
  bool cut(std::string reason);     // notes why a list ends; false

  TextStream stream_;
  std::string path_;
  std::int64_t largest_record_bytes_;
  FileForm form_ = FileForm::text_lines;
  bool had_byte_order_mark_ = false;
  std::string header_;
  std::int64_t line_ = 1;
  std::int64_t line_begin_ = 0;  // byte offset
  std::int64_t element_count_ = 0;
  bool done_ = false;
  std::optional<CutShort> cut_short_;
};

}  // namespace underkeel::data
