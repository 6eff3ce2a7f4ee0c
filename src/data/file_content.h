#pragma once
// What a data file is by its first bytes, whatever its name says. Private to records.
// Not here: what is no data file of any kind (base/foreign_content.h).

#include <string_view>

namespace underkeel::data {

enum class ContentKind {
  other,  // text, comma separated values, a JSON list or lines that are broken from the start
  gzip,
  zip,
  zstd,
  parquet,
  arrow,
  json_list,    // of objects, or a whole list of anything
  json_lines,   // one object a line
  json_objects  // that go over several lines
};

/// `start` is the file's beginning without a byte-order mark; `is_all` says that it is the whole file.
ContentKind content_kind_of(std::string_view start, bool is_all);

/// For a message: "a JSON list".
std::string_view name_of(ContentKind kind);

/// The first key of the object that `text` begins with; empty when there is none.
std::string_view first_key_of(std::string_view text);

std::string_view without_leading_space(std::string_view text);  // as JSON counts it

}  // namespace underkeel::data
