#include "data/records.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/nearest_word.h"
#include "data/json_field.h"
#include "data/raw_records.h"
#include "data/tokenizer/utf8.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

constexpr std::size_t problems_kept = 20;

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::string:
      return "a text";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

// nlohmann's message without its own idea of the position.
std::string reason_of(const Json::exception& exception) {
  std::string what = exception.what();
  const std::size_t column = what.find("column ");
  const std::size_t colon = what.find(": ", column == std::string::npos ? 0 : column);
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

class DatasetReader {
 public:
  DatasetReader(io::FileSystem& files, const DatasetEntry& entry, const RecordRules& rules,
                const std::function<Result<void>(const Record&)>& visit)
      : files_(files), entry_(entry), rules_(rules), visit_(visit) {}

  Result<RecordReport> run() {
    for (const std::string& path : entry_.files) {
      if (is_enough()) break;
      UK_TRY_VOID(read_file(path));
    }
    UK_TRY_VOID(check_columns());
    if (report_.broken > 0 && !rules_.skip_broken)
      return fail(ErrorCode::bad_file,
                  fmt::format("data set `{}`: {}", entry_.name, describe(report_)),
                  entry_.files.size() == 1 ? entry_.files[0] : "the files of the data set",
                  "mend the broken records; a part of a broken file is used only when asked for");
    return std::move(report_);
  }

 private:
  bool is_enough() const {
    return rules_.most_records >= 0 && report_.records >= rules_.most_records;
  }

  Result<void> read_file(const std::string& path) {
    path_ = &path;
    UK_TRY(reader, RawRecordReader::open(files_, path, rules_.largest_record_bytes));
    if (reader.had_byte_order_mark())
      report_.notes.push_back(fmt::format("{}: skipped the byte-order mark", path));
    if (reader.form() == FileForm::json_list && path.ends_with(".jsonl"))
      report_.notes.push_back(
          fmt::format("{}: read as a JSON list, though its name ends in .jsonl", path));
    while (!is_enough()) {
      UK_TRY(found, reader.next(raw_));
      if (!found) break;
      ++report_.records;
      UK_TRY_VOID(reader.form() == FileForm::text_lines ? take_line() : take_json());
    }
    if (reader.cut_short()) {
      ++report_.records;
      add_problem(
          {.line = reader.cut_short()->line, .broken = true, .reason = reader.cut_short()->reason});
    }
    return {};
  }

  void add_problem(RecordProblem problem) {
    ++(problem.broken ? report_.broken : report_.dropped);
    if (report_.problems.size() >= problems_kept) return;
    problem.file = *path_;
    report_.problems.push_back(std::move(problem));
  }

  // Position of byte `offset` of the record: its own lines count on from where it begins.
  void add_broken(std::size_t offset, std::string reason) {
    const std::string_view before = std::string_view(raw_.text).substr(0, offset);
    const std::size_t newline = before.rfind('\n');
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const auto column = newline == before.npos
                            ? raw_.column + static_cast<std::int64_t>(before.size())
                            : static_cast<std::int64_t>(before.size() - newline);
    add_problem(
        {.line = raw_.line + lines, .column = column, .broken = true, .reason = std::move(reason)});
  }

  Result<void> hand_over(Record record, bool empty) {
    ++report_.usable;
    if (empty) ++report_.empty;
    return visit_(record);
  }

  Result<void> take_line() {
    saw_column(entry_.columns.prompt == "text");
    if (first_keys_.empty()) first_keys_ = {"text"};
    if (const auto offset = first_invalid_utf8(raw_.text)) {
      add_broken(*offset, fmt::format("byte 0x{:02X} is not valid UTF-8",
                                      static_cast<unsigned char>(raw_.text[*offset])));
      return {};
    }
    if (entry_.columns.prompt != "text") return {};
    const bool empty = raw_.text.empty();
    return hand_over({.prompt = raw_.text, .response = {}}, empty);
  }

  Result<void> take_json() {
    Json json;
    try {
      json = Json::parse(raw_.text);
    } catch (const Json::parse_error& error) {
      add_broken(error.byte == 0 ? 0 : error.byte - 1, reason_of(error));
      return {};
    } catch (const Json::exception& error) {
      add_broken(0, reason_of(error));
      return {};
    }
    if (!json.is_object()) {
      add_broken(0, fmt::format("the record is {}, not an object", kind_of(json)));
      return {};
    }
    if (first_keys_.empty())
      for (const auto& [key, value] : json.items()) first_keys_.push_back(key);
    saw_column(json.contains(entry_.columns.prompt));
    return take_object(json);
  }

  // What is wrong with a column that must be a text, or empty.
  std::string fault_of(const Json& json, const std::string& column) const {
    const auto found = json.find(column);
    if (found == json.end()) return fmt::format("`{}` is missing", column);
    if (!found->is_string()) return fmt::format("`{}` is {}", column, kind_of(*found));
    return {};
  }

  Result<void> take_object(const Json& json) {
    const Columns& columns = entry_.columns;
    std::string fault = fault_of(json, columns.prompt);
    const Json* query = columns.query.empty() ? nullptr : find_field(json, columns.query);
    if (fault.empty() && query != nullptr && !query->is_string())
      fault = fmt::format("`{}` is {}", columns.query, kind_of(*query));
    if (fault.empty() && rules_.needs_response) fault = fault_of(json, columns.response);
    if (!fault.empty()) {
      add_problem({.line = raw_.line, .reason = std::move(fault)});
      return {};
    }
    Record record{.prompt = json.at(columns.prompt).get<std::string>(), .response = {}};
    if (query != nullptr && !query->get_ref<const std::string&>().empty()) {
      if (!record.prompt.empty()) record.prompt += '\n';
      record.prompt += query->get_ref<const std::string&>();
    }
    if (rules_.needs_response) record.response = json.at(columns.response).get<std::string>();
    const bool empty = rules_.needs_response ? record.response.empty() : record.prompt.empty();
    return hand_over(std::move(record), empty);
  }

  void saw_column(bool present) { prompt_column_seen_ |= present; }

  // A column that no record has is a mistake in the description, not in the records.
  Result<void> check_columns() const {
    const std::string& column = entry_.columns.prompt;
    if (column.empty())
      return fail(ErrorCode::bad_config,
                  fmt::format("`columns` of data set `{}` names no `prompt`", entry_.name),
                  "dataset_info.json", R"(for plain text: "columns": {"prompt": "text"})");
    if (prompt_column_seen_ || first_keys_.empty()) return {};
    const std::string nearest = nearest_word(column, first_keys_);
    const std::string better = !nearest.empty()          ? nearest
                               : first_keys_.size() == 1 ? first_keys_[0]
                                                         : std::string();
    return fail(
        ErrorCode::bad_config,
        fmt::format("data set `{}`: the column `{}` is in no record; the first one has `{}`",
                    entry_.name, column, fmt::join(first_keys_, "`, `")),
        "dataset_info.json",
        better.empty() ? "" : fmt::format(R"("columns": {{"prompt": "{}"}})", better));
  }

  io::FileSystem& files_;
  const DatasetEntry& entry_;
  const RecordRules& rules_;
  const std::function<Result<void>(const Record&)>& visit_;
  const std::string* path_ = nullptr;
  RawRecord raw_;
  RecordReport report_;
  std::vector<std::string> first_keys_;
  bool prompt_column_seen_ = false;
};

}  // namespace

std::string describe(const RecordReport& report) {
  std::string text =
      fmt::format("{} records, {} usable ({} empty), {} dropped, {} broken", report.records,
                  report.usable, report.empty, report.dropped, report.broken);
  for (const RecordProblem& problem : report.problems) {
    text += fmt::format("\n  {}:{}", problem.file, problem.line);
    if (problem.column > 0) text += fmt::format(", column {}", problem.column);
    text += fmt::format(": {}, {}", problem.broken ? "broken" : "dropped", problem.reason);
  }
  const auto kept = static_cast<std::int64_t>(report.problems.size());
  if (report.dropped + report.broken > kept)
    text += fmt::format("\n  and {} more", report.dropped + report.broken - kept);
  return text;
}

Result<RecordReport> read_records(io::FileSystem& files, const DatasetEntry& entry,
                                  const RecordRules& rules,
                                  const std::function<Result<void>(const Record&)>& visit) {
  return DatasetReader(files, entry, rules, visit).run();
}

}  // namespace underkeel::data
