#include "data/raw_records.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/byte_order_mark.h"
#include "base/foreign_content.h"
#include "base/units.h"
#include "data/file_content.h"

namespace underkeel::data {
namespace {

constexpr std::size_t look_ahead_bytes = 4096;

bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// What would make a file of this content one that can be read.
std::string remedy_for(ContentKind kind, std::string_view text) {
  switch (kind) {
    case ContentKind::gzip:
      return "gunzip it first";
    case ContentKind::zip:
      return "unpack it first; of a spreadsheet write a .csv";
    case ContentKind::zstd:
      return "zstd -d it first";
    case ContentKind::parquet:
    case ContentKind::arrow:
      return "write it as JSON lines: datasets.load_dataset(...).to_json(NAME.jsonl)";
    case ContentKind::json_list:
      return "rename it to end in .json";
    case ContentKind::json_lines:
      return "rename it to end in .jsonl";
    case ContentKind::json_objects: {
      const std::string_view key = first_key_of(text);
      if (key == "data" || key == "examples" || key == "train" || key == "records")
        return fmt::format(
            "the records seem to be a list under `{}`: the file has to be that list itself", key);
      return "`jq -c . FILE > NAME.jsonl` writes one object a line; a list of them is read too";
    }
    case ContentKind::other:
      break;
  }
  return {};
}

}  // namespace

Result<RawRecordReader> RawRecordReader::open(io::FileSystem& files, const std::string& path,
                                              std::int64_t largest_record_bytes) {
  UK_TRY(stream, TextStream::open(files, path));
  RawRecordReader reader(std::move(stream), path, largest_record_bytes);
  UK_TRY_VOID(reader.skip_byte_order_mark());
  UK_TRY_VOID(reader.choose_form());
  return reader;
}

Result<void> RawRecordReader::skip_byte_order_mark() {
  UK_TRY(start, stream_.peek(byte_order_mark.size()));
  if (start == byte_order_mark) {
    had_byte_order_mark_ = true;
    stream_.skip(byte_order_mark.size());
    line_begin_ = byte_order_mark.size();
  }
  return {};
}

Result<void> RawRecordReader::choose_form() {
  UK_TRY(start, stream_.peek(look_ahead_bytes));
  const std::string_view text = without_leading_space(start);
  const std::string extension = std::filesystem::path(path_).extension().string();
  const bool is_json = extension != ".txt" && extension != ".csv";
  const auto foreign = foreign_content_of(start);
  // Plain text may be about web pages.
  if (foreign && !(foreign->is_web_page && extension == ".txt"))
    return fail(ErrorCode::bad_file,
                fmt::format("content is {}, name ends in {}", foreign->what, extension), path_,
                foreign->fix);
  const ContentKind kind = content_kind_of(start, start.size() < look_ahead_bytes);
  const bool fits = is_json && (kind == ContentKind::json_list || kind == ContentKind::json_lines);
  if (kind != ContentKind::other && !fits)
    return fail(ErrorCode::bad_file,
                fmt::format("content is {}, name ends in {}", name_of(kind), extension), path_,
                remedy_for(kind, text));
  if (!is_json) {
    if (extension == ".txt") return {};
    form_ = FileForm::comma_separated;
    RawRecord names;
    UK_TRY(found, next_values(names));
    header_ = found ? std::move(names.text) : std::string();
    return {};
  }
  form_ = FileForm::json_lines;
  if (!text.starts_with('[')) return {};
  form_ = FileForm::json_list;
  UK_TRY(bracket, next_significant());
  take(bracket);
  return {};
}

Result<bool> RawRecordReader::next(RawRecord& record) {
  switch (form_) {
    case FileForm::json_list:
      return next_element(record);
    case FileForm::comma_separated:
      return next_values(record);
    case FileForm::text_lines:
    case FileForm::json_lines:
      return next_line(record);
  }
  return false;
}

Result<bool> RawRecordReader::next_line(RawRecord& record) {
  while (true) {
    record.line = line_;
    record.column = 1;
    UK_TRY(found,
           stream_.read_line(record.text, form_ == FileForm::text_lines, largest_record_bytes_));
    if (!found) return false;
    ++line_;
    const bool blank = without_leading_space(record.text).empty();
    if (form_ == FileForm::text_lines || !blank) return true;
  }
}

// A quoted value may hold line ends; a line without any value is passed over.
Result<bool> RawRecordReader::next_values(RawRecord& record) {
  if (done_) return false;
  record.line = line_;
  record.column = 1;
  record.text.clear();
  bool is_open = false;
  std::string line;
  while (true) {
    UK_TRY(found, stream_.read_line(line, false, largest_record_bytes_));
    if (!found) {
      if (!is_open) return false;
      return cut(fmt::format("the file ends inside the quoted value of the record from line {}",
                             record.line));
    }
    ++line_;
    for (const char c : line) is_open ^= c == '"';
    record.text += line;
    if (static_cast<std::int64_t>(record.text.size()) > largest_record_bytes_)
      return fail(ErrorCode::does_not_fit,
                  fmt::format("a record is longer than {}", format_bytes(largest_record_bytes_)),
                  fmt::format("{}, from line {}", path_, record.line),
                  "is a quotation mark missing?");
    if (is_open) {
      record.text += '\n';
      continue;
    }
    if (record.text.ends_with('\r')) record.text.pop_back();
    if (!record.text.empty()) return true;
    record.line = line_;
  }
}

void RawRecordReader::take(char c) {
  stream_.skip(1);
  if (c != '\n') return;
  ++line_;
  line_begin_ = stream_.offset();
}

Result<char> RawRecordReader::next_significant() {
  while (true) {
    UK_TRY(text, stream_.window());
    if (text.empty()) return '\0';
    if (!is_json_space(text[0])) return text[0];
    take(text[0]);
  }
}

bool RawRecordReader::cut(std::string reason) {
  done_ = true;
  cut_short_ = CutShort{line_, std::move(reason)};
  return false;
}

Result<bool> RawRecordReader::next_element(RawRecord& record) {
  if (done_) return false;
  UK_TRY(c, next_significant());
  const auto at = [&] { return fmt::format("byte {}", stream_.offset()); };
  const auto whole = [&] { return fmt::format("after {} whole records", element_count_); };
  if (c == '\0') return cut(fmt::format("the file ends at {}, inside the list, {}", at(), whole()));
  if (c == ']') {
    take(c);
    done_ = true;
    UK_TRY(more, next_significant());
    if (more != '\0') return cut(fmt::format("{} follows the end of the list", at()));
    return false;
  }
  if (element_count_ > 0) {
    if (c != ',') return cut(fmt::format("a comma is missing at {}, {}", at(), whole()));
    take(c);
    UK_TRY(begin, next_significant());
    if (begin == ']') return cut(fmt::format("nothing follows the comma before {}", at()));
  }
  record.line = line_;
  record.column = stream_.offset() - line_begin_ + 1;
  UK_TRY_VOID(read_element(record.text));
  if (cut_short_) return false;
  ++element_count_;
  return true;
}

// Reads up to the comma or bracket that ends an element of the list.
Result<void> RawRecordReader::read_element(std::string& text) {
  text.clear();
  std::int64_t depth = 0;
  bool in_text = false;
  bool escaped = false;
  while (true) {
    UK_TRY(window, stream_.window());
    if (window.empty()) {
      cut(fmt::format("the file ends at byte {}, inside {}, after {} whole records",
                      stream_.offset(), in_text ? "a text" : "a record", element_count_));
      return {};
    }
    std::size_t used = 0;
    bool ended = false;
    for (; used < window.size() && !ended; ++used) {
      const char c = window[used];
      if (c == '\n') {
        ++line_;
        line_begin_ = stream_.offset() + static_cast<std::int64_t>(used) + 1;
      }
      if (in_text) {
        in_text = escaped || c != '"';
        escaped = !escaped && c == '\\';
      } else if (c == '"') {
        in_text = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        ended = true;
      } else if (c == '}' || c == ']') {
        --depth;
      }
    }
    if (ended) --used;
    text += window.substr(0, used);
    stream_.skip(used);
    if (static_cast<std::int64_t>(text.size()) > largest_record_bytes_)
      return fail(ErrorCode::does_not_fit,
                  fmt::format("a record is longer than {}", format_bytes(largest_record_bytes_)),
                  fmt::format("{}, before byte {}", path_, stream_.offset()));
    if (ended) return {};
  }
}

}  // namespace underkeel::data
