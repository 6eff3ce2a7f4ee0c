#include "data/file_content.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace underkeel::data {
namespace {

bool is_json(std::string_view text) {
  return nlohmann::json::accept(text.begin(), text.end());
}

// Prose may begin with a bracket, a list of records begins with [{".
bool begins_like_a_list_of_objects(std::string_view text) {
  if (!text.starts_with('[')) return false;
  text = without_leading_space(text.substr(1));
  return text.starts_with('{') && without_leading_space(text.substr(1)).starts_with('"');
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// A broken line of one object ends anywhere; the first line of a longer one ends between two parts of it.
bool goes_on_after(std::string_view line) {
  line = without_trailing_space(line);
  return !line.empty() &&
         (line.back() == '{' || line.back() == '[' || line.back() == ',' || line.back() == ':');
}

}  // namespace

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t' || text[0] == '\n' || text[0] == '\r'))
    text.remove_prefix(1);
  return text;
}

std::string_view first_key_of(std::string_view text) {
  text = without_leading_space(text);
  if (!text.starts_with('{')) return {};
  text = without_leading_space(text.substr(1));
  if (!text.starts_with('"')) return {};
  const std::size_t end = text.find('"', 1);
  if (end == std::string_view::npos || text.substr(1, end - 1).find('\n') != text.npos) return {};
  if (!without_leading_space(text.substr(end + 1)).starts_with(':')) return {};
  return text.substr(1, end - 1);
}

ContentKind content_kind_of(std::string_view start, bool is_all) {
  for (const auto& [mark, kind] :
       {std::pair{std::string_view("\x1F\x8B"), ContentKind::gzip},
        std::pair{std::string_view("PK\x03\x04"), ContentKind::zip},
        std::pair{std::string_view("\x28\xB5\x2F\xFD"), ContentKind::zstd},
        std::pair{std::string_view("PAR1"), ContentKind::parquet},
        std::pair{std::string_view("ARROW1"), ContentKind::arrow}})
    if (start.starts_with(mark)) return kind;
  const std::string_view text = without_leading_space(start);
  if (begins_like_a_list_of_objects(text)) return ContentKind::json_list;
  if (text.starts_with('['))
    return is_all && is_json(text) ? ContentKind::json_list : ContentKind::other;
  if (!text.starts_with('{')) return ContentKind::other;
  const std::size_t line_end = text.find('\n');
  const std::string_view line = text.substr(0, line_end);
  if (is_json(line)) return ContentKind::json_lines;
  if (first_key_of(text).empty()) return ContentKind::other;
  // A first line that is longer than what was looked at.
  if (line_end == std::string_view::npos && !is_all) return ContentKind::json_lines;
  return goes_on_after(line) ? ContentKind::json_objects : ContentKind::other;
}

std::string_view name_of(ContentKind kind) {
  switch (kind) {
    case ContentKind::other:
      break;
    case ContentKind::gzip:
      return "compressed by gzip";
    case ContentKind::zip:
      return "a zip archive";
    case ContentKind::zstd:
      return "compressed by zstd";
    case ContentKind::parquet:
      return "Parquet";
    case ContentKind::arrow:
      return "Arrow";
    case ContentKind::json_list:
      return "a JSON list";
    case ContentKind::json_lines:
      return "one JSON object a line";
    case ContentKind::json_objects:
      return "JSON objects of several lines";
  }
  return "something else";
}

}  // namespace underkeel::data
