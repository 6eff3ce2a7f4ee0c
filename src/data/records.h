#pragma once
// The records of data files, one at a time: lines of text, JSON lines, or the elements of a JSON
// list. Memory holds one record and a read buffer, whatever the file's size.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "data/dataset_info.h"
#include "io/file.h"

namespace underkeel::data {

struct RecordRules {
  bool needs_response = false;     // a record without a text in the response column is dropped
  bool skip_broken = false;        // go on without broken records instead of refusing
  std::int64_t most_records = -1;  // of the whole data set, usable or not; -1: all
  std::int64_t largest_record_bytes = 64 * mebibyte;
};

struct RecordProblem {
  std::string file;
  std::int64_t line = 0;    // from 1
  std::int64_t column = 0;  // byte in the line, from 1; 0: the whole record
  bool broken = false;      // else dropped
  std::string reason;
};

/// What was read, and what was wrong with it.
struct RecordReport {
  std::int64_t records = 0;  // all
  std::int64_t usable = 0;
  std::int64_t dropped = 0;  // well formed, but without what the rules need
  std::int64_t broken = 0;   // not well formed
  std::int64_t empty = 0;    // usable, with an empty text (or response, where one is needed)
  std::vector<RecordProblem> problems;  // the first ones; all are counted
  std::vector<std::string> notes;
};

/// One line of totals and one for each problem kept.
std::string describe(const RecordReport& report);

struct Record {
  std::string prompt;    // prompt and query, the non-empty ones joined by a newline
  std::string response;  // empty unless the rules need it
};

/// Calls `visit` with every usable record of `entry`, file by file.
/// Files: .txt one record a line (\n, \r\n or \r end it, empty lines count); .json and .jsonl a
/// list of objects or one object a line (blank lines do not count). A byte-order mark is skipped.
/// Errors: bad_file with the whole report when records are broken, when content and name do not
/// fit, when a column is in no record; io; what `visit` returns.
Result<RecordReport> read_records(io::FileSystem& files, const DatasetEntry& entry,
                                  const RecordRules& rules,
                                  const std::function<Result<void>(const Record&)>& visit);

}  // namespace underkeel::data
