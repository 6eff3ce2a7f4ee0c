#pragma once
// Looks into the bytes of one record: what it says, or what is wrong with it. Private to records.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/raw_records.h"
#include "data/records.h"

namespace underkeel::data {

/// A column that records are to have.
struct WantedColumn {
  std::string key;   // of dataset_info.json: "prompt"
  std::string name;  // in the records: "instruction"
};
std::vector<WantedColumn> wanted_columns(const DatasetEntry& entry, RecordContent content);

struct Judgement {
  RecordState state = RecordState::usable;
  std::int64_t line = 0;  // of what is wrong
  std::int64_t column = 0;
  std::string reason;
  bool empty = false;
  Record record;
  std::uint32_t columns = 0;      // bit i: wanted_columns()[i] is there
  std::vector<std::string> keys;  // all of its columns, when asked for
};

struct JudgeQuestion {
  const DatasetEntry& entry;
  RecordContent content = RecordContent::text;
  const std::vector<WantedColumn>& wanted;
  FileForm form = FileForm::json_lines;
  const std::vector<std::string>& column_names;  // of comma separated values
  std::string_view file;
  bool wants_keys = false;
};

/// Errors: unsupported for a conversation with tools.
Result<Judgement> judge(const JudgeQuestion& question, const RawRecord& raw);

}  // namespace underkeel::data
