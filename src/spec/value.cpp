// Conversions of parsed values. Numbers keep the text that was written, so that nothing is lost
// before a key says what it wants.

#include "spec/value.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/printable.h"

namespace underkeel::spec {

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

std::string_view name_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::null:
      return "null";
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::number:
      return "a number";
    case ValueKind::text:
      return "text";
    case ValueKind::list:
      return "a list";
    case ValueKind::mapping:
      return "a mapping";
  }
  return "?";
}

std::string shown(const Value& value) {
  constexpr std::size_t longest = 60;
  const auto cut = [](const std::string& text) {
    if (text.size() <= longest) return printable(text);
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return printable(text.substr(0, end)) + "...";
  };
  switch (value.kind) {
    case ValueKind::null:
      return "null";
    case ValueKind::boolean:
      return value.boolean ? "true" : "false";
    case ValueKind::number:
      return cut(value.text);
    case ValueKind::text:
      return "\"" + cut(value.text) + "\"";
    case ValueKind::list: {
      std::string text = "[";
      for (const Value& item : value.items) {
        if (text.size() > longest) return text + ", ...]";
        text += (text.size() > 1 ? ", " : "") + shown(item);
      }
      return text + "]";
    }
    case ValueKind::mapping:
      return fmt::format("a mapping of {} key{}", value.entries.size(),
                         value.entries.size() == 1 ? "" : "s");
  }
  return "?";
}

namespace {
/// from_chars takes no plus sign, which YAML and command lines allow.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}
}  // namespace

std::optional<double> parse_double(std::string_view text) {
  text = without_plus(text);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status == std::errc::result_out_of_range) {
    // Too small is zero, as every JSON reader has it; too large is no number.
    const auto exponent = text.find_first_of("eE");
    if (stop == end && exponent != std::string_view::npos && text.substr(exponent + 1, 1) == "-")
      return 0.0;
    return std::nullopt;
  }
  if (status != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = without_plus(text);
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, whole);
  if (status == std::errc() && stop == end) return whole;
  const auto number = parse_double(text);
  // Beyond 2^53 a double no longer says which whole number was meant.
  if (!number || std::trunc(*number) != *number || std::fabs(*number) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<double> to_double(const Value& value) {
  if (value.kind != ValueKind::number && value.kind != ValueKind::text) return std::nullopt;
  return parse_double(value.text);
}

std::optional<std::int64_t> to_integer(const Value& value) {
  if (value.kind != ValueKind::number && value.kind != ValueKind::text) return std::nullopt;
  return parse_integer(value.text);
}

}  // namespace underkeel::spec
