#pragma once
// The records of data files: lines of text, JSON lines, the elements of a JSON list, comma separated
// values. Read in order, looked into and tokenised by several threads, handed on in order. Memory
// holds a few batches of records, whatever the file's size.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "data/conversation.h"
#include "data/dataset_info.h"
#include "data/tokenised.h"
#include "io/file.h"

namespace underkeel::data {

enum class RecordContent {
  text,         // stage pt: prompt and query are a text
  conversation  // stage sft
};

struct RecordRules {
  RecordContent content = RecordContent::text;
  bool skip_broken = false;        // go on without broken records instead of refusing
  std::int64_t most_records = -1;  // of the whole data set, usable or not; -1: all
  std::int64_t largest_record_bytes = 64 * mebibyte;
  /// What reading and tokenising may hold at once; a record that could need more is refused. Absent: whatever
  /// records of largest_record_bytes need.
  std::optional<std::int64_t> memory_bytes;
};

/// The largest record that `rules` allow when `thread_count` threads tokenise.
std::int64_t largest_record_bytes(const RecordRules& rules, int thread_count);

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
  std::int64_t dropped = 0;             // well formed, but without what the rules need
  std::int64_t broken = 0;              // not well formed
  std::int64_t empty = 0;               // usable, with an empty text (stage sft: last answer)
  std::vector<RecordProblem> problems;  // the first ones; all are counted
  std::vector<std::string> notes;
};

/// One line of totals and one for each problem kept.
std::string describe(const RecordReport& report);

struct Record {
  std::string text;   // of stage pt: prompt and query, the non-empty ones joined by a newline
  Conversation talk;  // of stage sft
};

enum class RecordState { usable, dropped, broken };

struct JudgedRecord {
  RecordState state = RecordState::usable;
  std::string_view file;
  std::int64_t line = 0;
  Record record;           // when usable
  TokenisedRecord tokens;  // what the work made of it
};

/// What becomes of records.
struct RecordWork {
  /// Makes tokens of a usable record. Called by several threads at once.
  std::function<Result<TokenisedRecord>(const Record&)> make;
  /// Takes every record, in the order of the files.
  std::function<Result<void>(const JudgedRecord&)> take;
  int thread_count = 1;
};

/// Files: .txt one record a line (\n, \r\n or \r end it, empty lines count); .json and .jsonl a
/// list of objects or one object a line (blank lines do not count); .csv with a line of names
/// first. A byte-order mark is skipped.
/// Errors: bad_file with the whole report when records are broken, when content and name do not
/// fit, when a column is in no record; unsupported for tools; io; what the work returns.
Result<RecordReport> read_records(io::FileSystem& files, const DatasetEntry& entry,
                                  const RecordRules& rules, const RecordWork& work);

}  // namespace underkeel::data
