#include "data/record_judge.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "data/csv_record.h"
#include "data/formats.h"
#include "data/json_field.h"
#include "data/tokenizer/utf8.h"
#include "io/file.h"

namespace underkeel::data {
namespace {

using Json = nlohmann::json;

// nlohmann's message without its own idea of the position, and with the end of a long text alone.
std::string reason_of(const Json::exception& exception) {
  std::string what = exception.what();
  const std::size_t column = what.find("column ");
  const std::size_t colon = what.find(": ", column == std::string::npos ? 0 : column);
  if (colon != std::string::npos) what.erase(0, colon + 2);
  constexpr std::string_view mark = "last read: '";
  constexpr std::size_t longest = 60;
  const std::size_t begin = what.find(mark);
  const std::size_t end = what.rfind('\'');
  if (begin != std::string::npos && end > begin + mark.size() + longest) {
    std::size_t cut = end - longest;
    while (cut < end && (static_cast<unsigned char>(what[cut]) & 0xC0) == 0x80) ++cut;
    what.replace(begin + mark.size(), cut - begin - mark.size(), "...");
  }
  return printable(what);
}

// Byte `offset` of the record is broken: its own lines count on from where it begins.
void set_broken(const RawRecord& raw, std::size_t offset, std::string reason, Judgement& judged) {
  const std::string_view before = std::string_view(raw.text).substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  judged.state = RecordState::broken;
  judged.line = raw.line + std::count(before.begin(), before.end(), '\n');
  judged.column = newline == before.npos ? raw.column + static_cast<std::int64_t>(before.size())
                                         : static_cast<std::int64_t>(before.size() - newline);
  judged.reason = std::move(reason);
}

void set_dropped(std::string reason, Judgement& judged) {
  judged.state = RecordState::dropped;
  judged.column = 0;
  judged.reason = std::move(reason);
}

bool is_utf8(const RawRecord& raw, Judgement& judged) {
  const auto offset = first_invalid_utf8(raw.text);
  if (offset)
    set_broken(raw, *offset,
               fmt::format("byte 0x{:02X} is not valid UTF-8",
                           static_cast<unsigned char>(raw.text[*offset])),
               judged);
  return !offset;
}

// The record as an object, or null when it is broken.
Json parse(const JudgeQuestion& question, const RawRecord& raw, Judgement& judged) {
  if (question.form == FileForm::text_lines || question.form == FileForm::comma_separated) {
    if (!is_utf8(raw, judged)) return {};
    if (question.form == FileForm::text_lines) return Json{{"text", raw.text}};
    auto values = csv_values(raw.text);
    if (values.size() > question.column_names.size()) {
      set_broken(
          raw, 0,
          fmt::format("{} values for {} columns", values.size(), question.column_names.size()),
          judged);
      return {};
    }
    values.resize(question.column_names.size());
    Json object = Json::object();
    for (std::size_t column = 0; column < values.size(); ++column)
      object[question.column_names[column]] =
          values[column] ? Json(std::move(*values[column])) : Json(nullptr);
    return object;
  }
  Json json;
  try {
    json = Json::parse(raw.text);
  } catch (const Json::parse_error& error) {
    if (!is_utf8(raw, judged)) return {};
    set_broken(raw, error.byte == 0 ? 0 : error.byte - 1, reason_of(error), judged);
    return {};
  } catch (const Json::exception& error) {
    set_broken(raw, 0, reason_of(error), judged);
    return {};
  }
  if (!json.is_object()) {
    set_broken(raw, 0, fmt::format("the record is {}, not an object", kind_of(json)), judged);
    return {};
  }
  return json;
}

// What is wrong with a column that must be a text, or empty.
std::string fault_of(const Json& json, const std::string& column) {
  const auto found = json.find(column);
  if (found == json.end()) return fmt::format("`{}` is missing", column);
  if (!found->is_string()) return fmt::format("`{}` is {}", column, kind_of(*found));
  return {};
}

void judge_text(const Json& json, const Columns& columns, Judgement& judged) {
  std::string fault = fault_of(json, columns.prompt);
  const Json* query = columns.query.empty() ? nullptr : find_field(json, columns.query);
  if (fault.empty() && query != nullptr && !query->is_string())
    fault = fmt::format("`{}` is {}", columns.query, kind_of(*query));
  if (!fault.empty()) return set_dropped(std::move(fault), judged);
  std::string& text = judged.record.text;
  text = json.at(columns.prompt).get<std::string>();
  if (query != nullptr && !query->get_ref<const std::string&>().empty()) {
    if (!text.empty()) text += '\n';
    text += query->get_ref<const std::string&>();
  }
  judged.empty = text.empty();
}

}  // namespace

std::vector<WantedColumn> wanted_columns(const DatasetEntry& entry, RecordContent content) {
  const Columns& columns = entry.columns;
  std::vector<WantedColumn> wanted;
  const bool in_messages =
      content == RecordContent::conversation && entry.format != RecordFormat::alpaca;
  if (in_messages) {
    wanted.push_back({"messages", columns.messages});
  } else {
    wanted.push_back({"prompt", columns.prompt});
    if (content == RecordContent::conversation) wanted.push_back({"response", columns.response});
  }
  if (!entry.columns_are_named) return wanted;
  if (!in_messages) wanted.push_back({"query", columns.query});
  if (content == RecordContent::conversation) {
    if (!in_messages) wanted.push_back({"history", columns.history});
    wanted.push_back({"system", columns.system});
    wanted.push_back({"tools", columns.tools});
  }
  // The first ones are needed; the others may be left out of the description.
  const auto needed = in_messages || content == RecordContent::text ? 1 : 2;
  wanted.erase(std::remove_if(wanted.begin() + needed, wanted.end(),
                              [](const WantedColumn& column) { return column.name.empty(); }),
               wanted.end());
  return wanted;
}

Result<Judgement> judge(const JudgeQuestion& question, const RawRecord& raw) {
  Judgement judged{.line = raw.line};
  const Json json = parse(question, raw, judged);
  if (judged.state == RecordState::broken) return judged;
  for (std::size_t column = 0; column < question.wanted.size(); ++column)
    if (json.contains(question.wanted[column].name)) judged.columns |= 1u << column;
  if (question.wants_keys)
    for (const auto& [key, value] : json.items()) judged.keys.push_back(key);
  if (question.content == RecordContent::text) {
    judge_text(json, question.entry.columns, judged);
    return judged;
  }
  auto reading = read_conversation(json, question.entry);
  if (!reading) {
    Error error = std::move(reading).error();
    error.where = fmt::format("{}:{}", question.file, raw.line);
    return tl::unexpected(std::move(error));
  }
  if (!reading->fault.empty()) {
    set_dropped(std::move(reading->fault), judged);
  } else {
    judged.record.talk = std::move(reading->talk);
    judged.empty = judged.record.talk.messages.back().text.empty();
  }
  return judged;
}

}  // namespace underkeel::data
