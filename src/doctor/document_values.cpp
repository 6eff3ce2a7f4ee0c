// Lenient look-ups in what a file holds. Not here: opening it (document.cpp).

#include <algorithm>
#include <cmath>

#include "doctor/document.h"
#include "doctor/key_values.h"
#include "spec/fields.h"

namespace underkeel::doctor {

const spec::Value* value_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = &root;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    value = value->find(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return value;
}

std::optional<double> number_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  const auto number = value == nullptr ? std::nullopt : spec::to_double(*value);
  return number && std::abs(*number) <= most_number ? number : std::nullopt;
}

std::optional<std::int64_t> whole_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  auto whole = value == nullptr ? std::nullopt : spec::to_integer(*value);
  if (!whole && value != nullptr && value->kind == spec::ValueKind::text)
    whole = spelled_whole(value->text);
  return whole && *whole <= most_count && *whole >= -most_count ? whole : std::nullopt;
}

std::optional<std::int64_t> lax_whole_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  if (value != nullptr && value->kind == spec::ValueKind::boolean) return value->boolean ? 1 : 0;
  return whole_at(root, path);
}

std::optional<bool> truth_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  if (value == nullptr) return std::nullopt;
  if (value->kind == spec::ValueKind::boolean) return value->boolean;
  if (value->kind == spec::ValueKind::text) return spec::parse_boolean(value->text);
  if (const auto number = spec::to_double(*value)) return *number != 0;
  return std::nullopt;
}

std::optional<std::string> text_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  if (value == nullptr || value->kind != spec::ValueKind::text || value->text == "auto")
    return std::nullopt;
  return value->text;
}

bool is_auto_at(const spec::Value& root, std::string_view path) {
  const spec::Value* value = value_at(root, path);
  return value != nullptr && value->kind == spec::ValueKind::text && value->text == "auto";
}

bool has_auto(const spec::Value& root) {
  return std::any_of(root.entries.begin(), root.entries.end(), [](const spec::Entry& entry) {
    return (entry.value.kind == spec::ValueKind::text && entry.value.text == "auto") ||
           has_auto(entry.value);
  });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

int line_of(const spec::Value& root, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const spec::Value* parent =
      dot == std::string_view::npos ? &root : value_at(root, path.substr(0, dot));
  const std::string_view key = dot == std::string_view::npos ? path : path.substr(dot + 1);
  if (parent == nullptr) return 0;
  for (const spec::Entry& entry : parent->entries)
    if (entry.key == key) return entry.key_place.line;
  return 0;
}

}  // namespace underkeel::doctor
