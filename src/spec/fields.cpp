#include "spec/fields.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/printable.h"

namespace underkeel::spec {

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "true") return true;
  if (lower == "false") return false;
  return std::nullopt;
}

const Value* Fields::take(std::string_view key) {
  asked_.emplace(key);
  return mapping_.find(key);
}

bool Fields::is_null(std::string_view key) const {
  const Value* value = mapping_.find(key);
  return value != nullptr && value->kind == ValueKind::null;
}

std::string Fields::name(std::string_view key) const {
  std::string name = prefix_ + printable(key);
  for (const Entry& entry : mapping_.entries) {
    if (entry.key != key) continue;
    if (entry.value.overridden) return name + " (command line)";
    if (entry.key_place.line > 0) return name + fmt::format(" (line {})", entry.key_place.line);
  }
  return name;
}

void Fields::problem(std::string_view key, std::string what, std::string fix, ErrorCode code) {
  problems_.add({code, name(key), std::move(what), std::move(fix)});
}

void Fields::wrong_type(std::string_view key, const Value& value, std::string_view wanted) {
  const bool says_its_kind = value.kind == ValueKind::null || value.kind == ValueKind::boolean ||
                             value.kind == ValueKind::mapping;
  problem(key, says_its_kind ? fmt::format("{} is wanted, {} was found", wanted, shown(value))
                             : fmt::format("{} is wanted, {} {} was found", wanted,
                                           name_of(value.kind), shown(value)));
}

bool Fields::may_convert(std::string_view key, const Value& value, std::string_view wanted) {
  if (value.kind == ValueKind::number) return true;
  if (value.kind == ValueKind::text && quoted_ == QuotedValues::accept) {
    if (parse_double(value.text))
      notes_.push_back(fmt::format("{}: {} in quotes is taken as the number that it spells",
                                   name(key), shown(value)));
    return true;
  }
  wrong_type(key, value, wanted);
  return false;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, IntegerRange range) {
  const Value* value = take(key);
  if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
  if (!may_convert(key, *value, "a whole number")) return std::nullopt;
  const auto whole = to_integer(*value);
  if (!whole) {
    wrong_type(key, *value, "a whole number");
    return std::nullopt;
  }
  if (*whole < range.least || *whole > range.most) {
    problem(key, fmt::format("{} is out of range: {}", *whole,
                             range.most == INT64_MAX
                                 ? fmt::format("at least {} is wanted", range.least)
                                 : fmt::format("{} to {} is wanted", range.least, range.most)));
    return std::nullopt;
  }
  return whole;
}

std::optional<double> Fields::number(std::string_view key, NumberRange range) {
  const Value* value = take(key);
  if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
  if (!may_convert(key, *value, "a number")) return std::nullopt;
  const auto real = to_double(*value);
  if (!real) {
    wrong_type(key, *value, value->kind == ValueKind::number ? "a finite number" : "a number");
    return std::nullopt;
  }
  if (*real < range.least || *real > range.most ||
      (*real == range.least && !range.least_is_allowed)) {
    std::string wanted =
        fmt::format("{} {}", range.least_is_allowed ? "at least" : "more than", range.least);
    if (range.most < 1e300) wanted += fmt::format(" and at most {}", range.most);
    problem(key, fmt::format("{} is out of range: {} is wanted", shown(*value), wanted));
    return std::nullopt;
  }
  return real;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
  if (value->kind == ValueKind::boolean) return value->boolean;
  if (value->kind == ValueKind::text && quoted_ == QuotedValues::accept)
    if (const auto truth = parse_boolean(value->text)) {
      notes_.push_back(
          fmt::format("{}: {} in quotes is taken as {}", name(key), shown(*value), *truth));
      return truth;
    }
  wrong_type(key, *value, "true or false");
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
  if (value->kind == ValueKind::text) return value->text;
  // YAML reads a bare 7 as a number where the user meant a name.
  if (value->kind == ValueKind::number && quoted_ == QuotedValues::accept) return value->text;
  wrong_type(key, *value, "text");
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::words(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr || value->kind == ValueKind::null) return std::nullopt;
  if (value->kind == ValueKind::text || value->kind == ValueKind::number)
    return split_words(value->text);
  if (value->kind == ValueKind::list) {
    std::vector<std::string> words;
    for (const Value& item : value->items) {
      if (item.kind != ValueKind::text && item.kind != ValueKind::number) {
        wrong_type(key, item, "a list of texts");
        return std::nullopt;
      }
      words.push_back(item.text);
    }
    return words;
  }
  wrong_type(key, *value, "text or a list of texts");
  return std::nullopt;
}

void Fields::refuse_unread(const std::function<Refusal(const Entry&)>& refusal_of) {
  constexpr std::size_t most_told = 20;
  const std::vector<const Entry*> entries = unread();
  for (std::size_t i = 0; i < std::min(entries.size(), most_told); ++i) {
    Refusal refusal = refusal_of(*entries[i]);
    problem(entries[i]->key, std::move(refusal.what), std::move(refusal.fix), refusal.code);
  }
  if (entries.size() > most_told)
    problems_.add({.what = fmt::format("{} more unknown keys", entries.size() - most_told)});
}

std::vector<const Entry*> Fields::unread() const {
  std::vector<const Entry*> entries;
  for (const Entry& entry : mapping_.entries)
    if (!asked_.contains(entry.key)) entries.push_back(&entry);
  return entries;
}

}  // namespace underkeel::spec
